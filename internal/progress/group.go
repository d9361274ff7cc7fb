package progress

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// MaxDrivers is how many sources a group may have.
const MaxDrivers = 64 // bits of a mask

// Owner is what the sources of a group belong to. Its methods are called concurrently.
type Owner interface {
	// Now is the time on the owner's clock.
	Now() time.Duration
	// Tick is called every few microseconds by callers that poll, and by the poller
	// after each of its polls: here an owner does what is due.
	Tick(now time.Duration)
	// Calls is how many calls callers have made: more than before if one has. A call need not poll: what it wanted may have
	// arrived.
	Calls() uint32
	// Armed is called when the poller has begun to watch a source. If it watches
	// all of them, Tick is not called until something arrives.
	Armed()
	// Failed is called with the error of a source, which is not polled for a while.
	Failed(err error)
}

// Group has sources that are polled together. Set it up with Init and Add before any caller waits.
type Group struct {
	// Waiting counts the callers that wait and do not poll. While there are any, the
	// poller watches the sources that have no owner.
	Waiting atomic.Int32

	owner   Owner
	spin    SpinPolicy
	drivers []*Driver
	// looked is when callers have looked at the clock last, and since is when they have come back after they were away.
	looked, since atomic.Int64
}

// Init makes a group of no sources. Owner is nil if nothing but packets is to be done. Oversubscribed is as in
// SpinPolicy.Init.
func (g *Group) Init(owner Owner, oversubscribed bool) {
	g.owner = owner
	g.spin.Init(oversubscribed)
}

// PollAlone has callers poll on an oversubscribed host while those of other groups do as well: it is for
// sources that nothing else polls, each with a caller of its own. Another process does for them what they wait
// for: avoided returns the processor on which it polls, or a negative number, and may be nil.
func (g *Group) PollAlone(avoided func() int) {
	g.spin.maxPollers, g.spin.alone, g.spin.avoided = cores(), true, avoided
}

// Add adds a source, whose descriptor becomes readable when something arrives. It
// is watched from the next Watch on. While callers compute between their calls, the poller polls it at intervals. The error is of the
// system, or that it has no poller.
func (g *Group) Add(fd int, src Source, interval time.Duration) error {
	d := &Driver{g: g, src: src, interval: interval}
	var err error
	if d.watch, err = NewWatch(fd, d.due); err != nil {
		return err
	}
	g.drivers = append(g.drivers, d)
	return nil
}

// Len is how many sources there are.
func (g *Group) Len() int { return len(g.drivers) }

// Remove has the poller forget the sources. When it returns, it does nothing with
// them any longer. The descriptors are still open, and no source's Poll calls it.
func (g *Group) Remove() {
	for _, d := range g.drivers {
		d.watch.Remove()
	}
}

// Close is Remove, and when it returns, no source is being polled, nor will be.
func (g *Group) Close() {
	g.Remove()
	for _, d := range g.drivers {
		for !d.acquire() { // its owner releases it soon
			runtime.Gosched()
		}
	}
}

// Armed reports whether the poller watches all sources: then nothing calls Tick.
func (g *Group) Armed() bool {
	for _, d := range g.drivers {
		if !d.armed.Load() {
			return false
		}
	}
	return true
}

// Watch has the poller watch all sources that have no owner.
func (g *Group) Watch() {
	for _, d := range g.drivers {
		d.watchUnowned()
	}
}

// Poll polls the sources until done is set or c has a value, for as long as that is better than to be woken, and
// while ctx lasts. Done or c may be nil. It returns for how long it has polled if the caller is to sleep now.
func (g *Group) Poll(ctx context.Context, done *atomic.Bool, c <-chan struct{}) (polled time.Duration) {
	if len(g.drivers) == 0 || ctx.Err() != nil {
		return 0
	}
	var s Spin
	if !g.spin.Begin(&s) {
		return 0
	}
	var mine uint64      // the drivers that this call owns
	signaled := c != nil // or len(c) is a call of the runtime for nothing, in each poll
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

// look is called by callers that have polled often. It returns the time.
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

// postpone has the poller poll later, as a caller does: by an eighth of the time for which callers have polled and have not been away,
// or by the interval of the source if that is longer, when half of the last postponement is over. Each time moves a timer of the
// kernel, which takes several microseconds on a virtual machine: with 2 ms always, that was more than one message of a hundred.
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

// PollOnce polls once, for a caller that will not wait.
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

// Drain polls until nothing is left, but not too often: there may be a flood. It skips sources that have an owner.
func (g *Group) Drain() {
	for _, d := range g.drivers {
		if d.acquire() && d.drain() {
			d.release()
		}
	}
}

// Sleep waits for a value on c, or for ctx, whose cause it returns, without polling. The sender of the value must
// know c already, and the caller must be counted in Waiting. Polled is the result of Poll.
func (g *Group) Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	g.Watch()
	return g.spin.Sleep(ctx, c, polled)
}

// Await waits for a value on c, or for ctx, whose cause it returns. It polls first.
func (g *Group) Await(ctx context.Context, c <-chan struct{}) error {
	polled := g.Poll(ctx, nil, c)
	select {
	case <-c:
		return nil
	default:
	}
	return g.AwaitAsleep(ctx, c, polled)
}

// AwaitAsleep is Await for a caller that has polled: polled is what Poll has returned.
func (g *Group) AwaitAsleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	g.Waiting.Add(1)
	defer g.Waiting.Add(-1)
	return g.Sleep(ctx, c, polled)
}

// Heartbeat reports whether the poller, which polls the sources when something arrives, is alive: it has until ctx is done
// to show it.
func (g *Group) Heartbeat(ctx context.Context) error {
	if len(g.drivers) == 0 {
		return nil
	}
	return heartbeat(ctx)
}
