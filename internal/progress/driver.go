package progress

import (
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Source is something that is polled for events, such as a transport. Its methods are called by only one goroutine at a
// time, which is called its owner.
type Source interface {
	// Poll handles all pending events and returns their number. It never blocks. After it returns ErrSourceEnded, the
	// source is never polled again; after any other error, it is not polled for errorPause.
	Poll() (int, error)
	// Sleep announces that Poll will not be called until the descriptor becomes readable. It returns false if
	// there are already events that Poll has not returned.
	Sleep() bool
}

// Unwatcher is implemented by Sources for which watching the descriptor makes events more expensive.
type Unwatcher interface {
	// Unwatch ends the effect of Sleep: until the next call of Sleep, the descriptor need not become readable.
	Unwatch()
}

// Watch is a descriptor that the process's poller watches, from a call of Arm until the descriptor becomes readable
// once. Watches serve descriptors that polling callers read themselves, and that need to be watched only while no
// caller polls. Go's own poller cannot do this: it wakes up a thread for every event, even for events that a polling
// caller is about to find.
type Watch interface {
	// Arm starts to watch the descriptor until it becomes readable. Arm must not be called after Remove, nor
	// concurrently with another call of Arm or with unregister.
	Arm() error
	// Remove ends the Watch. After Remove has returned, the function passed to NewWatch is not running and will not be
	// called again. The descriptor must still be open. The function passed to NewWatch must not call Remove.
	Remove()
	// unregister removes a descriptor that is not armed from the kernel's set until the next call of Arm. While
	// a descriptor is registered, each datagram costs its sender another 0.2 µs on loopback, even if nothing is
	// waiting for the datagram.
	unregister()
	// postpone postpones the pending call of the function passed to NewWatch, if any, until d from now.
	postpone(d time.Duration)
}

// ErrSourceEnded is returned by Poll if no further event will ever arrive. It ends the polling of the source.
var ErrSourceEnded = errors.New("the source has closed")

// sourceEnded is what Driver.poll returns, in place of a number of events, after Poll has returned ErrSourceEnded.
const sourceEnded = -1

// errorPause is the time for which a source is not polled after an error.
const errorPause = 10 * time.Millisecond

// Callers compute between their calls. Waking up the process for every event would slow down their computation, and so
// would polls on the same core. The poller therefore polls such a source at an interval, which is passed to Add. An
// event that arrives while callers compute waits no longer than the interval, or than the postponement that followed
// the last call.
const (
	// NetworkInterval is the interval for network packets. Peers have timeouts within which they must be answered.
	NetworkInterval = 2 * time.Millisecond
	// MemoryInterval is the interval for packets in shared memory, which are read in place. With two processors, one
	// poll costs a program about 0.1 ms, because it wakes up two threads.
	MemoryInterval = 16 * time.Millisecond
)

const (
	// maxPostpone is the longest postponement of the poller's poll. postponePolls is the number of polls after
	// which callers read the clock to postpone it, if each of these polls found something immediately.
	maxPostpone   = 16 * time.Millisecond
	postponePolls = 16
	// awayTime is the time after which callers count as away, that is, as no longer polling, if none of them has read
	// the clock.
	awayTime = time.Millisecond
)

// backgroundPolls limits the number of consecutive polls made by the poller and by Drain.
const backgroundPolls = 16

// Driver determines which goroutine polls a source. This goroutine is the source's owner: either a waiting caller or
// the poller. The poller either watches the source's descriptor (armed) or polls the source at an interval.
type Driver struct {
	group  *Group
	source Source
	watch  Watch

	owned atomic.Bool
	armed atomic.Bool
	// visits is the number of times that a caller has owned the source, and seenVisits the value of visits when the
	// poller last read it. Only the owner may access them.
	visits, seenVisits uint32
	// seenCalls is the number of calls that the group's owner reported at the poller's last poll. Only the owner of
	// the source may access it.
	seenCalls uint32

	// unarmedPolls is the number of polls by callers since the source was last armed. Only the owner may access it.
	unarmedPolls int

	// interval is the time between two polls of the process's poller, if it polls the source at an interval.
	interval time.Duration

	// postponedAt is the time at which a caller last postponed the poller's polls.
	postponedAt atomic.Int64

	// retryAt is the time at which polling resumes after an error. Only the owner may access it.
	retryAt time.Duration
}

// acquire makes the calling goroutine the owner of the source if there is no owner, and reports whether it did so.
func (d *Driver) acquire() bool { return d.owned.CompareAndSwap(false, true) }

// unregisterAfter is the number of polls by callers, without a sleep in between, after which the kernel stops
// watching the descriptor. Watching makes every packet more expensive than polling does, but unregistering
// makes the next sleep more expensive.
const unregisterAfter = 32

// acquireToPoll does the same as acquire, for callers that poll. After unregisterAfter polls, it also makes the kernel
// stop watching the descriptor.
func (d *Driver) acquireToPoll() bool {
	if !d.acquire() {
		return false
	}
	if d.unarmedPolls++; d.unarmedPolls >= unregisterAfter && !d.armed.Load() {
		d.watch.unregister()
		if u, ok := d.source.(Unwatcher); ok {
			u.Unwatch()
		}
		d.unarmedPolls = math.MinInt // only once until the descriptor is armed again
	}
	return true
}

// endVisit ends the ownership of a caller that has polled. It reports whether the caller should now read the clock.
func (d *Driver) endVisit() (clock bool) {
	d.visits++
	clock = d.visits%postponePolls == 0
	d.release()
	return clock
}

// release ends the caller's ownership of the source. If callers are asleep, it makes the poller watch the source.
func (d *Driver) release() {
	d.owned.Store(false)
	if d.group.Waiting.Load() > 0 && !d.armed.Load() {
		d.watchUnowned()
	}
}

// poll polls the source and returns the number of events, or sourceEnded. The caller must be the owner. It remains the
// owner after sourceEnded.
func (d *Driver) poll() int {
	if d.retryAt != 0 && d.group.now() < d.retryAt {
		return 0
	}
	n, err := d.source.Poll()
	d.retryAt = 0
	switch {
	case err == nil:
	case errors.Is(err, ErrSourceEnded):
		return sourceEnded
	default:
		d.retryAt = d.group.now() + errorPause // do not burn CPU time
		d.group.failed(err)
	}
	return n
}

// drain polls until there are no events left, but at most backgroundPolls times. It returns false after ErrSourceEnded.
// The caller must be the owner.
func (d *Driver) drain() bool {
	for range backgroundPolls {
		if n := d.poll(); n <= 0 {
			return n == 0
		}
	}
	return true
}

// watchUnowned makes the poller watch the source. If the source is owned, it does nothing, because release will do so.
func (d *Driver) watchUnowned() {
	if !d.armed.Load() && d.acquire() {
		d.arm()
	}
}

// arm makes the poller watch the source and ends the ownership. The caller must be the owner.
func (d *Driver) arm() {
	for !d.source.Sleep() && d.retryAt == 0 {
		if d.poll() == sourceEnded {
			return
		}
	}
	d.unarmedPolls = 0
	if !d.armed.Swap(true) {
		if err := d.watch.Arm(); err != nil { // cannot fail on an open descriptor
			d.group.failed(err)
		}
		if d.group.owner != nil {
			d.group.owner.Armed()
		}
	}
	d.release() // release arms the source again if needed, because the poller cannot poll an owned source
}

// deadline is called by the poller when the source's descriptor is readable, and when the time that it last returned
// has passed. If callers have polled or made calls since the previous call, it returns the time until the next call.
// Otherwise, it arms the source.
func (d *Driver) deadline(readable bool) time.Duration {
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
	if o := d.group.owner; o != nil {
		o.Tick(o.Now())
		calls = o.Calls()
	}
	came := d.visits != d.seenVisits || calls != d.seenCalls
	d.seenVisits, d.seenCalls = d.visits, calls
	// The descriptor of a source that has failed may stay readable all the time.
	if d.retryAt != 0 || came && d.group.Waiting.Load() == 0 {
		d.release()
		if d.armed.Load() {
			return 0
		}
		return d.interval
	}
	d.arm()
	return 0
}
