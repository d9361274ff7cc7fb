package progress

import (
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Source is polled for events. Its methods are called by one goroutine at a time: the owner.
type Source interface {
	// Poll handles all pending events, and returns their number. It does not block. The error ErrEnded ends the
	// source; after any other error it is not polled for a while.
	Poll() (int, error)
	// Sleep announces that Poll will not be called until the descriptor is readable. It returns false if there
	// already are events that Poll has not returned.
	Sleep() bool
}

// Watch is a descriptor that the process's poller watches, from Arm until it becomes readable once. It is for
// descriptors that waiting callers read, which need to be watched only while no caller polls. Go's own poller has no
// such mode: it wakes up a thread for every event, even while a caller polls for it anyway.
type Watch interface {
	// Arm starts watching the descriptor until it is readable. It must not be called after Remove, or concurrently
	// with itself or unregister.
	Arm() error
	// Remove ends the Watch. When it returns, the function passed to NewWatch is not running and will not be called
	// again. The descriptor must still be open, and that function must not call Remove.
	Remove()
	// unregister removes a descriptor that is not armed from the kernel's set, until the next Arm. While it is
	// registered, each datagram costs its sender another 0.2 µs on loopback, even if nothing waits for it.
	unregister()
	// postpone delays the pending call of the function passed to NewWatch, if there is one, to after d.
	postpone(d time.Duration)
}

// ErrEnded is returned by Poll when no event will ever arrive again. The source is no longer polled.
var ErrEnded = errors.New("the source has ended")

// ended is the result of Driver.poll after ErrEnded.
const ended = -1

// retry is how long a failed source is not polled.
const retry = 10 * time.Millisecond

// Between their calls, callers compute. A wake-up for each event would then slow them down, and so would polls on the
// same core. So the poller polls such a source at an interval, which is an argument of Add. Events that arrive while
// callers compute wait no longer than the interval, or than the postponement after the last call.
const (
	// Network is the interval for network packets: peers have timeouts, within which they must be answered.
	Network = 2 * time.Millisecond
	// Memory is the interval for packets in shared memory, which are read in place. On two processors a poll costs a
	// program some 0.1 ms, because it wakes up two threads.
	Memory = 16 * time.Millisecond
)

const (
	// postponeMost limits the postponement of the poller's poll. postponeEvery is the number of polls that
	// immediately found something after which callers read the clock to postpone it.
	postponeMost  = 16 * time.Millisecond
	postponeEvery = 16
	// away is the time without reading the clock after which callers count as away.
	away = time.Millisecond
)

// backgroundPolls limits the consecutive polls of the poller, and of Drain.
const backgroundPolls = 16

// Driver determines the goroutine that polls a source: its owner, which is a waiting caller or the poller. The poller
// either watches the source's descriptor (armed), or polls it at an interval.
type Driver struct {
	g     *Group
	src   Source
	watch Watch

	owned atomic.Bool
	armed atomic.Bool
	// visits counts how often a caller owned the source, and seen is the count last seen by the poller. They belong
	// to the owner.
	visits, seen uint32
	// calls is the group owner's count of calls at the poller's last poll. It belongs to the source's owner.
	calls uint32

	// unarmed counts the polls of callers since the source was last armed. It belongs to the owner.
	unarmed int

	// interval is the time between the poller's polls, if it polls at an interval.
	interval time.Duration

	// postponed is the time at which callers last postponed the poller's polls.
	postponed atomic.Int64

	// broken is the time until which a failed source is not polled. It belongs to the owner.
	broken time.Duration
}

// acquire makes the caller the owner if there is no owner.
func (d *Driver) acquire() bool { return d.owned.CompareAndSwap(false, true) }

// unregisterAfter is the number of polls by callers, without a sleep in between, after which the system stops
// watching the descriptor. Watching costs more per packet than polling; but unregistering makes the next sleep more
// expensive.
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

// visited ends the ownership of a caller that has polled. It reports whether the caller should read the clock now.
func (d *Driver) visited() (clock bool) {
	d.visits++
	clock = d.visits%postponeEvery == 0
	d.release()
	return clock
}

// release ends the ownership. If callers sleep, the poller then watches the source.
func (d *Driver) release() {
	d.owned.Store(false)
	if d.g.Waiting.Load() > 0 && !d.armed.Load() {
		d.watchUnowned()
	}
}

// poll polls the source, and returns the number of events, or ended. The caller must be the owner, and remains the
// owner of an ended source.
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
		d.broken = d.g.now() + retry // do not burn a core
		d.g.failed(err)
	}
	return n
}

// drain polls until no event is left, but at most backgroundPolls times. It returns false at the end of the source.
// The caller must be the owner.
func (d *Driver) drain() bool {
	for range backgroundPolls {
		if n := d.poll(); n <= 0 {
			return n == 0
		}
	}
	return true
}

// watchUnowned makes the poller watch the source, unless it has an owner, whose release does so.
func (d *Driver) watchUnowned() {
	if !d.armed.Load() && d.acquire() {
		d.arm()
	}
}

// arm makes the poller watch the source, and releases it. The caller must be the owner.
func (d *Driver) arm() {
	for !d.src.Sleep() && d.broken == 0 {
		if d.poll() == ended {
			return
		}
	}
	d.unarmed = 0
	if !d.armed.Swap(true) {
		if err := d.watch.Arm(); err != nil { // does not fail on an open descriptor
			d.g.failed(err)
		}
		if d.g.owner != nil {
			d.g.owner.Armed()
		}
	}
	d.release() // arms it again if needed: the poller could not poll while it was owned
}

// due is called by the poller when the source's descriptor is readable, and when the time that due returned last has
// passed. If callers have polled, or made calls, since the last time, it returns the time until its next call.
// Otherwise it arms the source.
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
