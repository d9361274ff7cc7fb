package core

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var (
	seeds     = flag.Int("seeds", 10, "how many programs the simulation makes of each kind")
	firstSeed = flag.Uint64("seed", 0, "the first seed of the simulation")
)

// A simulated program posts random sends and receives on a few ranks, cancels some, and finally receives the
// remaining messages. Then the test knows, for each message, whether it was received, and what both sides reported.

// kind is a kind of cluster, with the faults of its network.
type kind struct {
	name  string
	ranks int
	peer  func(local, remote int) Peer
	net   faults
	// ordered means that messages have no tags and no communicators, and at least one word.
	ordered bool
	// collective means that ranks also make collective calls.
	collective bool
	// restarts means that ranks crash and restart without their state. closes means that ranks close. changes means
	// that ranks get other parameters.
	restarts, closes, changes bool
	// oneWay means that rank 0 sends short messages to the others, which answer with ACKs only.
	oneWay bool
	// floods means that rank 0 sends many messages that are received only at the end; some may be refused.
	floods bool
	// fpga means that rank 1 is a stand-in with the quirks of a deployed FPGA. After a loss, it may wait forever.
	fpga bool
	// nodes are models of deployed nodes, which exchange messages with rank 0 only. After a loss, they may
	// wait forever, too.
	nodes []newNode
}

var kinds = []kind{
	{name: "cloudfpga", ranks: 3, peer: software, ordered: true},
	{name: "cloudfpga, losses", ranks: 3, peer: software, net: faults{loss: 0.03}, ordered: true},
	{name: "cloudfpga, losses and stalls", ranks: 3, peer: software, net: faults{loss: 0.02, stall: 0.03, cut: 0.002},
		ordered: true},
	{name: "fpga", ranks: 2, peer: hostAndFPGA, ordered: true, fpga: true},
	{name: "fpga, losses", ranks: 2, peer: hostAndFPGA, net: faults{loss: 0.02}, ordered: true, fpga: true},
	{name: "fpga, stalls", ranks: 2, peer: hostAndFPGA, net: faults{stall: 0.1, hardware: 1}, ordered: true,
		fpga: true},
	{name: "nodes", ranks: 3, peer: hostAndNodes, nodes: nodes, ordered: true},
	{name: "nodes, losses", ranks: 3, peer: hostAndNodes, nodes: nodes, net: faults{loss: 0.01, most: 2},
		ordered: true},
	{name: "nodes, a late SEND_REQUEST", ranks: 3, peer: hostAndNodes, nodes: nodes, net: faults{repeat: 0.05, most: 1},
		ordered: true},
	{name: "nodes, stalls", ranks: 3, peer: hostAndNodes, nodes: nodes, net: faults{stall: 0.02}, ordered: true},
	{name: "cloudfpga, slow writes", ranks: 3, peer: software, net: faults{loss: 0.01, slow: 0.2}, ordered: true},
	{name: "cloudfpga, streams", ranks: 3, peer: software,
		net: faults{stream: true, reset: 0.003, stall: 0.02, slow: 0.2}, ordered: true},
	{name: "cloudfpga, silent streams", ranks: 3, peer: software, net: faults{stream: true, halt: 0.002},
		ordered: true},
	{name: "extended", ranks: 3, peer: extendedPeer},
	{name: "extended, floods", ranks: 3, peer: boundedPeer, floods: true},
	{name: "extended, floods and faults", ranks: 3, peer: boundedPeer,
		net: faults{loss: 0.05, duplicate: 0.03, corrupt: 0.02, late: 0.03}, floods: true},
	{name: "extended, floods with memory", ranks: 3, peer: boundedPeer,
		net: faults{stream: true, memory: true, reset: 0.005, stall: 0.02}, floods: true},
	{name: "extended, floods and restarts", ranks: 3, peer: boundedPeer,
		net: faults{loss: 0.02, duplicate: 0.02, late: 0.02}, floods: true, restarts: true},
	{name: "extended, one way and stalls", ranks: 3, peer: extendedPeer, net: faults{stall: 0.05}, oneWay: true},
	{name: "extended, streams", ranks: 3, peer: extendedPeer, net: faults{stream: true, reset: 0.01, stall: 0.02}},
	{name: "extended, restarts with streams", ranks: 3, peer: extendedPeer, net: faults{stream: true, reset: 0.002},
		restarts: true},
	{name: "extended, memory", ranks: 3, peer: extendedPeer,
		net: faults{stream: true, memory: true, reset: 0.01, stall: 0.02}},
	{name: "extended, restarts with memory", ranks: 3, peer: extendedPeer,
		net: faults{stream: true, memory: true, reset: 0.002}, restarts: true},
	{name: "extended, closes with memory", ranks: 3, peer: extendedPeer,
		net: faults{stream: true, memory: true, reset: 0.002}, closes: true, changes: true},
	{name: "collectives, memory", ranks: 4, peer: extendedPeer,
		net: faults{stream: true, memory: true, reset: 0.002, stall: 0.01}, collective: true},
	{name: "extended, bursts and clocks", ranks: 3, peer: extendedPeer,
		net: faults{burst: 0.01, jump: 0.01, stall: 0.01}},
	{name: "extended, faults", ranks: 3, peer: extendedPeer,
		net: faults{loss: 0.05, duplicate: 0.03, corrupt: 0.02, late: 0.03}},
	{name: "collectives", ranks: 4, peer: extendedPeer, collective: true},
	{name: "collectives, faults", ranks: 4, peer: extendedPeer,
		net: faults{loss: 0.03, duplicate: 0.02, corrupt: 0.01, late: 0.02, stall: 0.01}, collective: true},
	{name: "extended, MTUs", ranks: 3, peer: discoveringPeer, net: faults{mtus: []int{1200, 1252, 1472, 8972}}},
	{name: "extended, MTUs that change and losses", ranks: 3, peer: discoveringPeer,
		net: faults{mtus: []int{1200, 1252, 1472, 8972}, reroute: 0.02, loss: 0.02, late: 0.02}},
	{name: "collectives, MTUs that change", ranks: 4, peer: discoveringPeer,
		net: faults{mtus: []int{1200, 1472, 8972}, reroute: 0.01, loss: 0.01, stall: 0.01}, collective: true,
		closes: true},
	{name: "restarts and MTUs", ranks: 3, peer: discoveringPeer,
		net: faults{mtus: []int{1200, 1472, 8972}, reroute: 0.01, loss: 0.02, duplicate: 0.02}, restarts: true},
	{name: "restarts", ranks: 3, peer: extendedPeer, net: faults{loss: 0.02, duplicate: 0.02, late: 0.02},
		restarts: true},
	{name: "extended, closes and changes", ranks: 3, peer: extendedPeer, net: faults{loss: 0.02, late: 0.02},
		closes: true, changes: true},
	{name: "collectives, closes", ranks: 4, peer: extendedPeer, net: faults{loss: 0.02, late: 0.02}, collective: true,
		closes: true},
	{name: "cloudfpga, changes", ranks: 3, peer: software, net: faults{loss: 0.02, stall: 0.01}, ordered: true,
		changes: true},
	{name: "cloudfpga, closes", ranks: 3, peer: software, net: faults{loss: 0.02}, ordered: true, closes: true},
	{name: "extended, outages and stalls", ranks: 3, peer: extendedPeer,
		net: faults{loss: 0.02, late: 0.01, duplicate: 0.01, cut: 0.005, stall: 0.03, room: 60}},
}

// hostAndFPGA configures rank 0 as a host, and rank 1 as a stand-in that knows no more about it than an FPGA does.
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

// nodes are an FPGA and a process with upstream's CPU library.
var nodes = []newNode{nil, newFPGA, newUpstream}

// hostAndNodes configures rank 0 as a host of nodes.
func hostAndNodes(_, remote int) Peer {
	rules := handshake.FPGAPeer(1)
	if remote == 2 {
		rules = handshake.CPUPeer()
	}
	return Peer{Handshake: handshake.Config{
		Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20,
	}}
}

// program is the program of the ranks of a world.
type program struct {
	kind
	*world
	posted []*posted
	strict bool
	// refuses means that some rank has no memory for some of the messages sent to it.
	refuses bool
	// failure is the first violation detected during the run, or nil.
	failure error
	// unreachable means that some rank has declared another one unreachable.
	unreachable bool
	// all is the number of groups of operations.
	all int
	// dead is the number of events with a peer in a dead end.
	dead int
	log  []string
}

// watcher is the Observer of all ranks of a program.
type watcher struct{ *program }

func (w watcher) Dropped(rank, peer int, d Drop) {
	w.note("rank %d: dropped from rank %d: %v %v", rank, peer, d.Reason, d.Header)
}

func (w watcher) Noted(rank, peer int, n Note) {
	w.unreachable = w.unreachable || n.Event == state.EventUnreachable
	w.note("rank %d: with rank %d: %v %v %v", rank, peer, n.Event, n.Header, n.Err)
}

func (w watcher) Done(int, Status, error)   {}
func (w watcher) TransportError(int, error) {}
func (w watcher) CallFailed(int, error)     {}

// node returns the model at a rank, or nil.
func (p *program) node(rank int) *deployed { return p.ports[rank].node }

// halted reports whether a rank was stopped forever.
func (p *program) halted(rank int) bool { return p.ports[rank].stopped == Never }

// note logs what happens, for a reader of a failing seed.
func (p *program) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf("%12v ", p.now)+fmt.Sprintf(format, args...))
}

// maxEvents is the maximum number of events of a program at one time. After a stall, all packets sent during the
// stall arrive at once, which may be thousands.
const maxEvents = 20_000

// run runs the program until end, or until nothing more happens.
func (p *program) run(end handshake.Instant) {
	for since, events := p.now, 0; p.failure == nil; events++ {
		if p.now != since {
			since, events = p.now, 0
		}
		if events == maxEvents {
			p.failure = fmt.Errorf("%d events at %v", events, p.now)
			return
		}
		next, at := p.nextOf(end)
		if wire := p.next(); wire <= at && wire != Never {
			p.step()
		} else if next == nil {
			p.now = max(p.now, end)
			return
		} else {
			p.now = max(p.now, at)
			p.do(next)
		}
		p.noteEnded()
		if p.failure == nil {
			p.failure = p.deadEnds()
		}
	}
}

// nextOf returns the next operation to be posted or cancelled, and its time, or nil if there is no
// operation before end.
func (p *program) nextOf(end handshake.Instant) (next *posted, at handshake.Instant) {
	at = end
	for _, o := range p.posted {
		switch {
		case o.lost:
		case o.r == nil && o.before != nil && !o.before.over() && slices.Contains(p.posted, o.before):
		case o.waiting && o.woken:
			next, at = o, p.now
		case o.waiting:
			if o.cancel < at {
				next, at = o, o.cancel
			}
		case o.r == nil && max(o.at, p.now) < at:
			next, at = o, max(o.at, p.now)
		case o.r != nil && !o.over() && o.cancel < at:
			next, at = o, o.cancel
		}
	}
	return next, at
}

// noteEnded logs completed operations.
func (p *program) noteEnded() {
	for _, o := range p.posted {
		if o.r == nil || o.ended {
			continue
		}
		if n := p.node(o.rank); n != nil && !o.lost {
			n.end(o)
		}
		if !o.over() {
			continue
		}
		o.ended = true
		if o.call != nil || o.lost {
			p.note("rank %d: ended, lost %v, %v", o.rank, o.lost, o.r.Err)
			continue
		}
		p.note("rank %d: kind %d peer %d comm %d tag %d: ended, id %d, %v", o.rank, o.op.Kind, o.r.Status.Peer,
			o.op.Comm, o.r.Status.Tag, messageID(o.op.Buf), o.r.Err)
	}
}

// do posts an operation, or lets its deadline expire.
func (p *program) do(o *posted) {
	if o.event != nil {
		o.lost = true
		o.event(o)
		return
	}
	if n := p.node(o.rank); n != nil || p.halted(o.rank) {
		switch {
		case n == nil || o.r != nil: // an operation that has begun does not end
			o.lost = true
		default:
			p.note("rank %d: kind %d peer %d: calls, %d bytes, id %d", o.rank, o.op.Kind, o.op.Peer, len(o.op.Buf),
				o.id)
			n.begin(o)
		}
		return
	}
	for o.call != nil && o.r != nil && !o.over() && o.r.Call.CancelComputing(context.DeadlineExceeded) {
		p.step() // an engine waits for the user's function, which is using the buffers
	}
	p.event(o.rank, func(e *Core) {
		switch {
		case o.r != nil && o.revoke:
			o.cancel = Never
			e.CancelRequest(o.r)
			return
		case o.r != nil:
			e.AbortWait(o.r, context.DeadlineExceeded, nil, false)
			return
		}
		if o.call != nil {
			p.call(e, o)
			return
		}
		if o.probe != nil && !p.probed(e, o) {
			return
		}
		p.note("rank %d: kind %d peer %d comm %d tag %d: posted, %d bytes, id %d, deadline %v", o.rank, o.op.Kind,
			o.op.Peer, o.op.Comm, o.op.Tag, len(o.op.Buf), o.id, o.cancel)
		o.r = new(Request)
		e.Init(o.r, &o.op)
		if err := e.startRequest(o.r, false); err != nil {
			e.finish(o.r, err)
		}
	})
}

// probed reports whether a probe has found a message, which its operation is to receive.
func (p *program) probed(e *Core, o *posted) bool {
	notified := !o.waiting || o.woken
	o.woken = false
	st, ok := e.Probes.Find(o.probe.Match)
	switch {
	case ok && !notified:
		p.failure = fmt.Errorf("rank %d: a probe was not notified of message from rank %d", o.rank, st.Peer)
	case !ok && !notified: // its deadline expired
		o.lost = true
	case !ok && !o.waiting:
		o.waiting = true
		e.Probes.Add(o.probe)
		return false
	case !ok:
		return false
	}
	if o.waiting {
		o.waiting = false
		e.Probes.Remove(o.probe)
	}
	if o.lost {
		return false
	}
	o.found = st
	o.op.Peer, o.op.Tag = st.Peer, st.Tag
	return true
}

// call makes a collective call.
func (p *program) call(e *Core, o *posted) {
	p.note("rank %d: %v of %d bytes, number %d, deadline %v", o.rank, o.call.Call.Collective, o.call.Call.Bytes,
		o.call.Tag, o.cancel)
	r := new(Request)
	if err := e.Prepare(r, new(collective.Execution), o.call); err != nil {
		panic(err)
	}
	o.r = r
	if err := e.StartCall(r); err != nil {
		e.finish(r, err)
	}
}

// crash restarts a rank. All of its operations in progress are lost.
func (p *program) crash(o *posted) {
	p.note("rank %d: crashes, and starts again", o.rank)
	for _, other := range p.posted {
		if other.rank == o.rank && (other.waiting || other.r != nil && !other.over()) {
			other.lost, other.waiting = true, false
		}
	}
	p.make(o.rank).cfg.Observer = watcher{p}
}

// close closes a rank. Operations that have not begun to transfer data end at once, and the other operations end
// some time later.
func (p *program) close(o *posted) {
	e := p.cores[o.rank]
	if e.state != running {
		return
	}
	p.note("rank %d: closes", o.rank)
	p.event(o.rank, (*Core).Drain)
	shut := func(e *Core) {
		if e.state != closed {
			p.note("rank %d: has closed", o.rank)
			e.Shutdown()
			p.ports[o.rank].stopped = Never
		}
	}
	after := func(d time.Duration, do func(e *Core)) {
		p.deliver(datagram{at: p.now + d, from: o.rank, to: o.rank, do: func() { p.event(o.rank, do) }})
	}
	after(AbortTime, (*Core).DropAborts)
	after(AbortTime+time.Duration(p.rng.IntN(2000))*time.Millisecond, shut)
	var advance func(e *Core)
	advance = func(e *Core) { // as in Engine.Close
		switch {
		case e.state == closed:
			return
		case e.IsIdle() && e.state == lingering:
			shut(e)
			return
		case e.IsIdle():
			e.Linger()
		}
		after(time.Millisecond, advance)
	}
	after(0, advance)
}

// change changes the parameters of a rank, or makes it forget that its peers were unreachable.
func (p *program) change(o *posted) {
	p.note("rank %d: has other parameters", o.rank)
	p.event(o.rank, func(e *Core) {
		peers := make([]Peer, p.ranks)
		for remote := range peers {
			peer := p.peer(o.rank, remote)
			if x := peer.Extended; x != nil {
				x.EagerLimit = []int{-1, 100, 1 << 16}[p.rng.IntN(3)]
				x.Timing = extended.DefaultTiming(p.kind.net.stream)
				x.Timing.UnreachableAfter = time.Duration(5+p.rng.IntN(20)) * time.Second
			} else {
				h := &peer.Handshake
				factor := time.Duration(1 + p.rng.IntN(3))
				for _, b := range []*handshake.Backoff{&h.Timing.Clear, &h.Timing.Ack, &h.Timing.Data} {
					b.First, b.Step = factor*b.First, factor*b.Step
				}
			}
			peers[remote] = peer
		}
		e.Reconfigure(peers)
		if remote := p.rng.IntN(p.ranks); remote != o.rank {
			e.Reset(remote)
		}
	})
}

// finish ends the remaining operations: they expire, and then all remaining messages are received.
func (p *program) finish() {
	for _, o := range p.posted {
		o.cancel = min(o.cancel, p.now)
	}
	p.run(p.now + time.Minute)
	for rank, e := range p.cores {
		if e == nil || p.halted(rank) {
			continue
		}
		for _, comm := range []uint32{0, 1, 2} {
			for range len(p.posted) { // some fail, because their sender aborted them
				if _, ok := e.Probes.Find(Match{Source: AnySource, Tag: AnyTag, Comm: comm}); !ok {
					break
				}
				o := &posted{rank: rank,
					op: Operation{Kind: OpRecv, Peer: AnySource, Tag: AnyTag, Comm: comm, Buf: make([]byte, 4*40_000)},
					at: p.now, cancel: p.now + 30*time.Second}
				p.posted = append(p.posted, o)
				p.run(p.now + time.Minute)
			}
		}
	}
}

// simulate runs the program of a seed. If kept is not nil, it runs only the groups of operations in kept. From
// datagram number calm on, the network has no faults.
func simulate(t *testing.T, k kind, seed uint64, kept []int, calm int) (*program, error) {
	t.Helper()
	p := newProgram(t, k, seed)
	p.calm = calm
	if kept != nil {
		p.posted = slices.DeleteFunc(p.posted, func(o *posted) bool { return !slices.Contains(kept, o.group) })
	}
	p.chain()
	p.run(30 * time.Second)
	if p.failure == nil {
		p.failure = p.waits()
	}
	if p.failure == nil {
		p.finish()
	}
	return p, p.check()
}

// shrink searches for a part of a program that fails in the same way, with fewer faults. It returns the last
// part that it ran.
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

// TestSimulation checks that the sender's report about every message is true, and that the message is
// received at most once and intact, whatever the network and the programs do.
func TestSimulation(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			messages, failed, dead, n := 0, 0, 0, *seeds
			late, halved := 0, 0
			if testing.Short() {
				n = min(n, 5)
			}
			for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
				p, err := simulate(t, k, seed, nil, math.MaxInt)
				if err != nil {
					for _, line := range shrink(t, p, k, seed, err).log {
						t.Log(line)
					}
					t.Fatalf("%v; again: go test ./mpe/core -run 'TestSimulation$/^%s$' -seed %d -seeds 1", err, k.name,
						seed)
				}
				if k.oneWay {
					l, h := p.timedOut()
					late, halved = late+l, halved+h
				}
				dead += min(p.dead, 1)
				for _, o := range p.posted {
					if o.op.Kind != OpRecv && o.event == nil && !o.lost && o.r != nil {
						messages++
						if o.r.Err != nil {
							failed++
						}
					}
				}
			}
			t.Logf("%d programs, %d of them with a dead end, %d messages, of which %d have failed", n, dead,
				messages, failed)
			// Nothing was lost (E30). This is not visible if a receiver processes many packets at once, and
			// acknowledges them once.
			if k.oneWay && 2*halved > late {
				t.Errorf("of %d windows in which packets were late, %d were halved", late, halved)
			}
		})
	}
}
