package progress

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// oversubscribedBudget is how long a caller polls on an oversubscribed host. Polling costs little, because the caller
// yields to other processes after every poll, and being woken up takes longer there. A shorter budget after long
// waits made broadcasts take 1.2 to 1.4 times as long.
//
// Time during which other processes had the core does not count. While one of them computes or copies, a caller polls
// once in each of its time slices, which costs less than being woken up.
const oversubscribedBudget = 2 * time.Millisecond

var (
	// polling counts the callers in the process that poll. Each of them occupies a core.
	polling atomic.Int32
	// asleep counts the callers that wait and do not poll.
	asleep atomic.Int32
	// scheduled is the number of goroutines of the process that may run at a time.
	scheduled atomic.Int32
)

// cores returns the number of callers of the process that may poll.
func cores() int32 { return int32(min(runtime.GOMAXPROCS(0), runtime.NumCPU())) }

// oversubscribedPollers is the number of callers of a process that may poll on an oversubscribed host. One is enough,
// because it polls for sleeping callers as well. More would take cores from other processes, and from goroutines that
// it has woken up. See Group.PollAlone.
const oversubscribedPollers = 1

// SpinPolicy determines how long the callers that wait for the same sources poll.
type SpinPolicy struct {
	oversubscribed bool
	maxPollers     int32 // maximum in the process
	// every is the number of polls between two pauses.
	every atomic.Int32
	// alone is set for an attached program. without is the number of polls between two yields of its callers.
	alone   bool
	without atomic.Int32
	// avoided returns the processor that callers move away from, unless it is nil. examined is the time of the last
	// check whether a caller runs on that processor.
	avoided  func() int
	examined atomic.Int64

	mu     sync.Mutex // guards policy
	policy policy
	// chosen is the last result of policy in nanoseconds, or 0.
	chosen atomic.Int64
	wakeup func() time.Duration // cost of a wake-up
}

// Init initializes the policy. oversubscribed means that the host has more polling processes than cores: callers then
// yield to other processes after every poll.
func (p *SpinPolicy) Init(oversubscribed bool) {
	p.oversubscribed, p.maxPollers = oversubscribed, cores()
	scheduled.Store(int32(runtime.GOMAXPROCS(0)))
	p.wakeup = wakeupCost
	p.every.Store(firstPolls)
	if oversubscribed {
		p.maxPollers = oversubscribedPollers
	}
}

// budget returns how long to poll.
func (p *SpinPolicy) budget() time.Duration {
	if p.oversubscribed {
		return oversubscribedBudget
	}
	if d := p.chosen.Load(); d != 0 {
		return time.Duration(d)
	}
	return price(p.wakeup())
}

// waited records the duration of a wait, unless another caller is recording one.
func (p *SpinPolicy) waited(d time.Duration) {
	if p.oversubscribed || !p.mu.TryLock() {
		return
	}
	if p.policy.waited(d) {
		p.chosen.Store(int64(p.policy.choose(price(p.wakeup()))))
	}
	p.mu.Unlock()
}

// Sleep waits for a value on c without polling. If ctx ends first, it returns the context's cause. The sender of the
// value must already know c. polled is how long the caller has polled before, as returned by Spin.End; waits without
// polling are not recorded.
func (p *SpinPolicy) Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	start := time.Now()
	asleep.Add(1)
	defer func() {
		asleep.Add(-1)
		if polled > 0 {
			// The event occurred before the caller continued.
			p.waited(polled + max(time.Since(start)-p.wakeup(), 0))
		}
	}()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}
