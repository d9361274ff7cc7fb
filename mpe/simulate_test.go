package mpe

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
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
	// collective: ranks make collective calls as well.
	collective bool
	// restarts: ranks crash, and start again without what they knew.
	restarts bool
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
	{name: "collectives", ranks: 4, peer: extendedPeer, collective: true},
	{name: "collectives, faults", ranks: 4, peer: extendedPeer, net: faults{loss: 0.03, duplicate: 0.02, corrupt: 0.01, late: 0.02, stall: 0.01}, collective: true},
	{name: "restarts", ranks: 3, peer: extendedPeer, net: faults{loss: 0.02, duplicate: 0.02, late: 0.02}, restarts: true},
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
	// call is a collective call, to be made when the call before it has ended, and want its
	// result. They are in place of op and id.
	call   *collective.Operation
	want   []byte
	before *posted
	// crash: the rank crashes then, and starts again. It is in place of op, too; lost: the
	// operation was under way when its rank crashed.
	crash, lost bool
	// group: operations of the same one belong together, as a send and its receive do.
	group int
}

// over reports whether it has ended, or will not.
func (o *posted) over() bool { return o.lost || o.r != nil && o.r.over() }

// program is what the ranks of a world do.
type program struct {
	kind
	*world
	posted []*posted
	strict bool
	// inCall: the FPGA is in a call, and does one at a time.
	inCall bool
	// all is how many groups of operations there are.
	all int
	log []string
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
			&posted{rank: from, op: send, at: at, cancel: deadline(from, at), id: id + 1, group: int(id)},
			&posted{rank: to, op: recv, at: there, cancel: deadline(to, there), group: int(id)})
	}
	if k.collective {
		p.addCalls(when)
	}
	if k.restarts && !strict {
		for range 1 + p.rng.IntN(3) {
			p.posted = append(p.posted, &posted{rank: p.rng.IntN(k.ranks), at: when(), crash: true, cancel: never, group: p.nextGroup()})
		}
	}
	p.all = p.nextGroup()
	return p
}

// nextGroup is the number of a group that no operation has yet.
func (p *program) nextGroup() int { return p.posted[len(p.posted)-1].group + 1 }

// addCalls has all ranks make some collective calls, in the same order.
func (p *program) addCalls(when func() handshake.Instant) {
	members := make([]int, p.ranks)
	for rank := range members {
		members[rank] = rank
	}
	last := make([]*posted, p.ranks)
	for number := range 1 + p.rng.IntN(6) {
		call := coll.Call{
			Collective: []coll.Collective{coll.Barrier, coll.Bcast, coll.Allreduce, coll.Allgather, coll.Alltoall}[p.rng.IntN(5)],
			Ranks:      p.ranks, Root: p.rng.IntN(p.ranks), Elem: 8,
			Bytes: 8 * []int{1, 2, 100, 3000, 40_000}[p.rng.IntN(5)],
		}
		user, group := p.rng.IntN(2) == 0, p.nextGroup()
		for rank := range p.ranks {
			o := newCall(call, rank, uint64(number), user)
			o.call.Members, o.call.Tag = members, number+1
			o.at, o.cancel, o.before, o.group = when(), never, last[rank], group
			if !p.strict && p.rng.IntN(30) == 0 {
				o.cancel = o.at + when()
			}
			p.posted = append(p.posted, o)
			last[rank] = o
		}
	}
}

// newCall is a rank's part in a call, with the result that it must have. Each rank's
// element i is a function of the rank, of i and of salt.
func newCall(call coll.Call, rank int, salt uint64, user bool) *posted {
	call.Rank = rank
	n := call.Bytes / 8
	vector := func(rank, to int) []byte {
		b := make([]byte, 0, call.Bytes)
		for i := range n {
			b = binary.LittleEndian.AppendUint64(b, (salt+1)*uint64(rank*call.Ranks+to+1)+uint64(i))
		}
		return b
	}
	o := &posted{rank: rank, call: &collective.Operation{Call: call, Comm: 7}}
	switch c := o.call; call.Collective {
	case coll.Barrier:
		c.Call.Bytes = 0
	case coll.Bcast:
		o.want = vector(call.Root, 0)
		c.Recv = make([]byte, call.Bytes)
		if rank == call.Root {
			copy(c.Recv, o.want)
		}
	case coll.Allreduce:
		c.Send, c.Recv, c.Type = vector(rank, 0), make([]byte, call.Bytes), op.Uint64
		if c.Op = op.Sum; user {
			c.User = func(in, inout []byte) error {
				for ; len(in) > 0; in, inout = in[8:], inout[8:] {
					binary.LittleEndian.PutUint64(inout, binary.LittleEndian.Uint64(inout)+binary.LittleEndian.Uint64(in))
				}
				return nil
			}
		}
		o.want = make([]byte, call.Bytes)
		for r := range call.Ranks {
			v := vector(r, 0)
			for i := range n {
				binary.LittleEndian.PutUint64(o.want[8*i:], binary.LittleEndian.Uint64(o.want[8*i:])+binary.LittleEndian.Uint64(v[8*i:]))
			}
		}
	case coll.Allgather:
		c.Send, c.Recv = vector(rank, 0), make([]byte, call.Ranks*call.Bytes)
		for r := range call.Ranks {
			o.want = append(o.want, vector(r, 0)...)
		}
	case coll.Alltoall:
		c.Recv = make([]byte, call.Ranks*call.Bytes)
		for r := range call.Ranks {
			c.Send = append(c.Send, vector(rank, r)...)
			o.want = append(o.want, vector(r, rank)...)
		}
	}
	return o
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
			case o.r == nil && o.before != nil && !o.before.over() && slices.Contains(p.posted, o.before):
			case o.lost:
			case o.r == nil && max(o.at, p.now) < at:
				next, at = o, max(o.at, p.now)
			case o.r != nil && !o.over() && o.cancel < at:
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
			if o.r != nil && o.over() && !o.ended {
				o.ended = true
				if o.call != nil || o.lost {
					p.note("rank %d: ended, lost %v, %v", o.rank, o.lost, o.r.err)
					continue
				}
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
	if o.crash {
		p.crash(o)
		return
	}
	for o.call != nil && o.r != nil && !o.over() && o.r.call.CancelComputing(context.DeadlineExceeded) {
		p.step() // an engine waits for the user's function, which has the buffers
	}
	p.event(o.rank, func(e *core) {
		if o.r != nil {
			e.endWait(o.r, context.DeadlineExceeded, nil)
			return
		}
		if o.call != nil {
			p.call(e, o)
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

// call makes a collective call.
func (p *program) call(e *core, o *posted) {
	p.note("rank %d: %v of %d bytes, number %d, deadline %v", o.rank, o.call.Call.Collective, o.call.Call.Bytes, o.call.Tag, o.cancel)
	r, err := e.prepare(o.call)
	if err != nil {
		panic(err)
	}
	o.r = r
	if err := e.startCall(r); err != nil {
		e.finish(r, err)
	}
}

// crash has a rank start again. What it had under way is lost.
func (p *program) crash(o *posted) {
	p.note("rank %d: crashes, and starts again", o.rank)
	o.lost = true
	for _, other := range p.posted {
		if other.rank == o.rank && other.r != nil && !other.over() {
			other.lost = true
		}
	}
	p.make(o.rank).cfg.Observer = watcher{p}
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
	crashed := make([]bool, p.ranks)
	for _, o := range p.posted {
		if o.crash {
			crashed[o.rank] = true
			continue
		}
		if !o.over() {
			return fmt.Errorf("rank %d: an operation with rank %d has not ended", o.rank, o.op.Peer)
		}
		if o.call != nil {
			if o.r.err == nil && !slices.Equal(o.call.Recv, o.want) {
				return fmt.Errorf("rank %d: %v number %d has another result", o.rank, o.call.Call.Collective, o.call.Tag)
			}
		} else if o.op.Kind != OpRecv {
			sends[o.id] = o
		}
	}
	for _, o := range p.posted {
		if o.lost || o.call != nil || o.op.Kind != OpRecv || o.r.err != nil {
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
		if !s.lost && s.r.err == nil && received[id] == 0 && !crashed[s.op.Peer] && !crashed[s.rank] {
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
	if slices.Contains(crashed, true) {
		return nil // which ends operations of the others
	}
	cancelled := slices.ContainsFunc(p.posted, func(o *posted) bool { return o.op.Kind != OpRecv && o.r.err != nil })
	for _, o := range p.posted { // nothing but its own deadline ends an operation
		switch {
		case o.call != nil && !p.strict: // some rank's deadline has ended the call
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

// simulate runs the program of a seed: of it the groups of operations in kept, unless that
// is nil, on a network that is without faults from the datagram number calm on.
func simulate(t *testing.T, k kind, seed uint64, kept []int, calm int) (*program, error) {
	t.Helper()
	p := newProgram(t, k, seed)
	p.calm = calm
	if kept != nil {
		p.posted = slices.DeleteFunc(p.posted, func(o *posted) bool { return !slices.Contains(kept, o.group) })
	}
	p.run(30 * time.Second)
	p.finish()
	return p, p.check()
}

// shrink searches for a part of a program that fails in the same way, with fewer faults. It
// returns the last that it has run.
func shrink(t *testing.T, p *program, k kind, seed uint64, failure error) *program {
	t.Helper()
	sameAs := func(err error) bool {
		same := func(err error) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsDigit(r) {
					return -1
				}
				return r
			}, err.Error())
		}
		return err != nil && same(err) == same(failure)
	}
	kept := make([]int, p.nextGroup())
	for i := range kept {
		kept[i] = i
	}
	calm := p.sent
	for size := len(kept); size > 0; size /= 2 {
		for from := 0; from < len(kept); {
			fewer := slices.Delete(slices.Clone(kept), from, min(from+size, len(kept)))
			if less, err := simulate(t, k, seed, fewer, calm); sameAs(err) {
				p, kept = less, fewer
			} else {
				from += size
			}
		}
	}
	for step := calm; step > 0; step /= 2 {
		for calm >= step {
			less, err := simulate(t, k, seed, kept, calm-step)
			if !sameAs(err) {
				break
			}
			p, calm = less, calm-step
		}
	}
	t.Logf("of %d groups of operations %d are needed, with faults of the first %d datagrams", p.all, len(kept), calm)
	return p
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
				p, err := simulate(t, k, seed, nil, math.MaxInt)
				if err != nil {
					for _, line := range shrink(t, p, k, seed, err).log {
						t.Log(line)
					}
					t.Fatalf("%v; again: go test ./mpe -run 'TestSimulation/%s$' -seed %d -seeds 1", err, k.name, seed)
				}
				for _, o := range p.posted {
					if o.op.Kind != OpRecv && !o.crash && !o.lost {
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
