package progress

import "time"

// On an oversubscribed host, a caller yields to other processes. A yield costs several times as much as a poll,
// even if no other process wants the processor. The duration of a yield shows whether another process ran.
// Attached programs, and the goroutine of the daemon that polls for them, yield less often as long as no other
// process wants the processor. Ranks that exchange messages themselves do not: with 8 such ranks on two cores,
// this was no faster.
const (
	// quickYield is the longest duration of a yield during which no other process ran. Two context switches
	// take longer.
	quickYield = time.Microsecond
	// A caller that has the processor to itself spends 1/yieldPart of its time on yields. It spends more if
	// polls are so short that more than mostWithout of them would fit between two yields: a poll that finds
	// something takes much longer, and a new process must not have to wait for many such polls.
	yieldPart   = 8
	mostWithout = 15
	// examineEvery is the minimum time between two checks of whether the caller should move to another
	// processor. Each check takes a system call. A check must be repeated because the kernel may move the
	// caller back when it balances the load.
	examineEvery = time.Millisecond
)

// yields determines after which polls of a spin the caller yields.
type yields struct {
	// without is the number of polls between two yields, and left is the number of polls until the next one.
	without, left int
	last          time.Duration // end of the most recent yield in the spin, or 0
}

// due reports whether the caller should yield after this poll.
func (y *yields) due() bool {
	y.left--
	return y.left < 0
}

// yielded records a yield that lasted from begin to end. It reports whether another process had the processor
// during that time, in which case the caller yields after every poll.
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

// yield yields to other processes if a yield is due.
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

// move moves a caller that shares its processor to another processor, if it is running on the processor to be
// avoided.
func (p *SpinPolicy) move(now time.Duration) {
	last := p.examined.Load()
	if p.avoided == nil || now-time.Duration(last) < examineEvery || !p.examined.CompareAndSwap(last, int64(now)) {
		return
	}
	if n := p.avoided(); n >= 0 && n == Processor() {
		leaveProcessor(n)
	}
}
