package progress

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// oversubscribedBudget is for how long a caller polls on an oversubscribed host. It costs little, as the caller
// yields to other processes after every poll, and to be woken takes longer there. A shorter budget after long waits
// has made broadcasts take 1.2 to 1.4 times as long.
//
// Time in which other processes had the core does not count. While one of them computes or
// copies, a caller polls once in each of its time slices, which costs less than to be woken.
const oversubscribedBudget = 2 * time.Millisecond

var (
	// polling counts the callers in the process that poll. Each occupies a core.
	polling atomic.Int32
	// asleep counts those that wait and do not poll.
	asleep atomic.Int32
	// scheduled is how many goroutines of the process may run at a time.
	scheduled atomic.Int32
)

// cores is how many callers of the process may poll.
func cores() int32 { return int32(min(runtime.GOMAXPROCS(0), runtime.NumCPU())) }

// oversubscribedPollers is how many callers of a process may poll on an oversubscribed
// host. One is enough, as it polls for those that are asleep as well; others would keep
// cores from other processes, and from what it has woken. See Group.PollAlone.
const oversubscribedPollers = 1

// SpinPolicy is for how long callers poll that wait for the same sources.
type SpinPolicy struct {
	oversubscribed bool
	maxPollers     int32 // in the process, at most
	// every is how many polls there are between two pauses.
	every atomic.Int32
	// alone is set if the policy is of an attached program, and without is how many polls its callers let pass between
	// two yields.
	alone   bool
	without atomic.Int32
	// avoided returns the processor that callers move away from, if it is not nil, and examined is when one has examined last whether
	// it is on that.
	avoided  func() int
	examined atomic.Int64

	mu     sync.Mutex // guards policy
	policy policy
	// chosen is what the policy has returned last, in nanoseconds, or 0.
	chosen atomic.Int64
	wakeup func() time.Duration // what a wake-up costs
}

// Init sets the policy up. Oversubscribed says that the host has more processes that poll
// than cores: a caller that polls yields to other processes after every poll.
func (p *SpinPolicy) Init(oversubscribed bool) {
	p.oversubscribed, p.maxPollers = oversubscribed, cores()
	scheduled.Store(int32(runtime.GOMAXPROCS(0)))
	p.wakeup = wakeupCost
	p.every.Store(firstPolls)
	if oversubscribed {
		p.maxPollers = oversubscribedPollers
	}
}

// budget returns for how long to poll.
func (p *SpinPolicy) budget() time.Duration {
	if p.oversubscribed {
		return oversubscribedBudget
	}
	if d := p.chosen.Load(); d != 0 {
		return time.Duration(d)
	}
	return price(p.wakeup())
}

// waited notes how long a wait has taken, unless another caller does so at the same time.
func (p *SpinPolicy) waited(d time.Duration) {
	if p.oversubscribed || !p.mu.TryLock() {
		return
	}
	if p.policy.waited(d) {
		p.chosen.Store(int64(p.policy.choose(price(p.wakeup()))))
	}
	p.mu.Unlock()
}

// Sleep waits for a value on c, or for ctx, whose cause it returns, without polling. The
// sender of the value must know c already. Polled is for how long the caller has polled before, as
// Spin.End returned it; waits that were not polled for are not counted.
func (p *SpinPolicy) Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	start := time.Now()
	asleep.Add(1)
	defer func() {
		asleep.Add(-1)
		if polled > 0 {
			// What was waited for has come before the caller has continued.
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
