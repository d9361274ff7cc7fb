package extended

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A peer may send any packet at any time: genuine packets, packets forged in any field but the checksum, and noise. The
// Conn nevertheless keeps its promises, which node and check verify, and needs no more memory than with an honest peer.

// forger is a world in which a script determines the packets of rank 1.
type forger struct {
	*world
	script []byte
	seen   [2][][]byte // latest packets of each rank
}

func (f *forger) byte() int {
	if len(f.script) == 0 {
		return 0
	}
	b := f.script[0]
	f.script = f.script[1:]
	return int(b)
}

func (f *forger) number() uint32 {
	var b [4]byte
	n := copy(b[:], f.script)
	f.script = f.script[n:]
	return binary.LittleEndian.Uint32(b[:])
}

// near returns a number that is often close to n.
func (f *forger) near(n uint32) uint32 {
	switch k := f.byte(); {
	case k < 200:
		return n + uint32(k) - 100
	case k < 230:
		return n + 1<<31 + uint32(k) - 215
	}
	return f.number()
}

// forge changes a field of a packet.
func (f *forger) forge(h *protocol.ExtHeader, payload []byte) []byte {
	c := &f.nodes[0].conn.session
	switch f.byte() % 16 {
	case 0:
		h.Type = protocol.Type(1 + f.byte()%5)
	case 1:
		h.Call = protocol.Call(f.byte() % 5)
	case 2:
		h.Flags = protocol.ExtFlags(f.byte() % 32)
	case 3:
		h.Session = protocol.Session(f.near(uint32(h.Session)))
	case 4:
		h.PeerSession = protocol.Session(f.near(uint32(h.PeerSession)))
	case 5:
		h.Number = f.near(f.nodes[0].conn.arrivals.firstMissing)
	case 6:
		h.Acknowledged = f.near(f.nodes[0].conn.path.flight.nextNumber)
	case 7:
		h.Message = f.near(f.nodes[0].conn.recvs.nextMessage)
	case 8:
		h.Message = f.near(f.nodes[0].conn.sends.number)
	case 9:
		h.Comm = f.near(h.Comm)
	case 10:
		h.Tag = f.near(h.Tag)
	case 11:
		h.Length = f.near(h.Length)
	case 12:
		h.Offset, h.Clock = f.near(h.Offset), f.near(h.Clock)
	case 13:
		h.Session, h.PeerSession = max(c.remote, 1), c.local
	case 14:
		h.Src, h.Dst = uint32(f.byte()%3), uint32(f.byte()%2)
	case 15:
		payload = payload[:min(f.byte(), len(payload))]
	}
	return payload
}

// forged sends a modified copy of a packet from rank 1.
func (f *forger) forged() {
	packets := f.seen[1]
	if len(packets) == 0 {
		return
	}
	h, payload, _ := protocol.ParseExtended(packets[f.byte()%len(packets)])
	for range 1 + f.byte()%4 {
		payload = f.forge(&h, payload)
	}
	f.arrive(1, protocol.AppendExtended(nil, &h, payload), 0)
}

func (f *forger) step() {
	rank := f.byte() % 2
	n := f.nodes[rank]
	switch f.byte() % 16 {
	case 0, 1:
		op := SendOp{Tag: uint32(f.byte() % 3), Sync: f.byte()%8 == 0}
		if len(n.posted) < 200 {
			n.send(pattern([]int{0, 1, 50, 300, 5000}[f.byte()%5], 1), op)
		}
	case 2, 3:
		n.recv(uint32(f.byte()%3), int64([]int{0, 1, 50, 300, 5000}[f.byte()%5]))
	case 4:
		if len(n.posted) > 0 {
			n.cancel(n.posted[f.byte()%len(n.posted)].op.ID)
		}
	case 5, 6, 7, 8:
		f.forged()
	case 9:
		if k := min(f.byte(), len(f.script)); true {
			f.arrive(rank, f.script[:k:k], 0)
			f.script = f.script[k:]
		}
	case 10:
		n.acts = n.conn.Reconnected(f.now, n.acts)
		n.do()
	case 11:
		if f.byte()%8 == 0 {
			f.start(rank, f.nodes[rank].cfg)
		}
	case 12:
		if f.byte()%8 == 0 {
			n.acts = n.conn.Close(f.now, n.acts)
			n.do()
		}
	case 13:
		for _, s := range f.seen[rank] {
			f.arrive(rank, s, 0)
		}
	case 14:
		n.tick()
	case 15:
		n.report = func() []byte { return pattern(f.byte()*33, 2) }
		n.ask()
	}
	f.wait([]time.Duration{0, latency, time.Millisecond, 100 * time.Millisecond, 2 * time.Second}[f.byte()%5])
}

// runForged executes a script and returns the first violation.
func runForged(script []byte) error {
	cfg := Config{MaxPayload: 100, EagerLimit: 400, EagerBytes: 1000, Messages: 8, Window: 30, MaxLength: 4000}
	cfg.Timing = DefaultTiming(false)
	cfg.Timing.UnreachableAfter = time.Second
	f := &forger{world: newWorld(cfg), script: script}
	f.fault = func(from, _ int, b []byte) []fate {
		f.seen[from] = append(f.seen[from], b)
		if len(f.seen[from]) > 50 {
			f.seen[from] = f.seen[from][1:]
		}
		if len(f.script)%7 == 3 {
			return nil
		}
		return onTime
	}
	for steps := 0; len(f.script) > 0 && steps < 2000; steps++ {
		before := f.sent[0]
		f.step()
		if err := f.err(); err != nil {
			return err
		}
		for _, n := range f.nodes {
			if err := n.bounded(); err != nil {
				return fmt.Errorf("%v: %d: %w", f.now, n.rank, err)
			}
		}
		if n := f.sent[0] - before; n > 2000 {
			return fmt.Errorf("%v: %d packets in one step", f.now, n)
		}
	}
	return nil
}

// bounded verifies that the memory that a peer can make a Conn use is bounded by the limits granted to the peer.
func (n *node) bounded() error {
	c := n.conn
	open := 0
	for m := c.recvs.first; m != nil; m = m.next {
		if !m.accepted {
			open++
		}
	}
	switch {
	case open > c.cfg.Messages:
		return fmt.Errorf("%d messages are open that no receive has matched", open)
	case len(c.controls.queue) > 2*(len(n.inbound)+len(n.posted))+c.cfg.Messages+16:
		return fmt.Errorf("%d answers wait", len(c.controls.queue))
	case len(c.path.flight.ring) > maxWindow, len(c.recvs.cancelRequests) > c.cfg.Messages:
		return fmt.Errorf("a ring of %d, %d cancellations", len(c.path.flight.ring), len(c.recvs.cancelRequests))
	case len(c.recvs.byNumber.slots) > 4*max(int(c.recvs.byNumber.count), len(n.inbound))+16:
		return fmt.Errorf("an index of %d", len(c.recvs.byNumber.slots))
	}
	return nil
}

func FuzzConn(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(noise(seed, 600))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if err := runForged(script); err != nil {
			t.Fatal(err)
		}
	})
}

func noise(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 3))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestForger runs the same test as FuzzConn on many random scripts.
func TestForger(t *testing.T) {
	scripts := 10 * *worlds
	if testing.Short() {
		scripts = 300
	}
	for seed := range scripts {
		if err := runForged(noise(uint64(seed), 600)); err != nil {
			t.Fatalf("script %d: %v", seed, err)
		}
	}
}
