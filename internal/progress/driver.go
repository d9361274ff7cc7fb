package progress

import (
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Source is what is polled. Its methods are called by one goroutine at a time: the owner.
type Source interface {
	// Poll takes what has arrived, and returns how much that was. It does not wait. The error ErrEnded ends the
	// source; after any other one it is not polled for a while.
	Poll() (int, error)
	// Sleep announces that Poll will not be called before the descriptor is readable. It reports false if something
	// has arrived already that Poll has not returned.
	Sleep() bool
}

// Watch is a descriptor that the process's poller watches: from Arm until it has become readable once. It is for
// descriptors that are read by callers that wait for what they bring, and have to be watched in the meantime only. Go's
// own poller has no such thing: it wakes a thread for all that arrives, also while a caller polls for it anyway.
type Watch interface {
	// Arm has the descriptor watched until it is readable. It must not be called after Remove, nor at the same time as
	// itself or unregister.
	Arm() error
	// Remove ends the Watch. When it returns, what NewWatch was given is not being called, and never will be. The
	// descriptor must still be open, and what is called must not call Remove.
	Remove()
	// unregister has the kernel forget a descriptor that is not armed, until the next Arm. As long as it is registered,
	// each datagram takes its sender 0.2 µs more on loopback, also if nothing waits for it.
	unregister()
	// postpone has it called after d, if it is to be called again at all.
	postpone(d time.Duration)
}

// ErrEnded is what Poll returns when nothing will ever arrive again. Nothing polls the source any longer.
var ErrEnded = errors.New("the source has ended")

// ended is what poll returns then.
const ended = -1

// retry is how long a source that has failed is not polled.
const retry = 10 * time.Millisecond

// Callers come and go: between their calls, they compute. Being woken then by all that arrives would slow them down, and
// so do polls on the same core. So the poller polls such a source at intervals, which Add names. What comes while callers compute
// waits for no longer than that, or than the postponement after the last call.
const (
	// Network is the interval for packets of a network: peers whose time runs off wait for what they are answered.
	Network = 2 * time.Millisecond
	// Memory is that for packets in shared memory, which are read where they are. On two processors a poll takes a program
	// some 0.1 ms, as it wakes two threads.
	Memory = 16 * time.Millisecond
)

const (
	// postponeMost is how long a poll of the poller is postponed at most, and postponeEvery after how many polls that
	// found something at once callers look at the clock for it.
	postponeMost  = 16 * time.Millisecond
	postponeEvery = 16
	// away is after what time without a look at the clock callers have been away.
	away = time.Millisecond
)

// backgroundPolls bounds how often the poller polls at a time, and Drain.
const backgroundPolls = 16

// Driver says which goroutine polls a source: its owner, which is a caller that waits, or the poller. The poller
// either watches the source's descriptor (armed), or polls it at intervals.
type Driver struct {
	g     *Group
	src   Source
	watch Watch

	owned atomic.Bool
	armed atomic.Bool
	// visits counts how often a caller owned the source, and seen is how many the poller
	// has noted. The owner uses them.
	visits, seen uint32
	// calls is how many calls the owner of the group has had when the poller has polled last. The owner uses it.
	calls uint32

	// unarmed is how often callers have polled since it was armed last. The owner uses it.
	unarmed int

	// interval is the time until the poller's next poll, if it polls at intervals.
	interval time.Duration

	// postponed is when callers have postponed the poller's polls last.
	postponed atomic.Int64

	// broken is until when not to poll a source that has failed. The owner uses it.
	broken time.Duration
}

// acquire makes the caller the owner, if there is none.
func (d *Driver) acquire() bool { return d.owned.CompareAndSwap(false, true) }

// unregisterAfter is how often callers poll a source, without one that sleeps in between, until the
// system is no longer to watch its descriptor: that costs a packet more than to be polled for, but
// a sleep more if it was not worthwhile.
const unregisterAfter = 32

// begin is acquire for callers that poll.
func (d *Driver) begin() bool {
	if !d.acquire() {
		return false
	}
	if d.unarmed++; d.unarmed >= unregisterAfter && !d.armed.Load() {
		d.watch.unregister()
		d.unarmed = math.MinInt // once, until it is armed
	}
	return true
}

// visited ends the ownership of a caller that has polled. It reports whether it is time for the caller to look at the clock.
func (d *Driver) visited() (clock bool) {
	d.visits++
	clock = d.visits%postponeEvery == 0
	d.release()
	return clock
}

// release ends the ownership. If callers sleep, the poller watches the source from then on.
func (d *Driver) release() {
	d.owned.Store(false)
	if d.g.Waiting.Load() > 0 && !d.armed.Load() {
		d.watchUnowned()
	}
}

// poll takes what has arrived, and returns how much that was, or ended. The caller
// is the owner, and stays so if it has ended.
func (d *Driver) poll() int {
	if d.broken != 0 && d.g.now() < d.broken {
		return 0
	}
	n, err := d.src.Poll()
	d.broken = 0
	switch {
	case err == nil:
	case errors.Is(err, ErrEnded):
		return ended
	default:
		d.broken = d.g.now() + retry // must not cost a core
		d.g.failed(err)
	}
	return n
}

// drain polls until nothing is left, but not too often at a time. It reports false if
// the source has ended. The caller is the owner.
func (d *Driver) drain() bool {
	for range backgroundPolls {
		if n := d.poll(); n <= 0 {
			return n == 0
		}
	}
	return true
}

// watchUnowned has the poller watch the source, unless it has an owner, which does so on release.
func (d *Driver) watchUnowned() {
	if !d.armed.Load() && d.acquire() {
		d.arm()
	}
}

// arm has the poller watch the source, and releases it. The caller is the owner.
func (d *Driver) arm() {
	for !d.src.Sleep() && d.broken == 0 {
		if d.poll() == ended {
			return
		}
	}
	d.unarmed = 0
	if !d.armed.Swap(true) {
		if err := d.watch.Arm(); err != nil { // it cannot be: the descriptor is open
			d.g.failed(err)
		}
		if d.g.owner != nil {
			d.g.owner.Armed()
		}
	}
	d.release() // which arms it again: the poller may have come already, and could not poll what is owned
}

// due is called by the poller when the source's descriptor is readable, and when the time is over that it has returned.
// It returns the time until it is to be called again, if callers have polled or called since the last time; otherwise it
// arms the source.
func (d *Driver) due(readable bool) time.Duration {
	if readable {
		d.armed.Store(false)
	} else if d.armed.Load() {
		return 0
	}
	if !d.acquire() {
		return d.interval
	}
	if !d.drain() {
		return 0
	}
	calls := uint32(0)
	if o := d.g.owner; o != nil {
		o.Tick(o.Now())
		calls = o.Calls()
	}
	came := d.visits != d.seen || calls != d.calls
	d.seen, d.calls = d.visits, calls
	// A broken source may be readable all the time.
	if d.broken != 0 || came && d.g.Waiting.Load() == 0 {
		d.release()
		if d.armed.Load() {
			return 0
		}
		return d.interval
	}
	d.arm()
	return 0
}
