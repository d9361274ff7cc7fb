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
	watch *poller.Watch
	batch []Arrival

	turn  atomic.Bool
	armed atomic.Bool
	// driven is when a caller last had the turn, on the engine's clock.
	driven atomic.Int64

	// broken is until when not to ask a transport that has failed. Whoever has
	// the turn uses it.
	broken handshake.Instant
}

// recent is for how long after a caller had the turn he is expected to be back.
// Arming and being woken by each of his packets would slow him down.
const recent = 2 * poller.Period

// maxDrivers is how many a bit mask has room for; an engine has three at most.
const maxDrivers = 64

// backgroundBatches bounds how many batches the poller takes at a time.
const backgroundBatches = 16

func newDriver(e *Engine, tr PollTransport) (*driver, error) {
	d := &driver{e: e, tr: tr, batch: make([]Arrival, batchSize)}
	d.driven.Store(int64(-recent))
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
	n, err := d.tr.Poll(d.batch)
	if n > 0 {
		d.e.arrived(d.tr, d.batch[:n])
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
	if !d.armed.Swap(true) {
		if err := d.watch.Arm(); err != nil { // it cannot be: the descriptor is open
			d.e.cfg.Observer.TransportError(d.e.rank, err)
		}
	}
}

// Ready implements poller.Handler.
func (d *driver) Ready() bool {
	d.armed.Store(false)
	return d.background()
}

// Tend implements poller.Handler.
func (d *driver) Tend() bool { return !d.armed.Load() && d.background() }

// background is what the poller does. It reports whether it is to be called
// again; otherwise the transport is armed.
func (d *driver) background() (again bool) {
	if !d.take() {
		return true
	}
	for range backgroundBatches {
		if d.poll() == 0 {
			break
		}
	}
	// A broken transport is readable all the time.
	if d.broken != 0 || d.e.waiting.Load() == 0 && time.Duration(d.driven.Load()) > d.e.now()-recent {
		d.leave()
		return !d.armed.Load()
	}
	d.arm()
	d.turn.Store(false)
	return false
}

// close ends it. The transport is still open.
func (d *driver) close() {
	d.watch.Remove()
	for !d.take() { // whoever has it sees that the engine is closed
		runtime.Gosched()
	}
}
