package progress

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// oversubscribedBudget is the polling time of a caller on an oversubscribed host. Polling costs little there, because
// the caller yields to other processes after every poll, while waking up takes longer. A shorter budget after long
// waits made broadcasts take 1.2 to 1.4 times as long.
//
// The budget does not include time during which other processes had the core. While such a process computes or
// copies, a caller polls once per time slice of that process, which costs less than being woken up.
const oversubscribedBudget = 2 * time.Millisecond

var (
	// pollingCallers is the number of callers in this process that are polling. Each of them occupies a core.
	pollingCallers atomic.Int32
	// sleepingCallers is the number of callers that wait without polling.
	sleepingCallers atomic.Int32
	// maxRunnable is the number of goroutines of the process that can run at the same time.
	maxRunnable atomic.Int32
)

// cores returns the number of callers in the process that may poll at the same time.
func cores() int32 { return int32(min(runtime.GOMAXPROCS(0), runtime.NumCPU())) }

// oversubscribedPollers is the number of callers in a process that may poll at the same time on an
// oversubscribed host. One is enough, because it also polls for sleeping callers. More would take cores away
// from other processes and from goroutines that the poller has woken up. See Group.PollAlone.
const oversubscribedPollers = 1

// SpinPolicy determines how long callers that wait for the same sources poll.
type SpinPolicy struct {
	oversubscribed bool
	maxPollers     int32 // maximum number of polling callers in the process
	// pollsPerPause is the number of polls between two pauses.
	pollsPerPause atomic.Int32
	// attached reports whether the callers belong to an attached program. pollsPerYield is the number of polls that
	// such a caller makes between two yields.
	attached      bool
	pollsPerYield atomic.Int32
	// avoidedCPU, if not nil, returns the number of the processor that callers should move away from. examinedAt is the
	// time at which a caller last checked whether it runs on that processor.
	avoidedCPU func() int
	examinedAt atomic.Int64

	mu     sync.Mutex // guards policy
	policy policy
	// chosenBudget is the spin budget that the policy chose most recently, in nanoseconds, or 0 initially.
	chosenBudget atomic.Int64
	wakeup       func() time.Duration // returns the cost of a wake-up
}

// Init initializes the policy. oversubscribed means that the host has more polling processes than cores.
// Callers then yield to other processes after every poll.
func (p *SpinPolicy) Init(oversubscribed bool) {
	p.oversubscribed, p.maxPollers = oversubscribed, cores()
	maxRunnable.Store(int32(runtime.GOMAXPROCS(0)))
	p.wakeup = wakeupCost
	p.pollsPerPause.Store(firstPolls)
	if oversubscribed {
		p.maxPollers = oversubscribedPollers
	}
}

// budget returns how long a caller may poll.
func (p *SpinPolicy) budget() time.Duration {
	if p.oversubscribed {
		return oversubscribedBudget
	}
	if d := p.chosenBudget.Load(); d != 0 {
		return time.Duration(d)
	}
	return sleepCost(p.wakeup())
}

// recordWait records the duration of a wait, unless another caller is recording one at the same time.
func (p *SpinPolicy) recordWait(d time.Duration) {
	if p.oversubscribed || !p.mu.TryLock() {
		return
	}
	if p.policy.recordWait(d) {
		p.chosenBudget.Store(int64(p.policy.choose(sleepCost(p.wakeup()))))
	}
	p.mu.Unlock()
}

// Sleep waits for a value on c without polling. If ctx is done first, it returns the cause. The sender of the value
// must already know c. polled is the time for which the caller polled before, as returned by Spin.End, or 0 if the wait
// should not be recorded.
func (p *SpinPolicy) Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	start := time.Now()
	sleepingCallers.Add(1)
	defer func() {
		sleepingCallers.Add(-1)
		if polled > 0 {
			// The cost of the wake-up is subtracted because the event occurred before the caller continued.
			p.recordWait(polled + max(time.Since(start)-p.wakeup(), 0))
		}
	}()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctxerr.Cause(ctx)
	}
}
