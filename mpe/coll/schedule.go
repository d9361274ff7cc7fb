package coll

// Schedule is the sequence of steps that one rank takes in one call. It can be read only once, by Next.
type Schedule struct {
	// Scratch is the number of bytes of scratch memory that the steps need.
	Scratch int
	// Window is the minimum number of steps, beginning with the oldest incomplete step, that the executor must consider
	// at a time.
	Window int
	// InOrder means that each step begins when the step before it is complete. It is set for schedules on shared
	// buffers, which contain no messages.
	InOrder bool

	token     int
	steps     []Step // steps of the current round; Next has returned the steps before pos
	pos       int
	stepCount int
	stages    []stage
	// stageMemory is the initial value of stages, before Next removes stages from the front; Build reuses its memory.
	stageMemory []stage
}

// stage is a part of a schedule. Its steps are built round by round, when they are needed.
type stage struct {
	round, rounds int
	make          func(round int)
}

// Next returns the next step, and false after the last one. The pointer is valid until the next call. Steps are
// numbered from 1 in this order.
func (s *Schedule) Next() (*Step, bool) {
	for s.pos == len(s.steps) {
		if len(s.stages) == 0 {
			return nil, false
		}
		s.steps, s.pos = s.steps[:0], 0
		g := &s.stages[0]
		if g.round == g.rounds {
			s.stages = s.stages[1:]
			continue
		}
		g.round++
		g.make(g.round - 1)
	}
	s.pos++
	return &s.steps[s.pos-1], true
}

// rounds adds a part that consists of n rounds. When Next reaches a round, it calls f to add the steps of that round.
// After rounds, only further parts may be added.
func (s *Schedule) rounds(n int, f func(round int)) {
	if n > 0 {
		s.stages = append(s.stages, stage{rounds: n, make: f})
	}
}

// reserve allocates n bytes of scratch.
func (s *Schedule) reserve(n int) Loc {
	l := Loc{Scratch, s.Scratch}
	s.Scratch += n
	return l
}

// add adds a step and returns its number.
func (s *Schedule) add(step Step, after []int) int {
	n := 0
	for _, a := range after {
		switch {
		case a == 0:
			continue
		case n == len(step.After): // merge the dependencies that do not fit
			s.stepCount++
			s.steps = append(s.steps, Step{Kind: StepJoin, After: step.After})
			step.After = [3]int{s.stepCount}
			n = 1
		}
		step.After[n] = a
		n++
	}
	s.stepCount++
	s.steps = append(s.steps, step)
	return s.stepCount
}

// Each of the following methods adds a step and returns its number. For n = 0 it adds no step and returns 0 (no
// dependency): both sides know that the message is empty.

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

// pack copies count pieces of n bytes, whose starts are stride bytes apart, into adjacent pieces.
func (s *Schedule) pack(into, from Loc, n, count, stride int, after ...int) int {
	if n == 0 || count == 0 {
		return 0
	}
	if count == 1 {
		return s.copy(into, from, n, after...)
	}
	return s.add(Step{Kind: StepPack, From: from, Into: into, Len: n, Count: count, Stride: stride}, after)
}

// reduce sets into = from ∘ into.
func (s *Schedule) reduce(into, from Loc, n int, after ...int) int {
	if n == 0 {
		return 0
	}
	return s.add(Step{Kind: StepReduce, From: from, Into: into, Len: n}, after)
}

// combine sets into = from ∘ into if lower is set, which means that from is the contribution of lower ranks than into.
// Otherwise it sets into = into ∘ from.
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

// recvCombine adds steps that receive a vector of n bytes from a peer and combine it with own in acc. lower means that
// the peer's vector is the contribution of lower ranks. It is received in tmp, or in acc if own is not there; the
// operation must then be commutative. recvCombine returns the last step, or 0 for n = 0.
func (s *Schedule) recvCombine(lower bool, peer int, own, acc, tmp Loc, n, ready int) int {
	if own != acc {
		return s.reduce(acc, own, n, s.recv(peer, acc, n, ready), ready)
	}
	return s.combine(lower, acc, tmp, n, s.recv(peer, tmp, n, ready), ready)
}

// join returns a step that waits for all steps in after, or 0 if after contains none.
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

// fence returns a step that waits for all steps added so far.
func (s *Schedule) fence() int { return s.add(Step{Kind: StepJoin}, []int{AllEarlier}) }

// sendToken and recvToken add messages without content.
func (s *Schedule) sendToken(peer int, after ...int) int {
	return s.add(Step{Kind: StepSend, Peer: peer, From: Loc{Buf: Blank}, Len: s.token}, after)
}

func (s *Schedule) recvToken(peer int, after ...int) int {
	return s.add(Step{Kind: StepRecv, Peer: peer, Into: Loc{Buf: Blank}, Len: s.token}, after)
}
