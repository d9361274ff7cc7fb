package core

import (
	"crypto/sha256"
	"hash"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// world runs the cores of some ranks in one goroutine, in simulated time and over a simulated network. The
// seed determines everything that happens.
type world struct {
	rng   *rand.Rand
	now   handshake.Instant
	net   faults
	cores []*Core
	ports []*port
	wire  []datagram                   // in order of time
	last  map[[2]int]handshake.Instant // last arrival between a pair: a path keeps the order
	cut   map[[2]int]handshake.Instant // end of an outage between a pair
	bad   map[[2]int]burst             // bursts of losses between a pair
	mtu   map[[2]int]int               // one of faults.mtus
	// programs holds the programs that block, including users' functions. current is the running program, if any.
	programs []*blocking
	current  *blocking
	// sent counts all datagrams, and faulty counts lost and duplicated datagrams. From datagram number calm on,
	// there are no faults.
	sent, faulty, calm int
	make               func(rank int) *Core
	// transcript hashes every datagram with its time.
	transcript hash.Hash
	trace      func(what string, d datagram) // may be nil
}

// newCores starts n cores that are each other's peers. A rank may also be a model of a deployed node.
func newCores(t *testing.T, seed uint64, n int, net faults, peer func(local, remote int) Peer,
	nodes ...newNode) *world {
	t.Helper()
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), net: net, transcript: sha256.New(),
		last: map[[2]int]handshake.Instant{}, cut: map[[2]int]handshake.Instant{}, bad: map[[2]int]burst{},
		mtu:   map[[2]int]int{},
		cores: make([]*Core, n), ports: make([]*port, n), calm: math.MaxInt,
	}
	starts := uint64(0)
	w.make = func(rank int) *Core {
		p := &port{w: w, rank: rank, known: w.now, writers: map[int][]delayed{}}
		if rank < len(nodes) && nodes[rank] != nil {
			others := slices.Delete(members(n), rank, rank+1)
			p.node = nodes[rank](w, rank, others)
			w.ports[rank] = p
			return nil
		}
		cfg := Config{Rank: rank}
		starts++
		var room *extended.CreditPool
		for remote := range n {
			peer := peer(rank, remote)
			peer.Network = p.network()
			if peer.Extended != nil {
				peer.Extended.Seed = starts<<32 + uint64(rank*n+remote+1)
				if x := peer.Extended; x.CreditPool != nil { // one for all peers of the rank
					if room == nil {
						room = x.CreditPool
					}
					x.CreditPool = room
				}
			}
			cfg.Peers = append(cfg.Peers, peer)
		}
		e := New(cfg, p)
		if seed/2%2 == 0 { // every message that waits for a receive rests
			e.matching.restThreshold = -1
		}
		if old := w.ports[rank]; old != nil {
			old.dead = true
			for remote := range n {
				if net.stream && remote != rank {
					w.reset(rank, remote)
				}
			}
		}
		w.cores[rank], w.ports[rank] = e, p
		return e
	}
	for rank := range n {
		w.make(rank)
	}
	return w
}

// newNode creates the model of a deployed node. A nil newNode stands for a core.
type newNode func(w *world, rank int, peers []int) *deployed

// members returns the ranks of a cluster.
func members(n int) []int {
	all := make([]int, n)
	for rank := range all {
		all[rank] = rank
	}
	return all
}

// event runs one event of a core.
func (w *world) event(rank int, do func(e *Core)) {
	e := w.cores[rank]
	e.Begin(w.now + w.ports[rank].ahead)
	do(e)
	w.ports[rank].dealWith(e.End())
}

// next returns the time of the next step, or Never.
func (w *world) next() handshake.Instant {
	at := Never
	for _, p := range w.ports {
		at = min(at, p.ready(), p.due())
	}
	for _, b := range w.programs {
		if b.runnable(w.now) {
			return w.now
		}
		at = min(at, b.until)
	}
	if len(w.wire) > 0 {
		at = min(at, w.wire[0].at)
	}
	return max(at, w.now)
}

// step runs the next event, and reports false if there is no event.
func (w *world) step() bool {
	at := w.next()
	if at == Never {
		return false
	}
	w.now = at
	if len(w.wire) > 0 && w.wire[0].at <= at {
		d := w.wire[0]
		if w.wire = w.wire[1:]; d.do != nil {
			d.do()
		} else {
			w.arrive(d)
		}
		return true
	}
	// Events at the same time have no order.
	var events []func()
	for _, p := range w.ports {
		if p.ready() <= at {
			events = append(events, p.take)
		}
		if p.due() <= at {
			events = append(events, p.tick)
		}
	}
	for _, b := range w.programs {
		if b.runnable(at) {
			events = append(events, func() { b.proceed(w) })
		}
	}
	events[w.rng.IntN(len(events))]()
	return true
}

// start posts an operation.
func (w *world) start(t *testing.T, rank int, op Operation) *Request {
	t.Helper()
	r := new(Request)
	w.cores[rank].Init(r, &op)
	w.event(rank, func(e *Core) {
		if err := e.startRequest(r, false); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// call makes a collective call.
func (w *world) call(t *testing.T, rank int, o *collective.Operation) *Request {
	t.Helper()
	r := new(Request)
	if err := w.cores[rank].Prepare(r, new(collective.Execution), o); err != nil {
		t.Fatal(err)
	}
	w.event(rank, func(e *Core) {
		if err := e.StartCall(r); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// until runs all events up to a time.
func (w *world) until(at handshake.Instant) {
	for w.next() < at && w.step() {
	}
	w.now = at
}

// run runs events until all requests are done.
func (w *world) run(t *testing.T, requests []*Request) {
	t.Helper()
	for slices.ContainsFunc(requests, func(r *Request) bool { return !r.Done }) {
		if !w.step() {
			break
		}
		if w.now > time.Hour {
			t.Fatal("an hour has passed")
		}
	}
	for i, r := range requests {
		if !r.Done || r.Err != nil {
			t.Errorf("request %d: over %v, %v", i, r.Done, r.Err)
		}
	}
}

// software is a peer of the cloudfpga profile that repairs every loss. extendedPeer is a peer of the extended
// profile.
func software(_, _ int) Peer {
	rules := handshake.SoftwarePeer()
	return Peer{Handshake: handshake.Config{
		Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20,
	}}
}

func extendedPeer(_, _ int) Peer {
	return Peer{Extended: &extended.Config{MaxPayload: 1400}}
}

// boundedPeer accepts two messages before their receives are posted. From all peers of a rank together, it accepts
// at most 120, if that is less.
func boundedPeer(_, _ int) Peer {
	return Peer{Extended: &extended.Config{MaxPayload: 1400, Messages: 2, CreditPool: extended.NewCreditPool(120)}}
}

// discoveringPeer discovers the path MTU.
func discoveringPeer(_, _ int) Peer {
	return Peer{Extended: &extended.Config{MaxPayload: 65424, Discover: true}}
}
