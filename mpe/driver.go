package mpe

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/poller"
)

// driver takes the packets of a transport that can be polled. Whoever has the
// turn does so: a caller that waits, or the poller. The poller either watches the
// transport's descriptor (armed), or tends it, that is, looks now and then.
type driver struct {
	e     *Engine
	tr    PollTransport
	land  LandingTransport // or nil
	watch *poller.Watch
	batch []Arrival

	turn  atomic.Bool
	armed atomic.Bool
	// visits counts how often a caller had the turn, and seen is what the poller
	// has seen of that.
	visits atomic.Uint32
	seen   uint32

	// interval is until the poller's next look, if it tends the transport.
	interval time.Duration

	// broken is until when not to ask a transport that has failed. Whoever has
	// the turn uses it.
	broken handshake.Instant
}

// tendFirst and tendMost are the times between two looks of the poller at a
// transport whose packets callers take. Being woken by each of them would slow
// them down, and so do looks on the same core; packets that come while the caller
// does something else wait so long at most, and for no longer than twice tendMost
// after he was here.
const (
	tendFirst = time.Millisecond
	tendMost  = 2 * time.Millisecond
)

// maxDrivers is how many a bit mask has room for; an engine has three at most.
const maxDrivers = 64

// backgroundBatches bounds how many batches the poller takes at a time.
const backgroundBatches = 16

func newDriver(e *Engine, tr PollTransport) (*driver, error) {
	d := &driver{e: e, tr: tr, batch: make([]Arrival, batchSize)}
	d.land, _ = tr.(LandingTransport)
	var err error
	d.watch, err = poller.Add(tr.Wakeup(), d)
	return d, err
}

// take takes the turn, if nobody has it.
func (d *driver) take() bool { return d.turn.CompareAndSwap(false, true) }

// leave gives the turn back. It does not let those down who wait without it.
func (d *driver) leave() {
	d.turn.Store(false)
	if d.e.waiting.Load() > 0 && !d.armed.Load() {
		d.rest()
	}
}

// poll takes what has arrived, and returns how many packets that was. The caller
// has the turn.
func (d *driver) poll() int {
	if d.broken != 0 {
		if d.e.now() < d.broken {
			return 0
		}
		d.broken = 0
	}
	var n int
	var gen uint32
	var err error
	if d.land != nil && d.e.landing.on.Load() {
		n, gen, err = d.e.landing.poll(d.land, d.batch)
	} else {
		n, err = d.tr.Poll(d.batch)
	}
	if n > 0 {
		d.e.arrived(d.tr, d.batch[:n], gen)
	}
	if err != nil {
		d.broken = d.e.now() + recvRetry // must not cost a core
		if !errors.Is(err, ErrTransportClosed) {
			d.e.cfg.Observer.TransportError(d.e.rank, err)
		}
	}
	return n
}

// rest has the poller watch the transport, unless somebody has the turn, who will
// do so when he leaves.
func (d *driver) rest() {
	if !d.armed.Load() && d.take() {
		d.arm()
		d.turn.Store(false)
	}
}

// arm has the poller watch the transport. The caller has the turn.
func (d *driver) arm() {
	for !d.tr.Sleep() && d.broken == 0 {
		d.poll()
	}
	if d.armed.Swap(true) {
		return
	}
	if err := d.watch.Arm(); err != nil { // it cannot be: the descriptor is open
		d.e.cfg.Observer.TransportError(d.e.rank, err)
	}
	d.e.setTimer()
}

// Ready implements poller.Handler.
func (d *driver) Ready() time.Duration {
	d.armed.Store(false)
	d.interval = tendFirst
	return d.background()
}

// Tend implements poller.Handler.
func (d *driver) Tend() time.Duration {
	if d.armed.Load() {
		return 0
	}
	d.interval = min(2*d.interval, tendMost)
	return d.background()
}

// background is what the poller does. It returns when it is to be called again,
// if a caller was here since the last time; otherwise it arms the transport.
func (d *driver) background() time.Duration {
	if !d.take() {
		return d.interval
	}
	for range backgroundBatches {
		if d.poll() == 0 {
			break
		}
	}
	d.e.tickIfDue(d.e.now())
	visits := d.visits.Load()
	visited := visits != d.seen
	d.seen = visits
	// A broken transport is readable all the time.
	if d.broken != 0 || visited && d.e.waiting.Load() == 0 {
		d.leave()
		if d.armed.Load() {
			return 0
		}
		return d.interval
	}
	d.arm()
	d.turn.Store(false)
	return 0
}

// close ends it. The transport is still open.
func (d *driver) close() {
	d.watch.Remove()
	for !d.take() { // whoever has it sees that the engine is closed
		runtime.Gosched()
	}
}
