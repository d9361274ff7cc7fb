package progress

import "time"

// A caller on an oversubscribed host yields to other processes. A yield costs several times as much as a poll, even
// if no other process wants the processor. Its duration shows whether another one ran. The daemon's goroutine that
// polls for attached programs, and these programs, yield less often while none wants it. Ranks that exchange messages
// themselves do not: with 8 of them on two cores, that was no faster.
const (
	// quickYield is the longest duration of a yield without another process: two context switches take longer.
	quickYield = time.Microsecond
	// A caller that has the processor for itself spends 1/yieldPart of its time on yields. It spends more if polls
	// are so short that yields would be more than mostWithout polls apart: a poll that finds something takes much
	// longer, and a new process must not wait for many of them.
	yieldPart   = 8
	mostWithout = 15
	// examineEvery is the minimum time between checks whether to move to another processor, which take a system call.
	// The kernel may move the caller back when it balances load.
	examineEvery = time.Millisecond
)

// yields determines after which polls of a spin its caller yields.
type yields struct {
	// without is the number of polls between two yields, and left the number before the next one.
	without, left int
	last          time.Duration // end of the spin's last yield, or 0
}

// due reports whether to yield after this poll.
func (y *yields) due() bool {
	y.left--
	return y.left < 0
}

// yielded records a yield that lasted from begin to end. It reports whether another process had the processor
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

// yield yields to other processes if that is due.
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

// move moves the caller, which shares its processor, to another processor if it runs on the one to avoid.
func (p *SpinPolicy) move(now time.Duration) {
	last := p.examined.Load()
	if p.avoided == nil || now-time.Duration(last) < examineEvery || !p.examined.CompareAndSwap(last, int64(now)) {
		return
	}
	if n := p.avoided(); n >= 0 && n == Processor() {
		leaveProcessor(n)
	}
}
