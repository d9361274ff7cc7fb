package coll

import (
	"math/bits"
	"slices"
)

// Progress tracks a rank's progress in a schedule. Next reports which steps may begin, and the executor calls
// MarkDone for completed steps. Progress ensures the promises to peers in the package comment. It is not safe for
// concurrent use.
type Progress struct {
	schedule *Schedule
	// ring holds the steps from number completed+1, the oldest incomplete step, to number lastRead, the last step read
	// from schedule. Its length is a power of two.
	ring                []progressStep
	completed, lastRead int
	// No step below next still has to begin. examined is the last step that Next examined since the last MarkDone, or 0
	// if there is none: the steps up to examined that have not begun cannot begin yet.
	next, examined int
	// blockedSends and blockedRecvs list the peers of those examined sends and receives that cannot begin yet. Later
	// steps with the same peer must not overtake them.
	blockedSends, blockedRecvs []int
}

type progressStep struct {
	Step
	started, done bool
}

// minWindow is the minimum number of steps that an executor considers at a time. This window determines how many
// messages can be in flight.
const minWindow = 32

// Begin begins a schedule.
func (p *Progress) Begin(s *Schedule) {
	window := 1 << bits.Len(uint(max(minWindow, s.Window)-1))
	if len(p.ring) < window {
		p.ring = make([]progressStep, window)
	}
	*p = Progress{schedule: s, ring: p.ring, blockedSends: p.blockedSends, blockedRecvs: p.blockedRecvs}
}

// Step returns a step that has begun and is not complete. The pointer is valid until the step is complete.
func (p *Progress) Step(number int) *Step { return &p.stepAt(number).Step }

// stepAt returns a step in the window by its number.
func (p *Progress) stepAt(number int) *progressStep { return &p.ring[number&(len(p.ring)-1)] }

// fill reads steps until the window is full.
func (p *Progress) fill() {
	for p.lastRead-p.completed < len(p.ring) {
		step, ok := p.schedule.Next()
		if !ok {
			return
		}
		p.lastRead++
		s := p.stepAt(p.lastRead)
		s.Step, s.started, s.done = *step, false, false
	}
}

// Next returns the next step to begin and its number. ok is false if no step can begin before another is complete. The
// pointer is valid until the next call.
func (p *Progress) Next() (step *Step, number int, ok bool) {
	p.fill()
	if p.examined == 0 {
		for p.next = max(p.next, p.completed+1); p.next <= p.lastRead && p.stepAt(p.next).started; {
			p.next++
		}
		p.examined = p.next - 1
		p.blockedSends, p.blockedRecvs = p.blockedSends[:0], p.blockedRecvs[:0]
	}
	for p.examined < p.lastRead {
		p.examined++
		s := p.stepAt(p.examined)
		if s.started {
			continue
		}
		if p.ready(p.examined, s) {
			s.started = true
			return &s.Step, p.examined, true
		}
		// Later steps with the same peer must not overtake this one.
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
func (p *Progress) ready(number int, step *progressStep) bool {
	for _, a := range &step.After {
		switch {
		case a == AllEarlier && p.completed != number-1, a > p.completed && !p.stepAt(a).done:
			return false
		}
	}
	return !(step.Sends() && slices.Contains(p.blockedSends, step.Dest())) &&
		!(step.Receives() && slices.Contains(p.blockedRecvs, step.Peer))
}

// MarkDone records that a step is complete.
func (p *Progress) MarkDone(number int) {
	p.stepAt(number).done, p.examined = true, 0
	for p.completed < p.lastRead && p.stepAt(p.completed+1).done {
		p.completed++
	}
}

// IsDone reports whether all steps are complete.
func (p *Progress) IsDone() bool {
	p.fill()
	return p.completed == p.lastRead
}
