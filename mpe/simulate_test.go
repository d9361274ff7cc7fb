package mpe

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var (
	seeds     = flag.Int("seeds", 30, "how many programs the simulation makes of each kind")
	firstSeed = flag.Uint64("seed", 0, "the first seed of the simulation")
)

// A simulated program posts random sends and receives on a few ranks, cancels some, and
// in the end receives what is left. Then it is known of each message whether it was
// received, and how both sides have reported it.

// kind is a kind of cluster, and what its network may do.
type kind struct {
	name  string
	ranks int
	peer  func(local, remote int) Peer
	net   faults
	// ordered: messages have no tags and no communicators, and at least one word.
	ordered bool
	// fpga: rank 1 is a stand-in with the quirks of a deployed FPGA. After a loss, it may
	// wait forever.
	fpga bool
}

var kinds = []kind{
	{name: "cloudfpga", ranks: 3, peer: software, ordered: true},
	{name: "cloudfpga, losses", ranks: 3, peer: software, net: faults{loss: 0.03}, ordered: true},
	{name: "cloudfpga, losses and stalls", ranks: 3, peer: software, net: faults{loss: 0.02, stall: 0.03, cut: 0.002}, ordered: true},
	{name: "fpga", ranks: 2, peer: hostAndFPGA, ordered: true, fpga: true},
	{name: "fpga, losses", ranks: 2, peer: hostAndFPGA, net: faults{loss: 0.02}, ordered: true, fpga: true},
	{name: "fpga, stalls", ranks: 2, peer: hostAndFPGA, net: faults{stall: 0.1, hardware: 1}, ordered: true, fpga: true},
	{name: "extended", ranks: 3, peer: extendedPeer},
	{name: "extended, faults", ranks: 3, peer: extendedPeer, net: faults{loss: 0.05, duplicate: 0.03, corrupt: 0.02, late: 0.03}},
	{name: "extended, outages and stalls", ranks: 3, peer: extendedPeer, net: faults{loss: 0.02, late: 0.01, duplicate: 0.01, cut: 0.005, stall: 0.03, room: 60}},
}

// hostAndFPGA is rank 0 as a host, and rank 1 as a stand-in that knows no more of it than an
// FPGA does.
func hostAndFPGA(local, _ int) Peer {
	if local == 0 {
		rules := handshake.FPGAPeer(1)
		return Peer{Handshake: handshake.Config{
			Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20,
		}}
	}
	return Peer{Handshake: handshake.Config{
		Shape: protocol.FPGAShape(true), Timing: handshake.DeployedFPGA(1), MaxWords: 1 << 20,
		Quirks: handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true, CarryOver: true},
	}}
}

// posted is an operation of a program.
type posted struct {
	rank int
	op   Operation
	at   handshake.Instant
	// cancel is when its caller's deadline expires; never if it has none.
	cancel handshake.Instant
	r      *Request
	id     uint32 // of the message of a send
	ended  bool
}

// program is what the ranks of a world do.
type program struct {
	kind
	*world
	posted []*posted
	strict bool
	// inCall: the FPGA is in a call, and does one at a time.
	inCall bool
	log    []string
}

// watcher is the Observer of all ranks of a program.
type watcher struct{ *program }

func (w watcher) Dropped(rank, peer int, d Drop) {
	w.note("rank %d: dropped from rank %d: %v %v", rank, peer, d.Reason, d.Header)
}

func (w watcher) Noted(rank, peer int, n Note) {
	w.note("rank %d: with rank %d: %v %v %v", rank, peer, n.Event, n.Header, n.Err)
}

func (w watcher) Done(int, Status, error)   {}
func (w watcher) TransportError(int, error) {}

// messageID is what a message is recognized by: its first word.
func messageID(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// fill writes a message that its ID determines.
func fill(b []byte, id uint32) {
	rng := rand.New(rand.NewPCG(uint64(id), 7))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	binary.LittleEndian.PutUint32(b, id)
}

// newProgram makes the program of a seed. Those of odd seeds have short messages, no
// deadlines, and a third of the losses: all of their operations have to succeed, unless an
// FPGA takes part.
func newProgram(t *testing.T, k kind, seed uint64) *program {
	strict := seed%2 == 1
	if strict {
		k.net.loss /= 3
	}
	p := &program{kind: k, world: newCores(t, seed, k.ranks, k.net, k.peer), strict: strict}
	for _, e := range p.cores {
		e.cfg.Observer = watcher{p}
	}
	if k.ordered {
		p.trace = func(what string, d datagram) {
			text := fmt.Sprintf("%d bytes", len(d.bytes))
			if h, err := protocol.CloudFPGA.Decode(d.bytes); err == nil {
				text = h.String() + ", " + text
			}
			p.note("%s %d→%d: %s", what, d.from, d.to, text)
		}
	}
	span := []time.Duration{time.Millisecond, 50 * time.Millisecond, 2 * time.Second}[p.rng.IntN(3)]
	when := func() handshake.Instant { return time.Duration(p.rng.Int64N(int64(span))) }
	deadline := func(rank int, at handshake.Instant) handshake.Instant {
		if strict || k.fpga && rank == 1 || p.rng.IntN(12) > 0 { // an FPGA cannot cancel
			return never
		}
		return at + when()
	}
	for id := range uint32(5 + p.rng.IntN(30)) {
		from := p.rng.IntN(k.ranks)
		to := (from + 1 + p.rng.IntN(k.ranks-1)) % k.ranks
		sizes := []int{1, 2, 3, 90, 346, 347, 348, 700, 1061, 5000, 40_000}
		if strict {
			sizes = sizes[:9]
		}
		words := sizes[p.rng.IntN(len(sizes))]
		b := make([]byte, 4*words)
		fill(b, id+1)
		send := Operation{Kind: OpSend, Peer: to, Buf: b}
		recv := Operation{Kind: OpRecv, Peer: from, Buf: make([]byte, 4*40_000)}
		if !k.ordered {
			if p.rng.IntN(4) == 0 {
				send.Kind = OpSendSync
			}
			send.Tag, send.Comm = p.rng.IntN(3), uint32(p.rng.IntN(3))
			recv.Tag, recv.Comm = send.Tag, send.Comm
			if send.Comm == 2 { // all of its receives are from any source
				recv.Peer, recv.Tag = AnySource, AnyTag
			}
		}
		at, there := when(), when()
		p.posted = append(p.posted,
			&posted{rank: from, op: send, at: at, cancel: deadline(from, at), id: id + 1},
			&posted{rank: to, op: recv, at: there, cancel: deadline(to, there)})
	}
	return p
}

// note notes what happens, for the reader of a seed that fails.
func (p *program) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf("%12v ", p.now)+fmt.Sprintf(format, args...))
}

// run runs the program until end, or until nothing more happens.
func (p *program) run(end handshake.Instant) {
	for {
		var next *posted
		at := end
		for _, o := range p.posted {
			switch {
			case o.r == nil && p.fpga && o.rank == 1 && p.inCall:
			case o.r == nil && max(o.at, p.now) < at:
				next, at = o, max(o.at, p.now)
			case o.r != nil && !o.r.over() && o.cancel < at:
				next, at = o, o.cancel
			}
		}
		if wire := p.next(); wire <= at && wire != never {
			p.step()
		} else if next == nil {
			p.now = max(p.now, end)
			return
		} else {
			p.now = max(p.now, at)
			p.do(next)
		}
		for _, o := range p.posted {
			if o.r != nil && o.r.over() && !o.ended {
				o.ended = true
				if p.fpga && o.rank == 1 {
					p.inCall = false
				}
				p.note("rank %d: kind %d peer %d comm %d tag %d: ended, id %d, %v", o.rank, o.op.Kind, o.r.status.Peer, o.op.Comm, o.r.status.Tag, messageID(o.op.Buf), o.r.err)
			}
		}
	}
}

// do posts an operation, or has its deadline expire.
func (p *program) do(o *posted) {
	p.event(o.rank, func(e *core) {
		if o.r != nil {
			e.endWait(o.r, context.DeadlineExceeded, nil)
			return
		}
		p.note("rank %d: kind %d peer %d comm %d tag %d: posted, %d bytes, id %d, deadline %v", o.rank, o.op.Kind, o.op.Peer, o.op.Comm, o.op.Tag, len(o.op.Buf), o.id, o.cancel)
		o.r = e.request(&o.op)
		p.inCall = p.inCall || p.fpga && o.rank == 1
		if err := e.startRequest(o.r, false); err != nil {
			e.finish(o.r, err)
		}
	})
}

// finish ends what is left: it expires, and then all messages that are there are received.
func (p *program) finish() {
	for _, o := range p.posted {
		o.cancel = min(o.cancel, p.now)
	}
	p.run(p.now + time.Minute)
	for rank, e := range p.cores {
		for _, comm := range []uint32{0, 1, 2} {
			for range len(p.posted) { // some fail: their sender has aborted them
				if _, ok := e.found(Match{Source: AnySource, Tag: AnyTag, Comm: comm}); !ok {
					break
				}
				o := &posted{rank: rank, op: Operation{Kind: OpRecv, Peer: AnySource, Tag: AnyTag, Comm: comm, Buf: make([]byte, 4*40_000)}, at: p.now, cancel: p.now + 30*time.Second}
				p.posted = append(p.posted, o)
				p.run(p.now + time.Minute)
			}
		}
	}
}

// check returns what is wrong with what has happened.
func (p *program) check() error {
	received := map[uint32]int{}
	sends := map[uint32]*posted{}
	for _, o := range p.posted {
		if !o.r.over() {
			return fmt.Errorf("rank %d: an operation with rank %d has not ended", o.rank, o.op.Peer)
		}
		if o.op.Kind != OpRecv {
			sends[o.id] = o
		}
	}
	for _, o := range p.posted {
		if o.op.Kind != OpRecv || o.r.err != nil {
			continue
		}
		b := o.op.Buf[:o.r.status.Bytes]
		id := messageID(b)
		s := sends[id]
		if s == nil || s.op.Peer != o.rank || s.rank != o.r.status.Peer || s.op.Comm != o.op.Comm || !p.ordered && s.op.Tag != o.r.status.Tag {
			return fmt.Errorf("rank %d has received message %d from rank %d, which was not sent so", o.rank, id, o.r.status.Peer)
		}
		want := make([]byte, len(s.op.Buf))
		fill(want, id)
		if !slices.Equal(b, want) {
			return fmt.Errorf("rank %d has received message %d from rank %d with other content", o.rank, id, o.r.status.Peer)
		}
		if received[id]++; received[id] > 1 {
			return fmt.Errorf("rank %d has received message %d twice", o.rank, id)
		}
	}
	for id, s := range sends {
		if s.r.err == nil && received[id] == 0 {
			return fmt.Errorf("rank %d has sent message %d to rank %d, which does not have it", s.rank, id, s.op.Peer)
		}
	}
	if p.kind.net.loss > 0 && p.fpga {
		return nil // what was lost may have ended anything
	}
	for rank, e := range p.cores {
		for _, peer := range e.peers {
			if peer != nil && peer.events[EventWouldWedge] > 0 {
				return fmt.Errorf("rank %d has sent stand-in %d what would wedge an FPGA", peer.rank, rank)
			}
		}
	}
	if p.kind.net.stall > 0 && p.ordered {
		return nil // a host that is stopped in mid-message has to start it over, each time
	}
	cancelled := slices.ContainsFunc(p.posted, func(o *posted) bool { return o.op.Kind != OpRecv && o.r.err != nil })
	for _, o := range p.posted { // nothing but its own deadline ends an operation
		switch {
		case o.r.err == nil || errors.Is(o.r.err, context.DeadlineExceeded) && !p.strict:
		case p.ordered && o.op.Kind == OpRecv && cancelled && errors.Is(o.r.err, handshake.ErrTimeout):
			// The SEND_REQUEST of a send that was cancelled has matched it.
		case p.ordered && p.kind.net.loss > 0 && !p.strict && errors.Is(o.r.err, handshake.ErrTimeout):
			// Each time some datagram of a long message was lost.
		default:
			return fmt.Errorf("rank %d: an operation with rank %d has failed: %w", o.rank, o.op.Peer, o.r.err)
		}
	}
	return nil
}

// TestSimulation: of every message its sender's report is true, and it is received at most
// once and intact, whatever the network and the programs do.
func TestSimulation(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			messages, failed, n := 0, 0, *seeds
			if testing.Short() {
				n = min(n, 5)
			}
			for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
				p := newProgram(t, k, seed)
				p.run(30 * time.Second)
				p.finish()
				if err := p.check(); err != nil {
					for _, line := range p.log {
						t.Log(line)
					}
					t.Fatalf("%v; again: go test ./mpe -run 'TestSimulation/%s$' -seed %d -seeds 1", err, k.name, seed)
				}
				for _, o := range p.posted {
					if o.op.Kind != OpRecv {
						messages++
						if o.r.err != nil {
							failed++
						}
					}
				}
			}
			t.Logf("%d messages, of which %d have failed", messages, failed)
		})
	}
}
