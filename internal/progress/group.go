package progress

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// MaxDrivers limits the sources of a group.
const MaxDrivers = 64 // bits of a mask

// Owner is the owner of a group's sources. Its methods are called concurrently.
type Owner interface {
	// Now returns the time on the owner's clock.
	Now() time.Duration
	// Tick is called every few microseconds by callers that poll, and by the poller after each of its polls. The
	// owner then handles expired timers.
	Tick(now time.Duration)
	// Calls returns the number of calls that callers have made. A call need not poll: its event may already have
	// arrived.
	Calls() uint32
	// Armed is called when the poller begins to watch a source. If it watches all of them, Tick is not called until
	// the next event.
	Armed()
	// Failed is called with the error of a source, which is then not polled for a while.
	Failed(err error)
}

// Group is a set of sources that are polled together. Init and Add must be called before any caller waits.
type Group struct {
	// Waiting is the number of callers that wait without polling. While it is positive, the poller watches the
	// sources without an owner.
	Waiting atomic.Int32

	owner   Owner
	spin    SpinPolicy
	drivers []*Driver
	// looked is the time at which callers last read the clock, and since the time at which they came back after they
	// were away.
	looked, since atomic.Int64
}

// Init initializes a group without sources. owner may be nil if only the sources need handling. oversubscribed is as
// in SpinPolicy.Init.
func (g *Group) Init(owner Owner, oversubscribed bool) {
	g.owner = owner
	g.spin.Init(oversubscribed)
}

// PollAlone lets callers poll on an oversubscribed host even while callers of other groups do. It is for sources that
// nothing else polls, each with its own caller, which waits for another process. avoided returns the processor on
// which that process polls, or a negative number; avoided may be nil.
func (g *Group) PollAlone(avoided func() int) {
	g.spin.maxPollers, g.spin.alone, g.spin.avoided = cores(), true, avoided
}

// Add adds a source, whose descriptor becomes readable when an event arrives. It is watched from the next Watch on.
// While callers compute between their calls, the poller polls it at the interval. Add fails if the system has no
// poller, or cannot watch the descriptor.
func (g *Group) Add(fd int, src Source, interval time.Duration) error {
	d := &Driver{g: g, src: src, interval: interval}
	var err error
	if d.watch, err = NewWatch(fd, d.due); err != nil {
		return err
	}
	g.drivers = append(g.drivers, d)
	return nil
}

// Len returns the number of sources.
func (g *Group) Len() int { return len(g.drivers) }

// Remove removes the sources from the poller. After it returns, the poller does not use them. The descriptors must
// still be open, and no source's Poll may call Remove.
func (g *Group) Remove() {
	for _, d := range g.drivers {
		d.watch.Remove()
	}
}

// Close is Remove, and then waits until no source is being polled. None will be polled again.
func (g *Group) Close() {
	g.Remove()
	for _, d := range g.drivers {
		for !d.acquire() { // its owner releases it soon
			runtime.Gosched()
		}
	}
}

// Armed reports whether the poller watches all sources, so that nothing calls Tick.
func (g *Group) Armed() bool {
	for _, d := range g.drivers {
		if !d.armed.Load() {
			return false
		}
	}
	return true
}

// Watch makes the poller watch all sources without an owner.
func (g *Group) Watch() {
	for _, d := range g.drivers {
		d.watchUnowned()
	}
}

// Poll polls the sources until done is set, c has a value, ctx ends, or sleeping becomes better than polling. done or
// c may be nil. If the caller should sleep now, Poll returns how long it has polled, and otherwise 0.
func (g *Group) Poll(ctx context.Context, done *atomic.Bool, c <-chan struct{}) (polled time.Duration) {
	if len(g.drivers) == 0 || ctx.Err() != nil {
		return 0
	}
	var s Spin
	if !g.spin.Begin(&s) {
		return 0
	}
	var mine uint64      // the drivers owned by this call
	signaled := c != nil // len of a nil channel would be a wasted runtime call in each poll
	for {
		for i, d := range g.drivers {
			if mine&(1<<i) == 0 {
				if !d.begin() {
					continue
				}
				mine |= 1 << i
			}
			if n := d.poll(); n > 0 {
				s.found = true
			} else if n < 0 {
				mine &^= 1 << i
			}
		}
		s.found = visit() || s.found
		if mine == 0 || done != nil && done.Load() || signaled && len(c) > 0 {
			break
		}
		if !s.Polled() {
			continue
		}
		now := g.look()
		if !s.Continue(now) || ctx.Err() != nil {
			break
		}
	}
	polled = s.End()
	clock := false
	for i, d := range g.drivers {
		if mine&(1<<i) != 0 {
			clock = d.visited() || clock
		}
	}
	if clock {
		g.look()
	}
	return polled
}

// look is called by callers that have polled many times. It returns the time.
func (g *Group) look() time.Duration {
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

// failed passes on the error of a source.
func (g *Group) failed(err error) {
	if g.owner != nil {
		g.owner.Failed(err)
	}
}

// postpone delays the poller's next poll, on behalf of a caller that polls: by an eighth of the time for which
// callers have polled without being away, but at least by the source's interval, once half of the last postponement
// has passed. Each postponement moves a kernel timer, which takes several microseconds on a virtual machine: with a
// constant 2 ms, it delayed more than one message in a hundred.
func (g *Group) postpone(now time.Duration) {
	if now-time.Duration(g.looked.Load()) > away {
		g.since.Store(int64(now))
	}
	g.looked.Store(int64(now))
	polled := min((now-time.Duration(g.since.Load()))/8, postponeMost)
	for _, d := range g.drivers {
		last, later := d.postponed.Load(), max(polled, d.interval)
		if now-time.Duration(last) >= later/2 && d.postponed.CompareAndSwap(last, int64(now)) {
			d.watch.postpone(later)
		}
	}
}

// PollOnce polls once, for a caller that does not wait.
func (g *Group) PollOnce() {
	clock := false
	for _, d := range g.drivers {
		if d.begin() && d.poll() >= 0 {
			clock = d.visited() || clock
		}
	}
	if clock {
		g.look()
	}
}

// Drain polls until no event is left, but not too often: there may be a flood. It skips sources with an owner.
func (g *Group) Drain() {
	for _, d := range g.drivers {
		if d.acquire() && d.drain() {
			d.release()
		}
	}
}

// Sleep waits for a value on c without polling. If ctx ends first, it returns the context's cause. The sender of the
// value must already know c, and the caller must be counted in Waiting. polled is the result of Poll.
func (g *Group) Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	g.Watch()
	return g.spin.Sleep(ctx, c, polled)
}

// Await polls and then sleeps until c has a value. If ctx ends first, it returns the context's cause.
func (g *Group) Await(ctx context.Context, c <-chan struct{}) error {
	polled := g.Poll(ctx, nil, c)
	select {
	case <-c:
		return nil
	default:
	}
	return g.AwaitAsleep(ctx, c, polled)
}

// AwaitAsleep is Await for a caller that has polled. polled is the result of Poll.
func (g *Group) AwaitAsleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	g.Waiting.Add(1)
	defer g.Waiting.Add(-1)
	return g.Sleep(ctx, c, polled)
}

// Heartbeat returns an error unless the poller shows before ctx is done that it is alive. The poller polls the
// sources when an event arrives.
func (g *Group) Heartbeat(ctx context.Context) error {
	if len(g.drivers) == 0 {
		return nil
	}
	return heartbeat(ctx)
}
