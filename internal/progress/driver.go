package progress

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/poller"
)

// Source is what is polled. Its methods are called by one goroutine at a time:
// whoever has the turn.
type Source interface {
	// Poll takes what has arrived, and returns how much that was. It does not
	// wait. The error ErrEnded ends the source; after any other one it is left
	// alone for a while.
	Poll() (int, error)
	// Sleep announces that Poll will not be called before the descriptor is
	// readable. It reports false if something has arrived already that Poll has
	// not returned.
	Sleep() bool
}

// ErrEnded is what Poll returns when nothing will ever arrive again. Nobody gets
// the turn any longer.
var ErrEnded = errors.New("the source has ended")

// ended is what poll returns then.
const ended = -1

// retry is how long to leave a source alone that has failed.
const retry = 10 * time.Millisecond

// backgroundFirst and backgroundMost are the times between two looks of the poller at a source
// that callers take from. Being woken by all that arrives would slow them down, and
// so do looks on the same core; what comes while the caller does something else
// waits so long at most, and for no longer than twice backgroundMost after he was here.
const (
	backgroundFirst = time.Millisecond
	backgroundMost  = 2 * time.Millisecond
)

// backgroundPolls bounds how often the poller polls at a time, and Drain.
const backgroundPolls = 16

// Driver says who polls a source: whoever has the turn, which is a caller that
// waits, or the poller. The poller either watches the source's descriptor (armed),
// or tends it, that is, looks now and then.
type Driver struct {
	g     *Group
	src   Source
	watch *poller.Watch

	owned atomic.Bool
	armed atomic.Bool
	// visits counts how often a caller had the turn, and seen is what the poller
	// has seen of that.
	visits atomic.Uint32
	seen   uint32

	// interval is until the poller's next look, if it tends the source.
	interval time.Duration

	// broken is until when not to ask a source that has failed. Whoever has the
	// turn uses it.
	broken time.Duration
}

// take takes the turn, if nobody has it.
func (d *Driver) acquire() bool { return d.owned.CompareAndSwap(false, true) }

// leave gives the turn back. It does not let those down who wait without it.
func (d *Driver) release() {
	d.owned.Store(false)
	if d.g.Waiting.Load() > 0 && !d.armed.Load() {
		d.watchUnowned()
	}
}

// poll takes what has arrived, and returns how much that was, or ended. The caller
// has the turn, and keeps it for ever if it has ended.
func (d *Driver) poll() int {
	if d.broken != 0 && d.g.owner.Now() < d.broken {
		return 0
	}
	n, err := d.src.Poll()
	if err != nil || d.broken != 0 {
		return d.failed(n, err)
	}
	return n
}

// drain polls until nothing is left, but not too often at a time. It reports false if
// the source has ended. The caller has the turn.
func (d *Driver) drain() bool {
	for range backgroundPolls {
		if n := d.poll(); n <= 0 {
			return n == 0
		}
	}
	return true
}

// failed notes what a poll has failed with, and returns what poll does.
func (d *Driver) failed(n int, err error) int {
	d.broken = 0
	if err == nil { // again
		return n
	}
	if errors.Is(err, ErrEnded) {
		return ended
	}
	d.broken = d.g.owner.Now() + retry // must not cost a core
	d.g.owner.Failed(err)
	return n
}

// rest has the poller watch the source, unless somebody has the turn, who will do
// so when he leaves.
func (d *Driver) watchUnowned() {
	if !d.armed.Load() && d.acquire() {
		d.arm()
	}
}

// arm has the poller watch the source, and gives the turn back, which the caller
// has.
func (d *Driver) arm() {
	for !d.src.Sleep() && d.broken == 0 {
		if d.poll() == ended {
			return
		}
	}
	if !d.armed.Swap(true) {
		if err := d.watch.Arm(); err != nil { // it cannot be: the descriptor is open
			d.g.owner.Failed(err)
		}
		d.g.owner.Armed()
	}
	d.owned.Store(false)
}

// handler is what the poller knows of a driver.
type handler Driver

// Ready implements poller.Handler.
func (h *handler) Ready() time.Duration {
	d := (*Driver)(h)
	d.armed.Store(false)
	d.interval = backgroundFirst
	return d.background()
}

// PollAgain implements poller.Handler.
func (h *handler) PollAgain() time.Duration {
	d := (*Driver)(h)
	if d.armed.Load() {
		return 0
	}
	d.interval = min(2*d.interval, backgroundMost)
	return d.background()
}

// background is what the poller does. It returns when it is to be called again,
// if a caller was here since the last time; otherwise it arms the source.
func (d *Driver) background() time.Duration {
	if !d.acquire() {
		return d.interval
	}
	if !d.drain() {
		return 0
	}
	d.g.owner.Tick(d.g.owner.Now())
	visits := d.visits.Load()
	visited := visits != d.seen
	d.seen = visits
	// A broken source may be readable all the time.
	if d.broken != 0 || visited && d.g.Waiting.Load() == 0 {
		d.release()
		if d.armed.Load() {
			return 0
		}
		return d.interval
	}
	d.arm()
	return 0
}
