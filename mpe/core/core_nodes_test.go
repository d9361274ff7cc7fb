package core

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/handshake/cpumodel"
	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// deployed is a model of a deployed node, in place of a core.
type deployed struct {
	model
	w    *world
	rank int
	// out returns the datagrams that the model has sent since the last call.
	out func() []datagram
	// send and recv begin a call. result returns the words that a receive got.
	send   func(to int, words []uint32) error
	recv   func(from, words int) error
	result func() ([]uint32, error)
	// stall stops the node for a while. It is nil for hardware.
	stall func(lasts time.Duration)
	// busy reports whether a call is pending. broken returns the reason why it never returns, or "".
	busy   func() bool
	broken func() string
	// stuck reports whether the node is in a call that it cannot leave by itself, or has crashed.
	stuck func() bool
}

type model interface {
	Datagram(now time.Duration, from int, b []byte)
	Tick(now time.Duration)
	NextEvent() (time.Duration, bool)
}

// errOverrun means that the wrapper wrote beyond its caller's buffer.
var errOverrun = errors.New("the buffer of the FPGA was overrun")

// newFPGA returns the model of an FPGA's MPE as a rank.
func newFPGA(w *world, rank int, peers []int) *deployed {
	m := mpemodel.New(mpemodel.Config{Rank: rank, Peers: peers})
	return &deployed{
		model: m, w: w, rank: rank,
		out: func() (sent []datagram) {
			for _, p := range m.TakePackets() {
				sent = append(sent, datagram{to: p.To, bytes: p.Bytes})
			}
			return sent
		},
		send: func(to int, words []uint32) error { return m.Send(w.now, to, words, protocol.Int) },
		recv: func(from, words int) error { return m.Recv(w.now, from, uint32(words), protocol.Int) },
		result: func() ([]uint32, error) {
			words, overrun, _ := m.Result()
			if overrun {
				return words, errOverrun
			}
			return words, nil
		},
		busy:   m.Busy,
		broken: func() string { why, _ := m.Wedged(); return why },
		stuck:  func() bool { _, is := m.Wedged(); return is },
	}
}

// newUpstream returns the model of a process with upstream's CPU library as a rank.
func newUpstream(w *world, rank int, peers []int) *deployed {
	m := cpumodel.New(cpumodel.Config{Rank: rank, Peers: peers})
	return &deployed{
		model: m, w: w, rank: rank,
		out: func() (sent []datagram) {
			for _, p := range m.TakePackets() {
				sent = append(sent, datagram{to: p.To, bytes: p.Bytes})
			}
			return sent
		},
		send:   func(to int, words []uint32) error { return m.Send(w.now, to, words) },
		recv:   func(from, words int) error { return m.Recv(w.now, from, words) },
		result: func() ([]uint32, error) { words, _ := m.Result(); return words, nil },
		stall:  func(lasts time.Duration) { m.Stall(w.now, lasts) },
		busy:   func() bool { _, crashed := m.Crashed(); return crashed || m.Busy() },
		broken: func() string { why, _ := m.Crashed(); return why },
		stuck:  func() bool { _, is := m.Stuck(); return is },
	}
}

// due returns the time of the node's next timeout, or Never.
func (n *deployed) due() handshake.Instant {
	if at, ok := n.NextEvent(); ok {
		return max(at, n.w.now)
	}
	return Never
}

// transmit puts the datagrams that the model has sent on the network.
func (n *deployed) transmit() {
	for _, d := range n.out() {
		n.w.transmit(n.rank, d.to, RxDatagram, d.bytes)
	}
}

func (n *deployed) tick() {
	n.Tick(n.w.now)
	n.transmit()
}

func (n *deployed) datagram(d datagram) {
	if n.stall != nil && n.w.happens(n.w.net.stall) {
		n.stall(time.Duration(n.w.rng.IntN(400)) * time.Millisecond)
	}
	n.Datagram(n.w.now, d.from, d.bytes)
	n.transmit()
}

// begin begins a program's operation.
func (n *deployed) begin(o *posted) {
	var err error
	if o.op.Kind == OpRecv {
		err = n.recv(o.op.Peer, len(o.op.Buf)/protocol.WordLen)
	} else {
		err = n.send(o.op.Peer, unpack(o.op.Buf))
	}
	if err != nil { // it has crashed
		o.lost = true
		return
	}
	o.r = &Request{kind: o.op.Kind, peer: o.op.Peer}
	n.transmit()
}

// end completes the pending operation if the model has completed its call.
func (n *deployed) end(o *posted) {
	if n.busy() {
		return
	}
	o.r.Status = Status{Peer: o.op.Peer, Bytes: int64(len(o.op.Buf))}
	if o.op.Kind == OpRecv {
		words, err := n.result()
		clear(o.op.Buf)
		for i, w := range words[:min(len(words), len(o.op.Buf)/protocol.WordLen)] {
			binary.LittleEndian.PutUint32(o.op.Buf[i*protocol.WordLen:], w)
		}
		o.r.Err = err
	}
	o.r.Done = true
}

func unpack(b []byte) []uint32 {
	words := make([]uint32, len(b)/protocol.WordLen)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(b[i*protocol.WordLen:])
	}
	return words
}
