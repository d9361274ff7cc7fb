package diagnose_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// A list of causes is minimal if each of its causes is true in some run with the same evidence, its witness. Random
// runs seldom have a rare cause at the moment that produces the evidence, so the test searches for witnesses: it
// simulates the cluster of a run with the list again, with the cause injected instead of the original one, and often
// with other programs. The diagnosis only determines which causes to try. Whether a run is a witness depends on its
// evidence and on the injected cause, without which the cluster must not hang.

// label returns the name of a possible cause, with its ranks named as in the evidence of a vantage.
func (c *cluster) label(p *diagnosis.Possibility, v vantage) string {
	switch cause := string(p.Cause); {
	case cause == diagnosis.WaitCycle:
		return cause
	case directed(cause):
		if cause == diagnosis.LostPacket { // the evidence does not distinguish them
			cause = diagnosis.PacketsBlocked
		}
		return fmt.Sprintf("%s from %s to %s", cause, c.role(p.Rank, v), c.role(p.Peer, v))
	default:
		return fmt.Sprintf("%s at %s", cause, c.role(p.Rank, v))
	}
}

// directed reports whether a cause concerns packets from one rank to another.
func directed(cause string) bool {
	return cause == diagnosis.PacketsBlocked || cause == diagnosis.LostPacket || cause == diagnosis.PathMTU
}

// labels returns the labels of truths.
func (c *cluster) labels(truths []truth, v vantage) (list []string) {
	for _, t := range truths {
		for _, cause := range accepted[t.fault] {
			for rank := range c.nodes {
				for peer := range c.nodes {
					if rank != peer && t.is(cause, rank, peer) {
						p := diagnosis.Possibility{Cause: infer.Cause(cause), Rank: rank, Peer: peer}
						list = append(list, c.label(&p, v))
					}
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// is reports whether the truth matches a cause at a rank. If the cause concerns packets, rank is their sender and peer
// their receiver.
func (t truth) is(cause string, rank, peer int) bool {
	switch {
	case cause == diagnosis.WaitCycle:
		return true
	case t.other < 0 && directed(cause): // the receiver drops them
		return peer == t.rank
	case t.fault == faultCut, t.other >= 0 && !directed(cause):
		return rank == t.rank && peer == t.other || rank == t.other && peer == t.rank
	case t.other >= 0:
		return rank == t.rank && peer == t.other
	}
	return rank == t.rank
}

// role describes a rank by its role at a vantage, because evidence contains no rank numbers.
func (c *cluster) role(rank int, v vantage) string {
	if i := slices.Index(v.ranks, rank); i >= 0 {
		return fmt.Sprint(i)
	}
	shown := false
	for i, known := range v.ranks {
		s := c.nodes[known].seenCall()
		switch {
		case s == nil || s.call != 0:
			shown = true
		case s.peer == rank:
			return fmt.Sprintf("the peer of %d", i)
		}
	}
	if shown {
		return fmt.Sprintf("peer %d", slices.Index(c.nodes[v.ranks[0]].others(), rank))
	}
	return "another rank"
}

// sought is a listed cause that has no witness yet.
type sought struct {
	evidence, label string
}

// search describes a search for witnesses of listed causes.
type search struct {
	runs     int // minimum number of runs with the same evidence
	attempts int // maximum number of simulations per cause
	// isOpen reports whether a witness of a cause is still wanted.
	isOpen func(s sought) bool
	// perEvidence means that each attempt tries a single cause of each evidence, in turn.
	perEvidence bool
}

// seekLonger searches for witnesses of all listed causes.
func (r *results) seekLonger() {
	r.seek(search{runs: few(), attempts: 800, isOpen: func(s sought) bool { return !r.real[s.evidence][s.label] }})
}

// seek searches for witnesses. For each cause, it tries the clusters of the answers that list it, in turn.
func (r *results) seek(how search) {
	wanted := map[sought][]*answer{}
	for i := range r.all {
		a := &r.all[i]
		if !r.isComparable(a, how.runs) {
			continue
		}
		for _, l := range a.listed {
			if s := (sought{a.evidence, l}); how.isOpen(s) {
				wanted[s] = append(wanted[s], a)
			}
		}
	}
	order := func(a, b sought) int {
		return cmp.Or(cmp.Compare(a.evidence, b.evidence), cmp.Compare(a.label, b.label))
	}
	for try := range how.attempts {
		open := slices.DeleteFunc(slices.SortedFunc(maps.Keys(wanted), order),
			func(s sought) bool { return !how.isOpen(s) })
		if how.perEvidence {
			open = turns(open, try)
		}
		found := make([][]witness, len(open))
		parallel(len(open), func(i int) {
			s := open[i]
			a := wanted[s][try%len(wanted[s])]
			found[i] = a.instead(&a.possible[slices.Index(a.listed, s.label)], uint64(try), r.isNew)
		})
		for _, list := range found {
			for _, w := range list {
				r.truths[w.evidence][w.class] = true
				for _, l := range w.real {
					r.real[w.evidence][l] = true
				}
			}
		}
	}
}

// turns returns one cause of each evidence, the next one in each try. The causes are sorted by evidence.
func turns(open []sought, try int) (list []sought) {
	for len(open) > 0 {
		n := slices.IndexFunc(open, func(s sought) bool { return s.evidence != open[0].evidence })
		if n < 0 {
			n = len(open)
		}
		list, open = append(list, open[try/2%n]), open[n:]
	}
	return list
}

// isNew reports whether a run has the evidence of an answer, and a cause that no run with this evidence had yet.
func (r *results) isNew(w *witness) bool {
	real := r.real[w.evidence]
	return real != nil && (!r.truths[w.evidence][w.class] ||
		slices.ContainsFunc(w.real, func(l string) bool { return !real[l] }))
}

// witness is a run as observed at a vantage.
type witness struct {
	evidence, class string
	real            []string
}

// instead simulates the cluster of an answer with another cause, and returns the runs for which isNew returns true. It
// uses the programs of the same or another seed, as they are or as one of the variants makes them, and looks at the
// usual or at random moments. It skips the last moment, which adds nothing to the earlier ones.
func (a *answer) instead(p *diagnosis.Possibility, try uint64, isNew func(w *witness) bool) (list []witness) {
	like := prepare(a.seed)
	for draw := range uint64(500) {
		seed := a.seed
		if try%2 == 1 {
			seed += 1 + draw
		}
		c := prepare(seed)
		if !c.looksLike(like) {
			continue
		}
		isVariant := c.vary(p, a.seed, 1000*try+draw)
		c.suspect = a.trigger
		all := append(injections(), suspicions()...)
		t, ok := all[c.rng.IntN(len(all))].arm(c)
		if !ok || !t.leadsTo(p) {
			continue
		}
		at := moments[:len(moments)-1]
		if c.rng.IntN(2) == 0 {
			at = c.anyMoments()
		}
		c.observe(at, func(v vantage, _ time.Duration) {
			if !c.hangsAt(v) {
				return
			}
			consequences := c.consequences(v)
			w := witness{c.evidence(v.ranks), c.class(t, v, consequences), c.labels(append(consequences, t), v)}
			if !isNew(&w) {
				return
			}
			if isVariant {
				healthy := prepare(seed)
				healthy.vary(p, a.seed, 1000*try+draw)
				if healthy.hangsUntil(c.now, v) { // because of the variant, and not of the cause
					return
				}
			}
			list = append(list, w)
		})
		break
	}
	return list
}

// vary makes a cluster draw from another sequence of random numbers, and changes it by one of the variants or not at
// all. It reports whether it has changed it.
func (c *cluster) vary(p *diagnosis.Possibility, seed, sequence uint64) bool {
	c.rng = rand.New(rand.NewPCG(seed, sequence))
	i := c.rng.IntN(1 + len(variants))
	if i == len(variants) {
		return false
	}
	variants[i](c, p)
	return true
}

// hangsUntil runs a cluster without a fault, and reports whether a rank of the vantage hangs at the given time.
func (c *cluster) hangsUntil(at time.Duration, v vantage) bool {
	c.begin()
	c.run(at, func() bool { return false })
	return c.hangsAt(v)
}

// anyMoments draws moments of the first ten seconds.
func (c *cluster) anyMoments() (list []time.Duration) {
	for range 5 {
		list = append(list, waited+time.Duration(c.rng.IntN(9000))*time.Millisecond)
	}
	slices.Sort(list)
	return list
}

// looksLike reports whether two clusters have the same configuration in rank 0's view.
func (c *cluster) looksLike(other *cluster) bool {
	return c.attached == other.attached && c.kind.extended == other.kind.extended && c.kind.job == other.kind.job &&
		slices.EqualFunc(c.nodes, other.nodes,
			func(a, b *node) bool { return c.nodes[0].peerKind(a.rank) == other.nodes[0].peerKind(b.rank) })
}

// variants lists changes to a cluster, for witnesses of a cause that the clusters of other seeds do not produce.
var variants = []func(c *cluster, p *diagnosis.Possibility){(*cluster).exchange, (*cluster).sync, (*cluster).pause,
	(*cluster).askBefore}

// change replaces the calls of each round of a node's program.
func (n *node) change(replace func(round int, list []step) []step) {
	round := n.program.round
	n.program.round = func(i int) []step { return replace(i, round(i)) }
}

// sync makes the programs of the extended profile use synchronous sends only.
func (c *cluster) sync(*diagnosis.Possibility) {
	for _, n := range c.nodes {
		n.change(func(_ int, list []step) []step {
			for i := range list {
				list[i].sync = c.kind.extended && message(&list[i]) && !list[i].receives
			}
			return list
		})
	}
}

// exchange makes the two ranks of a cause send to each other. One of them posts its send in the background, and in one
// of the first rounds computes for up to 4 s before it receives. The other ranks compute.
func (c *cluster) exchange(p *diagnosis.Possibility) {
	pair := c.pairOf(p)
	if !pair[1].kind.ours() {
		return
	}
	for _, n := range c.nodes {
		n.program.round = func(int) []step { return []step{{computes: forever}} }
	}
	words, sync, late := []int{16, 5000}[c.rng.IntN(2)], c.kind.extended && c.rng.IntN(2) == 0, c.rng.IntN(10)
	for i, n := range pair {
		send, receive := sends(pair[1-i].rank, words), receives(pair[1-i].rank, words)
		send.background, send.sync = i == 1, sync
		n.program.round = func(round int) []step {
			before := time.Duration(1+c.rng.IntN(9)) * time.Millisecond
			between := time.Millisecond
			if i == 1 && round == late {
				between = time.Duration(1+c.rng.IntN(4000)) * time.Millisecond
			}
			return []step{{computes: before}, send, {computes: between}, receive}
		}
	}
}

// pause makes the program of one rank of the cause compute for up to 4 s before one of its first rounds.
func (c *cluster) pause(p *diagnosis.Possibility) {
	c.pairOf(p)[0].pause(c.rng.IntN(10), time.Duration(c.rng.IntN(4000))*time.Millisecond)
}

// askBefore makes one rank of the cause question the others before the program of the other one makes its first call.
func (c *cluster) askBefore(p *diagnosis.Possibility) {
	pair := c.pairOf(p)
	c.asksBefore = pair[0]
	pair[1].pause(0, waited+100*time.Millisecond)
}

// pairOf returns the two ranks of a cause in random order.
func (c *cluster) pairOf(p *diagnosis.Possibility) []*node {
	pair := []*node{c.nodes[p.Rank], c.nodes[p.Peer]}
	if c.rng.IntN(2) == 0 {
		slices.Reverse(pair)
	}
	return pair
}

// pause makes a node's program compute before the given round.
func (n *node) pause(before int, d time.Duration) {
	n.change(func(round int, list []step) []step {
		if round == before {
			list = append([]step{{computes: d}}, list...)
		}
		return list
	})
}

// leadsTo reports whether injecting a truth can make a cause true.
func (t truth) leadsTo(p *diagnosis.Possibility) bool {
	switch cause := string(p.Cause); {
	case cause == diagnosis.WaitsElsewhere || cause == diagnosis.CallFailed: // any fault can make a rank wait or fail
		return true
	case cause == diagnosis.DeadEnd: // a copy from any rank can cause it
		return t.fault == faultCopy && t.other == p.Rank
	default:
		return slices.Contains(accepted[t.fault], cause) && t.is(cause, p.Rank, p.Peer)
	}
}

// suspicions returns injections for witnesses only: faults that seldom take effect at a random time, injected so that
// they do.
func suspicions() (list []injection) {
	add := func(name string, arm func(c *cluster) (truth, bool)) { list = append(list, injection{name, arm}) }
	any := func(c *cluster) int { return c.rng.IntN(len(c.nodes)) }
	for _, kind := range []protocol.Type{protocol.ClearToSend, protocol.Data, protocol.Data, protocol.Ack} {
		add(fmt.Sprintf("late copies of %v", kind), func(c *cluster) (truth, bool) {
			a, b := any(c), any(c)
			at, until := c.when(), time.Duration(1+c.rng.IntN(30))*time.Millisecond
			c.fates = append(c.fates, func(d *datagram) {
				if c.now >= at && c.between(d, a, b) && d.kind == kind {
					d.copies = append(d.copies, time.Duration(c.rng.Int64N(int64(until))))
					c.shows()
				}
			})
			return truth{faultCopy, a, b, kind}, a != b
		})
	}
	for range 4 { // as often as all other late copies
		add("late copies of DATA between nodes", lateBetweenNodes)
	}
	for _, kind := range []protocol.Type{protocol.SendRequest, protocol.ClearToSend, protocol.Data, protocol.Ack} {
		add(fmt.Sprintf("%v corrupt", kind), func(c *cluster) (truth, bool) {
			from, to := direction(c, c.rng.IntN(2) == 0)
			at := c.when()
			c.fates = append(c.fates, func(d *datagram) {
				if c.now >= at && c.between(d, from, to) && d.kind == kind {
					d.bytes[0] ^= 0x55
					c.shows()
				}
			})
			return truth{faultCorrupt, from, to, kind}, true
		})
	}
	add("one direction takes some time", func(c *cluster) (truth, bool) {
		a, b := direction(c, c.rng.IntN(2) == 0)
		at, d := c.when(), time.Duration(50+c.rng.IntN(6000))*time.Millisecond
		c.fates = append(c.fates, func(d2 *datagram) {
			if c.now >= at && c.between(d2, a, b) {
				d2.delay = d
				c.shows()
			}
		})
		return truth{fault: faultDelay, rank: a, other: b}, true
	})
	add("started seconds late", func(c *cluster) (truth, bool) {
		n := c.nodes[any(c)]
		n.gone, n.program.ended, c.trigger = true, true, c.now
		c.after(time.Duration(1+c.rng.IntN(7))*time.Second, n.restart)
		return truth{fault: faultLate, rank: n.rank, other: -1}, true
	})
	atPacket := func(name string, fault fault, within time.Duration, do func(n *node)) {
		add(name+" at a packet", func(c *cluster) (truth, bool) {
			n := c.nodes[any(c)]
			at, done := c.when(), false
			c.fates = append(c.fates, func(d *datagram) {
				if c.now < at || done || d.sender != n.rank && d.to != n.address {
					return
				}
				done = true
				c.after(time.Duration(c.rng.Int64N(int64(within))), func() {
					c.shows()
					do(n)
				})
			})
			return truth{fault: fault, rank: n.rank, other: -1}, n.kind != fpga || fault != faultStopped
		})
	}
	atPacket("restarted", faultRestarted, 50*time.Microsecond, (*node).restart)
	atPacket("restarted, and computes first,", faultRestarted, 50*time.Microsecond, func(n *node) {
		round := n.program.round
		n.program.round = func(i int) []step {
			if i == 0 {
				return []step{{computes: forever}}
			}
			return round(i - 1)
		}
		n.restart()
	})
	atPacket("killed", faultDown, 2*time.Millisecond, (*node).kill)
	atPacket("stopped", faultStopped, 2*time.Millisecond, func(n *node) { n.stopped = true })
	atPacket("program stopped", faultStopped, 2*time.Millisecond, func(n *node) { n.program.stopped = true })
	atPacket("restarted seconds later", faultRestarted, 50*time.Microsecond, func(n *node) {
		n.kill()
		n.c.after(time.Duration(500+n.c.rng.IntN(7000))*time.Millisecond, n.restart)
	})
	// Ranks recover from the loss of ACKs, which delays the computation.
	add("computes after a send with lost ACKs", func(c *cluster) (truth, bool) {
		rank, lost := any(c), 1+c.rng.IntN(3)
		p := c.nodes[rank].program
		change(c, rank, func(s *step) bool { return message(s) && !s.receives }, func(s *step) {
			p.calls = []step{{computes: forever}}
			peer := s.peer
			c.fates = append(c.fates, func(d *datagram) {
				if lost > 0 && c.between(d, peer, rank) && d.kind == protocol.Ack {
					lost--
					d.lost = true
				}
			})
		})
		return truth{fault: faultComputes, rank: rank, other: -1}, !c.kind.extended
	})
	add("other peer of a node", func(c *cluster) (truth, bool) {
		rank := any(c)
		change(c, rank, message, func(s *step) {
			others := slices.DeleteFunc(c.nodes[rank].others(), func(r int) bool { return r == s.peer })
			s.peer = others[c.rng.IntN(len(others))]
			s.receives = s.receives || c.rng.IntN(2) == 0
		})
		return truth{fault: faultOrder, rank: rank, other: -1}, len(c.nodes) > 2 && !c.nodes[rank].kind.ours()
	})
	return list
}

// lateBetweenNodes delivers late copies of DATA between two deployed nodes, and makes their programs exchange messages.
func lateBetweenNodes(c *cluster) (truth, bool) {
	if len(c.nodes) != 3 || c.kind.extended {
		return truth{}, false
	}
	for rank := 1; rank < 3; rank++ { // also exchange long messages between the nodes
		p, other := c.nodes[rank].program, 3-rank
		round := p.round
		p.round = func(i int) []step {
			list := []step{sends(other, 900), receives(other, 900)}
			if rank == 2 {
				slices.Reverse(list)
			}
			return append(list, round(i)...)
		}
	}
	a := 1 + c.rng.IntN(2)
	at, until := c.when(), time.Duration(1+c.rng.IntN(10))*time.Millisecond
	c.fates = append(c.fates, func(d *datagram) {
		if c.now >= at && c.between(d, a, 3-a) && d.kind == protocol.Data {
			d.copies = append(d.copies, time.Duration(c.rng.Int64N(int64(until))))
			c.shows()
		}
	})
	return truth{faultCopy, a, 3 - a, protocol.Data}, true
}

// parallel calls do for 0 to n-1.
func parallel(n int, do func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range 2 {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}
