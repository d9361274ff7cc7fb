package diagnose_test

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/cpumodel"
	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// deployed is the driver of a deployed node's model.
type deployed struct {
	n *node
	model
	out   func() []packet
	send  func(s *step) error
	recv  func(s *step) error
	busy  func() bool
	ended func(err error) // done function of the current call, or nil
}

type model interface {
	Datagram(now time.Duration, from int, b []byte)
	Tick(now time.Duration)
	NextEvent() (time.Duration, bool)
}

type packet struct {
	to    int
	bytes []byte
}

func newFPGA(n *node) *deployed {
	m := mpemodel.New(mpemodel.Config{Rank: n.rank, Peers: n.others()})
	return &deployed{
		n: n, model: m, busy: m.Busy,
		out: func() (sent []packet) {
			for _, p := range m.TakePackets() {
				sent = append(sent, packet{p.To, p.Bytes})
			}
			return sent
		},
		send: func(s *step) error { return m.Send(n.c.now, s.peer, words(s), s.datatype) },
		recv: func(s *step) error { return m.Recv(n.c.now, s.peer, uint32(s.words), s.datatype) },
	}
}

func newCPU(n *node) *deployed {
	m := cpumodel.New(cpumodel.Config{Rank: n.rank, Peers: n.others()})
	return &deployed{
		n: n, model: m,
		busy: func() bool { _, crashed := m.Crashed(); return crashed || m.Busy() },
		out: func() (sent []packet) {
			for _, p := range m.TakePackets() {
				sent = append(sent, packet{p.To, p.Bytes})
			}
			return sent
		},
		send: func(s *step) error { return m.Send(n.c.now, s.peer, words(s)) },
		recv: func(s *step) error { return m.Recv(n.c.now, s.peer, s.words) },
	}
}

func (n *node) others() (ranks []int) {
	for rank := range n.c.nodes {
		if rank != n.rank {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func words(s *step) []uint32 {
	b := fill(s.words)
	list := make([]uint32, s.words)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(b[i*protocol.WordLen:])
	}
	return list
}

// went transmits the packets that the model has sent, and reports the end of the current call once it has returned.
func (m *deployed) went() {
	for _, p := range m.out() {
		m.n.send(p.to, p.bytes)
	}
	if done := m.ended; done != nil && !m.busy() {
		m.ended = nil
		m.n.c.after(0, func() { done(nil) })
	}
}

func (m *deployed) datagram(from int, d *datagram) {
	m.Datagram(m.n.c.now, from, d.bytes)
	m.went()
}

func (m *deployed) due() time.Duration {
	if at, ok := m.NextEvent(); ok {
		return max(at, m.n.c.now)
	}
	return core.Never
}

func (m *deployed) tick() {
	m.Tick(m.n.c.now)
	m.went()
}

var errModel = errors.New("the model refuses the call")

func (m *deployed) begin(s *step, done func(err error)) {
	m.ended = done
	call := m.send
	if s.receives {
		call = m.recv
	}
	if err := call(s); err != nil {
		panic(errors.Join(errModel, err))
	}
	m.went()
}
