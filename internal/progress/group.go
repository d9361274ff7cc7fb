package progress

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// MaxDrivers is the maximum number of sources in a group.
const MaxDrivers = 64 // number of bits in a mask

// Owner is implemented by the component to which a group's sources belong. Its methods may be called concurrently.
type Owner interface {
	// Now returns the time on the owner's clock.
	Now() time.Duration
	// Tick is called every few microseconds by callers that poll, and by the poller after each of its polls.
	// The owner then handles the timers that have expired.
	Tick(now time.Duration)
	// Calls returns the number of calls that callers have made, including calls that found their event without polling.
	Calls() uint32
	// Armed is called when the poller starts to watch a source. While the poller watches all sources, Tick is
	// not called until the next event.
	Armed()
	// Failed is called with the error of a source, which is then not polled for errorPause.
	Failed(err error)
}

// Group is a set of sources that are polled together. Init and Add must be called before any caller waits.
type Group struct {
	// Waiting is the number of callers that wait without polling. While it is positive, the poller watches the
	// sources that have no owner.
	Waiting atomic.Int32

	owner   Owner
	spin    SpinPolicy
	drivers []*Driver
	// clockReadAt is the time at which a caller last read the clock, and pollingSince the time at which callers last
	// began to poll after having been away.
	clockReadAt, pollingSince atomic.Int64
}

// Init initializes a group without sources. owner may be nil if only the sources need handling. oversubscribed has the
// same meaning as in SpinPolicy.Init.
func (g *Group) Init(owner Owner, oversubscribed bool) {
	g.owner = owner
	g.spin.Init(oversubscribed)
}

// PollAlone allows callers to poll on an oversubscribed host even while callers of other groups poll. It suits sources
// that nothing else polls, and whose only caller waits for another process. avoided returns the number of the processor
// on which that process polls, or a negative number if it is unknown; avoided may be nil.
func (g *Group) PollAlone(avoided func() int) {
	g.spin.maxPollers, g.spin.attached, g.spin.avoidedCPU = cores(), true, avoided
}

// Add adds a source whose descriptor fd becomes readable when an event arrives. The poller starts to watch the source
// at the next call of Watch. While callers compute between their calls, the poller polls the source at the interval.
// Add fails if the system has no poller or cannot watch the descriptor.
func (g *Group) Add(fd int, src Source, interval time.Duration) error {
	d := &Driver{group: g, source: src, interval: interval}
	var err error
	if d.watch, err = NewWatch(fd, d.deadline); err != nil {
		return err
	}
	g.drivers = append(g.drivers, d)
	return nil
}

// Len returns the number of sources.
func (g *Group) Len() int { return len(g.drivers) }

// Acquire keeps source i, in the order of Add, from being polled until Release is called. It returns false if the
// source is being polled.
func (g *Group) Acquire(i int) bool { return g.drivers[i].acquire() }

// Release ends Acquire.
func (g *Group) Release(i int) { g.drivers[i].release() }

// Remove removes the sources from the poller. After Remove has returned, the poller does not use them. The
// descriptors must still be open. The Poll method of a source must not call Remove.
func (g *Group) Remove() {
	for _, d := range g.drivers {
		d.watch.Remove()
	}
}

// Close calls Remove and waits until no source is being polled. No source is polled afterwards.
func (g *Group) Close() {
	g.Remove()
	for _, d := range g.drivers {
		for !d.acquire() { // the owner will release it soon
			runtime.Gosched()
		}
	}
}

// Armed reports whether the poller watches all sources, in which case nothing calls Tick.
func (g *Group) Armed() bool {
	for _, d := range g.drivers {
		if !d.armed.Load() {
			return false
		}
	}
	return true
}

// Watch makes the poller watch all sources that have no owner.
func (g *Group) Watch() {
	for _, d := range g.drivers {
		d.watchUnowned()
	}
}

// Poll polls the sources until done is set, c has a value, ctx is done, or sleeping becomes better than polling. done
// and c may be nil. If the caller should now sleep, Poll returns how long it has polled; otherwise, it returns 0.
func (g *Group) Poll(ctx context.Context, done *atomic.Bool, c <-chan struct{}) (polled time.Duration) {
	if len(g.drivers) == 0 || ctx.Err() != nil {
		return 0
	}
	var spin Spin
	if !g.spin.Begin(&spin) {
		return 0
	}
	var mine uint64      // the drivers that this call owns
	signaled := c != nil // avoid a runtime call for the len of a nil channel in each poll
	for {
		found := visitShared()
		for i, driver := range g.drivers {
			if mine&(1<<i) == 0 {
				if !driver.acquireToPoll() {
					continue
				}
				mine |= 1 << i
			}
			if n := driver.poll(); n > 0 {
				found = true
			} else if n < 0 {
				mine &^= 1 << i
			}
		}
		if mine == 0 || done != nil && done.Load() || signaled && len(c) > 0 {
			break
		}
		if !spin.Polled(found) {
			continue
		}
		now := g.readClock()
		if !spin.Continue(now) || ctx.Err() != nil {
			break
		}
	}
	polled = spin.End()
	clock := false
	for i, d := range g.drivers {
		if mine&(1<<i) != 0 {
			clock = d.endVisit() || clock
		}
	}
	if clock {
		g.readClock()
	}
	return polled
}

// readClock reads the clock on behalf of a caller that has polled many times, lets the owner handle timers, and
// postpones the poller's poll. It returns the time.
func (g *Group) readClock() time.Duration {
	now := g.now()
	if g.owner != nil {
		g.owner.Tick(now)
	}
	g.postpone(now)
	return now
}

func (g *Group) now() time.Duration {
	if g.owner == nil {
		return Clock()
	}
	return g.owner.Now()
}

// failed reports the error of a source to the group's owner.
func (g *Group) failed(err error) {
	if g.owner != nil {
		g.owner.Failed(err)
	}
}

// postpone postpones the poller's next poll on behalf of a caller that polls. It does nothing until half of the
// previous postponement has passed. The postponement is an eighth of the time for which callers have polled
// without being away, but at least the source's interval. Each postponement moves a kernel timer, which takes
// several microseconds on a virtual machine; with a constant postponement of 2 ms, this delayed more than one
// message in a hundred.
func (g *Group) postpone(now time.Duration) {
	if now-time.Duration(g.clockReadAt.Load()) > awayTime {
		g.pollingSince.Store(int64(now))
	}
	g.clockReadAt.Store(int64(now))
	polled := min((now-time.Duration(g.pollingSince.Load()))/8, maxPostpone)
	for _, d := range g.drivers {
		last, later := d.postponedAt.Load(), max(polled, d.interval)
		if now-time.Duration(last) >= later/2 && d.postponedAt.CompareAndSwap(last, int64(now)) {
			d.watch.postpone(later)
		}
	}
}

// PollOnce polls each source once, for a caller that does not wait.
func (g *Group) PollOnce() {
	clock := false
	for _, d := range g.drivers {
		if d.acquireToPoll() && d.poll() >= 0 {
			clock = d.endVisit() || clock
		}
	}
	if clock {
		g.readClock()
	}
}

// Drain polls each source until it reports no more events, up to a maximum number of polls, because there may be a
// flood of events. It skips sources that have an owner.
func (g *Group) Drain() {
	for _, d := range g.drivers {
		if d.acquire() && d.drain() {
			d.release()
		}
	}
}

// Sleep waits for a value on c without polling. If ctx is done first, it returns the cause. The sender of the value
// must already know c, and Waiting must include the caller. polled is the result of Poll.
func (g *Group) Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	g.Watch()
	return g.spin.Sleep(ctx, c, polled)
}

// Await waits for a value on c, first polling and then sleeping. If ctx is done first, it returns the cause.
func (g *Group) Await(ctx context.Context, c <-chan struct{}) error {
	polled := g.Poll(ctx, nil, c)
	select {
	case <-c:
		return nil
	default:
	}
	return g.AwaitSleeping(ctx, c, polled)
}

// AwaitSleeping is Await for a caller that has already polled. polled is the result of Poll.
func (g *Group) AwaitSleeping(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	g.Waiting.Add(1)
	defer g.Waiting.Add(-1)
	return g.Sleep(ctx, c, polled)
}

// Heartbeat returns nil if the poller proves before ctx is done that it still handles events, and an error otherwise.
// The poller polls the sources when an event arrives.
func (g *Group) Heartbeat(ctx context.Context) error {
	if len(g.drivers) == 0 {
		return nil
	}
	return heartbeat(ctx)
}
