package coll

import (
	"math/bits"
	"slices"
)

// Progress is how far a rank has come with a schedule. It returns to an executor what may
// begin, and is notified of what is complete: see the package's comment for what is promised
// to peers. It is not safe for concurrent use.
type Progress struct {
	s *Schedule
	// ring has the steps from the oldest that is not complete, number low+1, to the
	// newest that was read, number read.
	// The length of ring is a power of two.
	ring      []progressStep
	low, read int
	// next is the lowest number that may not have begun. Next has examined the steps from there up to examined since a
	// step was complete: those that have not begun cannot. 0: it has examined none.
	next, examined int
	// blocked are the peers whose next send or receive waits, of those that were examined.
	blockedSends, blockedRecvs []int
}

type progressStep struct {
	Step
	begun, done bool
}

// minWindow is how many steps an executor looks at, at least: so many messages are under
// way at a time where a schedule allows it.
const minWindow = 32

// Begin begins a schedule.
func (p *Progress) Begin(s *Schedule) {
	window := 1 << bits.Len(uint(max(minWindow, s.Window)-1))
	if len(p.ring) < window {
		p.ring = make([]progressStep, window)
	}
	*p = Progress{s: s, ring: p.ring, blockedSends: p.blockedSends, blockedRecvs: p.blockedRecvs}
}

// Step is a step that has begun and is not complete. It is valid until that is.
func (p *Progress) Step(number int) *Step { return &p.at(number).Step }

// at is the step of a number in the window.
func (p *Progress) at(number int) *progressStep { return &p.ring[number&(len(p.ring)-1)] }

// fill reads steps for as long as there is room.
func (p *Progress) fill() {
	for p.read-p.low < len(p.ring) {
		step, ok := p.s.Next()
		if !ok {
			return
		}
		p.read++
		s := p.at(p.read)
		s.Step, s.begun, s.done = *step, false, false
	}
}

// Next gives the step that is to begin now, and its number; ok is false if there is none
// before another one is complete. The step is valid until the next call.
func (p *Progress) Next() (step *Step, number int, ok bool) {
	p.fill()
	if p.examined == 0 {
		for p.next = max(p.next, p.low+1); p.next <= p.read && p.at(p.next).begun; {
			p.next++
		}
		p.examined = p.next - 1
		p.blockedSends, p.blockedRecvs = p.blockedSends[:0], p.blockedRecvs[:0]
	}
	for p.examined < p.read {
		p.examined++
		s := p.at(p.examined)
		if s.begun {
			continue
		}
		if p.ready(p.examined, s) {
			s.begun = true
			return &s.Step, p.examined, true
		}
		// What comes later between the two must not overtake it.
		if s.Sends() {
			p.blockedSends = append(p.blockedSends, s.Dest())
		}
		if s.Receives() {
			p.blockedRecvs = append(p.blockedRecvs, s.Peer)
		}
	}
	return nil, 0, false
}

// ready reports whether a step may begin.
func (p *Progress) ready(number int, s *progressStep) bool {
	for _, a := range &s.After {
		switch {
		case a == Everything && p.low != number-1, a > p.low && !p.at(a).done:
			return false
		}
	}
	return !(s.Sends() && slices.Contains(p.blockedSends, s.Dest())) && !(s.Receives() && slices.Contains(p.blockedRecvs, s.Peer))
}

// Done says that a step that has begun is complete.
func (p *Progress) Done(number int) {
	p.at(number).done, p.examined = true, 0
	for p.low < p.read && p.at(p.low+1).done {
		p.low++
	}
}

// Over reports whether all steps are complete.
func (p *Progress) Over() bool {
	p.fill()
	return p.low == p.read
}
