package diagnose_test

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// step is a call of a program: a message, or a collective call; or it computes, or ends.
type step struct {
	receives bool
	sync     bool
	// background: the program goes on before the message has ended.
	background bool
	peer       int // or the root
	words      int
	tag        int
	comm       uint32
	datatype   protocol.Datatype
	call       coll.Collective
	computes   time.Duration
	ends       bool
}

// program is what a node runs: rounds of calls, each of which blocks.
type program struct {
	node *node
	// round makes the calls of a round.
	round func(round int) []step
	// rounds is how many rounds it has begun; calls are the rest of the present one.
	rounds int
	calls  []step
	// current is the call that it is in, nil if it is in none; since is when that began.
	current *step
	// posted is the operation that it has posted last, and that has not ended.
	posted *step
	since  time.Duration
	began  time.Duration // the program
	// computing: it computes. ended: it has ended by itself, or was killed. failed is why a call has failed.
	computing, ended bool
	failed           error
	failedAt         time.Duration
	stopped          bool // by a signal, while its daemon runs
	run              int  // of the program: what ends belongs to
	begun            int  // calls
	numbers          int  // of collective calls
	// before is called before each call, and may change it.
	before func(s *step)
}

func (p *program) restart() {
	p.run++
	p.began = p.node.c.now
	p.rounds, p.calls, p.current, p.posted, p.computing, p.ended, p.failed, p.numbers = 0, nil, nil, nil, false, false,
		nil, 0
	p.next()
}

// asleep reports whether the program sleeps until the operation of a call ends.
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

// forever is how long a program computes that does not come back.
const forever = time.Hour

// sends and receives are calls with rank 0 or others.
func sends(to, words int) step { return step{peer: to, words: words, datatype: protocol.Int} }
func receives(from, words int) step {
	return step{receives: true, peer: from, words: words, datatype: protocol.Int}
}

// lengths are the words of messages: one or several datagrams.
var lengths = []int{1, 16, 300, 900, 5000}

// pattern is what the programs of a cluster do together.
type pattern struct {
	name string
	// nodes: deployed nodes can run it, which exchange messages with rank 0 alone.
	nodes bool
	// extended: it needs the extended profile.
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

// fits reports whether a cluster can run the pattern.
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
