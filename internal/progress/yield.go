package progress

import "time"

// On an oversubscribed host, a caller yields to other processes. A yield costs several times as much as a poll,
// even if no other process wants the processor. The duration of a yield shows whether another process ran.
// Attached programs, and the goroutine of the daemon that polls for them, yield less often as long as no other
// process wants the processor. Ranks that exchange messages themselves do not: with 8 such ranks on two cores,
// this was no faster.
const (
	// quickYield is the longest duration of a yield during which no other process can have run, because two context
	// switches take longer.
	quickYield = time.Microsecond
	// A caller that has the processor to itself spends 1/yieldPart of its time on yields. It spends more if polls are
	// so short that more than maxPollsPerYield of them would fit between two yields: a successful poll takes much
	// longer, and a new process should not wait for many of them.
	yieldPart        = 8
	maxPollsPerYield = 15
	// examineEvery is the minimum time between two checks of whether the caller should move to another
	// processor. Each check takes a system call. A check must be repeated because the kernel may move the
	// caller back when it balances the load.
	examineEvery = time.Millisecond
)

// yields determines after which polls of a spin the caller yields.
type yields struct {
	// pollsPerYield is the number of polls between two yields, and pollsLeft the number of polls until the next one.
	pollsPerYield, pollsLeft int
	lastEnd                  time.Duration // end of the most recent yield in the spin, or 0
}

// isDue reports whether the caller should yield after this poll.
func (y *yields) isDue() bool {
	y.pollsLeft--
	return y.pollsLeft < 0
}

// record records a yield that lasted from begin to end. It reports whether another process had the processor during
// that time. In that case, the caller yields after every poll.
func (y *yields) record(begin, end time.Duration) (others bool) {
	took := end - begin
	switch {
	case took > quickYield:
		y.pollsPerYield, others = 0, true
	case y.lastEnd == 0:
	case begin-y.lastEnd < yieldPart*took:
		y.pollsPerYield = min(2*y.pollsPerYield+1, maxPollsPerYield)
	default:
		y.pollsPerYield /= 2
	}
	y.pollsLeft, y.lastEnd = y.pollsPerYield, end
	return others
}

// yield lets other processes run if a yield is due after this poll.
func (s *Spin) yield() {
	if !s.yieldsSeldom {
		yield()
		return
	}
	if !s.yields.isDue() {
		return
	}
	before, begin := s.yields.pollsPerYield, Clock()
	yield()
	end := Clock()
	if s.yields.record(begin, end) {
		s.policy.leaveAvoided(end)
	}
	if n := s.yields.pollsPerYield; n != before {
		s.policy.pollsPerYield.Store(int32(n))
	}
}

// leaveAvoided moves a caller that shares its processor to another processor, if it is running on avoidedCPU.
func (p *SpinPolicy) leaveAvoided(now time.Duration) {
	last := p.examinedAt.Load()
	if p.avoidedCPU == nil || now-time.Duration(last) < examineEvery || !p.examinedAt.CompareAndSwap(last, int64(now)) {
		return
	}
	if n := p.avoidedCPU(); n >= 0 && n == Processor() {
		leaveProcessor(n)
	}
}
