package progress

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// shortBudget is for how long a caller that waits polls at least. It is
	// about what it takes to be woken.
	shortBudget = 50 * time.Microsecond
	// longBudget is for how long it polls while what it waits for comes quickly.
	// It is more than it takes the other side to be woken and to answer: two sides that
	// have both slept once would otherwise sleep every time.
	longBudget = 300 * time.Microsecond
	// shortGap is how long waits take, smoothed, while that is so.
	shortGap = 400 * time.Microsecond
	// maxGap is the longest wait that is remembered, so that a few quick ones
	// after a pause are enough to poll longer.
	maxGap = 2 * shortGap
	// oversubscribedBudget is for how long a caller polls on an oversubscribed host. It
	// costs little, as the caller yields to other processes after every poll, and to be
	// woken takes longer there.
	oversubscribedBudget = 2 * time.Millisecond
)

var (
	// polling counts the callers in the process that poll. Each occupies a core.
	polling atomic.Int32
	// asleep counts those that wait and do not poll.
	asleep atomic.Int32
	// cores is how many may poll.
	cores = int32(runtime.GOMAXPROCS(0))
)

// oversubscribedPollers is how many callers of a process may poll on an oversubscribed
// host. One is enough, as it polls for those that are asleep as well; others would keep
// cores from other processes, and from what it has woken.
const oversubscribedPollers = 1

// SpinPolicy is for how long callers poll that wait for the same sources.
type SpinPolicy struct {
	oversubscribed bool
	maxPollers     int32 // in the process, at most
	// gap is how long a wait takes, in nanoseconds, smoothed.
	gap atomic.Int64
	// every is how many polls there are between two pauses.
	every atomic.Int32
}

// Init sets the policy up. Oversubscribed says that the host has more processes that poll
// than cores: a caller that polls yields to other processes after every poll.
func (p *SpinPolicy) Init(oversubscribed bool) {
	p.oversubscribed, p.maxPollers = oversubscribed, cores
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
	if time.Duration(p.gap.Load()) > shortGap {
		return shortBudget
	}
	return longBudget
}

// waited remembers how long a wait has taken. Callers that do so at the same time
// may lose the one or the other, which does no harm.
func (p *SpinPolicy) waited(d time.Duration) {
	gap := p.gap.Load()
	p.gap.Store(gap + (int64(min(d, maxGap))-gap)/4)
}

// Sleep waits for a value on c, or for ctx, whose cause it returns, without polling. The
// sender of the value must know c already.
func (p *SpinPolicy) Sleep(ctx context.Context, c <-chan struct{}) error {
	start := time.Now()
	asleep.Add(1)
	defer func() {
		asleep.Add(-1)
		p.waited(time.Since(start))
	}()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
