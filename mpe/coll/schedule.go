package coll

// Schedule is what one rank does in one call. It is read once, with Next.
type Schedule struct {
	// Scratch is how many bytes of scratch the steps use.
	Scratch int
	// Window is how many steps the executor must be able to look at, from the
	// oldest that is not complete.
	Window int
	// InOrder: each step begins when the one before it is complete. So it is if ranks use each
	// other's shared buffers, in schedules that have no messages.
	InOrder bool

	token  int
	steps  []Step // given out up to at, made again for each round
	at     int
	made   int
	stages []stage
	// memory is where stages begins, which gets shorter from the front.
	memory []stage
}

// stage is a part of a schedule that is made round by round.
type stage struct {
	round, rounds int
	make          func(round int)
}

// Next gives the next step, which is valid until the next call. Steps are numbered from 1 in this order.
func (s *Schedule) Next() (*Step, bool) {
	for s.at == len(s.steps) {
		if len(s.stages) == 0 {
			return nil, false
		}
		s.steps, s.at = s.steps[:0], 0
		g := &s.stages[0]
		if g.round == g.rounds {
			s.stages = s.stages[1:]
			continue
		}
		g.round++
		g.make(g.round - 1)
	}
	s.at++
	return &s.steps[s.at-1], true
}

// rounds adds a part that is made when it is read: f is called with 0 to n−1. After
// that, steps can be added by further parts only.
func (s *Schedule) rounds(n int, f func(round int)) {
	if n > 0 {
		s.stages = append(s.stages, stage{rounds: n, make: f})
	}
}

// reserve takes n bytes of scratch.
func (s *Schedule) reserve(n int) Loc {
	l := Loc{Scratch, s.Scratch}
	s.Scratch += n
	return l
}

// add adds a step and gives its number.
func (s *Schedule) add(step Step, after []int) int {
	n := 0
	for _, a := range after {
		switch {
		case a == 0:
			continue
		case n == len(step.After): // what does not fit is joined
			s.made++
			s.steps = append(s.steps, Step{Kind: StepJoin, After: step.After})
			step.After = [3]int{s.made}
			n = 1
		}
		step.After[n] = a
		n++
	}
	s.made++
	s.steps = append(s.steps, step)
	return s.made
}

// The following add a step each and give its number, or 0, which waits for nothing,
// if there are no bytes to it. Messages of no bytes are not sent: both sides know.

func (s *Schedule) send(peer int, from Loc, n int, after ...int) int {
	if n == 0 {
		return 0
	}
	return s.add(Step{Kind: StepSend, Peer: peer, From: from, Len: n}, after)
}

func (s *Schedule) recv(peer int, into Loc, n int, after ...int) int {
	if n == 0 {
		return 0
	}
	return s.add(Step{Kind: StepRecv, Peer: peer, Into: into, Len: n}, after)
}

func (s *Schedule) copy(into, from Loc, n int, after ...int) int {
	if n == 0 {
		return 0
	}
	return s.add(Step{Kind: StepCopy, From: from, Into: into, Len: n}, after)
}

// pack copies count pieces of n bytes, stride bytes apart, into one after another.
func (s *Schedule) pack(into, from Loc, n, count, stride int, after ...int) int {
	if n == 0 || count == 0 {
		return 0
	}
	if count == 1 {
		return s.copy(into, from, n, after...)
	}
	return s.add(Step{Kind: StepPack, From: from, Into: into, Len: n, Count: count, Stride: stride}, after)
}

// reduce is into = from ∘ into.
func (s *Schedule) reduce(into, from Loc, n int, after ...int) int {
	if n == 0 {
		return 0
	}
	return s.add(Step{Kind: StepReduce, From: from, Into: into, Len: n}, after)
}

// combine is reduce if from is of lower ranks than into, and into = into ∘ from if
// not.
func (s *Schedule) combine(lower bool, into, from Loc, n int, after ...int) int {
	if n == 0 {
		return 0
	}
	kind := StepReduceRight
	if lower {
		kind = StepReduce
	}
	return s.add(Step{Kind: kind, From: from, Into: into, Len: n}, after)
}

// join gives what waits for all of these.
func (s *Schedule) join(after ...int) int {
	last, n := 0, 0
	for _, a := range after {
		if a != 0 && a != last {
			last, n = a, n+1
		}
	}
	if n < 2 {
		return last
	}
	return s.add(Step{Kind: StepJoin}, after)
}

// fence gives what waits for all steps so far.
func (s *Schedule) fence() int { return s.add(Step{Kind: StepJoin}, []int{Everything}) }

// sendToken and recvToken are messages without content.
func (s *Schedule) sendToken(peer int, after ...int) int {
	return s.add(Step{Kind: StepSend, Peer: peer, From: Loc{Buf: Blank}, Len: s.token}, after)
}

func (s *Schedule) recvToken(peer int, after ...int) int {
	return s.add(Step{Kind: StepRecv, Peer: peer, Into: Loc{Buf: Blank}, Len: s.token}, after)
}
