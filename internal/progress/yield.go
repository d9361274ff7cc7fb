package progress

import "time"

// A caller on an oversubscribed host yields to other processes. To do so costs several times what a poll does, also
// if no other process wants the processor. What a yield has taken shows whether one had it. The daemon's goroutine that polls
// for attached programs, and these, yield less often while none wants it; ranks that exchange messages themselves do not: with 8 on
// two cores, that was no faster.
const (
	// quickYield is how long a yield takes at most after which no other process has run: two switches of processes take
	// longer.
	quickYield = time.Microsecond
	// A caller that has the processor for itself spends 1/yieldPart of its time on yields, or more if polls are so short
	// that these would be more than mostWithout polls apart: a poll that finds something takes much longer, and a process that
	// comes is not to wait for many of them.
	yieldPart   = 8
	mostWithout = 15
	// examineEvery is how often a caller examines at most whether it is to move to another processor, which takes a system call. The
	// kernel may move it back when it balances load.
	examineEvery = time.Millisecond
)

// yields says after which polls of a spin its caller yields.
type yields struct {
	// without is how many polls there are between two yields, and left how many are to come before the next one.
	without, left int
	last          time.Duration // when the last yield of the spin ended, or 0
}

// due reports whether to yield after a poll.
func (y *yields) due() bool {
	y.left--
	return y.left < 0
}

// yielded notes a yield that has lasted from begin to end. It reports whether another process has had the processor
// meanwhile: then the caller yields after each poll.
func (y *yields) yielded(begin, end time.Duration) (others bool) {
	took := end - begin
	switch {
	case took > quickYield:
		y.without, others = 0, true
	case y.last == 0:
	case begin-y.last < yieldPart*took:
		y.without = min(2*y.without+1, mostWithout)
	default:
		y.without /= 2
	}
	y.left, y.last = y.without, end
	return others
}

// yield yields to other processes, if that is due.
func (s *Spin) yield() {
	if !s.seldom {
		yield()
		return
	}
	if !s.yields.due() {
		return
	}
	before, begin := s.yields.without, Clock()
	yield()
	end := Clock()
	if s.yields.yielded(begin, end) {
		s.p.move(end)
	}
	if n := s.yields.without; n != before {
		s.p.without.Store(int32(n))
	}
}

// move moves the caller, which shares its processor, to another one if that is the one to be avoided.
func (p *SpinPolicy) move(now time.Duration) {
	last := p.examined.Load()
	if p.avoided == nil || now-time.Duration(last) < examineEvery || !p.examined.CompareAndSwap(last, int64(now)) {
		return
	}
	if n := p.avoided(); n >= 0 && n == Processor() {
		leaveProcessor(n)
	}
}
