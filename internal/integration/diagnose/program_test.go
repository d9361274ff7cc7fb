package diagnose_test

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// step is a step of a program: a message, a collective call, a computation, or the program's exit.
type step struct {
	receives bool
	sync     bool
	// background means that the program continues before the message is complete.
	background bool
	peer       int // or the root of a collective call
	words      int
	tag        int
	comm       uint32
	datatype   protocol.Datatype
	call       coll.Collective
	computes   time.Duration
	ends       bool
}

// program is the program of a node. It makes rounds of calls, most of which block.
type program struct {
	node *node
	// round returns the calls of a round.
	round func(round int) []step
	// rounds is the number of rounds that have begun, and calls the remaining calls of the current round.
	rounds int
	calls  []step
	// current is the call in which the program blocks, or nil. since is the time at which it posted its last operation.
	current *step
	// posted is the last posted operation, or nil if it is complete.
	posted *step
	since  time.Duration
	began  time.Duration // start time of the program
	// computing means that the program is computing. ended means that it has exited or was killed. failed is the error
	// of a failed call.
	computing, ended bool
	failed           error
	failedAt         time.Duration
	stopped          bool // by a signal, while the daemon keeps running
	run              int  // number of restarts; callbacks of earlier runs are ignored
	begun            int  // number of calls that have begun
	numbers          int  // number of collective calls that have begun
	// before, if not nil, is called before each call, which it may change.
	before func(s *step)
}

func (p *program) restart() {
	p.run++
	p.began = p.node.c.now
	p.rounds, p.calls, p.current, p.posted, p.computing, p.ended, p.failed, p.numbers = 0, nil, nil, nil, false, false,
		nil, 0
	p.next()
}

// asleep reports whether the program sleeps until the operation of step s completes.
func (p *program) asleep(s *step) bool { return p.current == s }

// next makes the next call.
func (p *program) next() {
	if p.ended || p.node.gone || p.stopped {
		return
	}
	if len(p.calls) == 0 {
		p.calls = p.round(p.rounds)
		p.rounds++
	}
	s := p.calls[0]
	p.calls = p.calls[1:]
	p.begun++
	if p.before != nil {
		p.before(&s)
	}
	run := p.run
	switch {
	case s.ends:
		p.ended = true
		return
	case s.computes > 0:
		p.computing = true
		p.node.c.after(s.computes, func() {
			if p.run == run && !p.node.stopped {
				p.computing = false
				p.next()
			}
		})
		return
	case s.call != 0:
		p.numbers++
		s.tag = p.numbers
	}
	p.posted, p.since = &s, p.node.c.now
	if s.background {
		p.node.begin(&s, func(error) {
			if p.run == run {
				p.posted = nil
			}
		})
		p.next()
		return
	}
	p.current = &s
	p.node.begin(&s, func(err error) {
		if p.run != run || p.node.gone {
			return
		}
		p.current, p.posted = nil, nil
		if err != nil {
			p.failed, p.failedAt, p.ended = err, p.node.c.now, true
			return
		}
		p.next()
	})
}

// forever is the duration of a computation that never ends.
const forever = time.Hour

// sends and receives return a message to or from a rank.
func sends(to, words int) step { return step{peer: to, words: words, datatype: protocol.Int} }
func receives(from, words int) step {
	return step{receives: true, peer: from, words: words, datatype: protocol.Int}
}

// lengths lists message lengths in words, for one or several datagrams.
var lengths = []int{1, 16, 300, 900, 5000}

// pattern is the communication pattern of all programs of a cluster.
type pattern struct {
	name string
	// nodes means that deployed nodes can run the pattern.
	nodes bool
	// extended means that the pattern requires the extended profile.
	extended bool
	round    func(ranks, rank, words, round int) []step
}

var patterns = []pattern{
	{name: "there and back", nodes: true, round: func(ranks, rank, words, round int) (list []step) {
		if rank > 0 {
			return []step{receives(0, words), sends(0, words)}
		}
		for peer := 1; peer < ranks; peer++ {
			list = append(list, sends(peer, words), receives(peer, words))
		}
		return list
	}},
	{name: "scatter and gather", nodes: true, round: func(ranks, rank, words, round int) (list []step) {
		if rank > 0 {
			return []step{receives(0, words), sends(0, words)}
		}
		for peer := 1; peer < ranks; peer++ {
			list = append(list, sends(peer, words))
		}
		for peer := 1; peer < ranks; peer++ {
			list = append(list, receives(peer, words))
		}
		return list
	}},
	{name: "one way", nodes: true, round: func(ranks, rank, words, round int) (list []step) {
		if rank > 0 {
			return []step{sends(0, words)}
		}
		for peer := 1; peer < ranks; peer++ {
			list = append(list, receives(peer, words))
		}
		return list
	}},
	{name: "ring", nodes: true, round: func(ranks, rank, words, round int) []step {
		next, before := (rank+1)%ranks, (rank+ranks-1)%ranks
		if rank == 0 {
			return []step{sends(next, words), receives(before, words)}
		}
		return []step{receives(before, words), sends(next, words)}
	}},
	{name: "collective calls", extended: true, round: func(ranks, rank, words, round int) []step {
		root := round % ranks
		return []step{
			{call: coll.Barrier}, {call: coll.Bcast, peer: root, words: words}, {call: coll.Allreduce,
				words: words}, {call: coll.Reduce, peer: root, words: words},
		}
	}},
}

// fits reports whether a kind of cluster can run the pattern.
func (p *pattern) fits(k *clusterKind) bool {
	if p.extended && !k.extended {
		return false
	}
	for _, kind := range k.kinds {
		if !p.nodes && kind != host {
			return false
		}
	}
	return true
}
