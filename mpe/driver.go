package mpe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/progress"
)

// driver is what is around an engine's state: clock, timer, transports, and the goroutines
// that read, write and compute. It takes the engine's lock for each event, and gives it the
// time (lock); the engine returns the time at which tick is to be called.
type driver struct {
	e       *Engine
	started time.Time
	timer   *time.Timer
	// due is when tick is to be called, or never. The timer does so, unless callers or
	// the poller poll: they do.
	due atomic.Int64
	// heartbeats are closed by the next tick. The engine's lock guards them.
	heartbeats []chan struct{}
	// group has the transports that can be polled, sources what is read from them. Its
	// Waiting counts the requests, probes and Awaits for which a caller sleeps.
	group      progress.Group
	sources    []*source
	transports []Transport
	stop       chan struct{} // closed by Close
	goroutines sync.WaitGroup
	waiters    sync.Pool // of channels for Wait, each with room for one value
}

// init prepares the driver; start begins to read.
func (d *driver) init(e *Engine) {
	d.e, d.started, d.stop = e, time.Now(), make(chan struct{})
	d.timer = time.AfterFunc(time.Hour, e.expired)
	d.timer.Stop()
	d.due.Store(never)
}

// recvRetry is how long a transport is not read that failed to receive.
const recvRetry = 10 * time.Millisecond

// batchSize is how many packets are taken from a transport at a time: enough to
// spread the cost of the lock and the system call, few enough to stay in cache.
const batchSize = 64

// start has packets taken from all transports. If it fails, none are. A caller that waits
// for a message polls the sources for a while, so that no goroutine has to be woken for
// it. While no caller polls, the process's poller is woken by the first packet (package
// progress). A transport that cannot be polled has a goroutine that waits in its Recv.
func (d *driver) start() error {
	d.group.Init(d, d.e.cfg.Oversubscribed)
	var plain []Transport
	for _, tr := range d.transports {
		p, ok := tr.(PollTransport)
		if !ok || !p.CanPoll() || d.group.Len() == progress.MaxDrivers {
			plain = append(plain, tr)
			continue
		}
		s := newSource(d.e, p)
		if err := d.group.Add(p.Wakeup(), s); err != nil {
			d.group.Close()
			return err
		}
		d.sources = append(d.sources, s)
		for _, peer := range d.e.peers {
			if peer != nil && peer.tr == tr {
				peer.src = s
			}
		}
	}
	for _, tr := range plain {
		d.goroutines.Go(func() { d.read(tr) })
	}
	d.group.Watch()
	return nil
}

// read feeds one transport's packets to the engine until it is closed.
func (d *driver) read(tr Transport) {
	batch := make([]RxPacket, batchSize)
	for {
		n, err := tr.Recv(batch)
		if n > 0 {
			d.e.receiveBatch(tr, batch[:n], 0)
		}
		if errors.Is(err, ErrTransportClosed) {
			return
		}
		if err != nil {
			d.Failed(err)
			select { // a network that is out of order must not cost a core
			case <-time.After(recvRetry):
			case <-d.stop:
			}
		}
	}
}

// closeTransports ends all reading and writing, and waits for the goroutines. It returns
// the first error.
func (d *driver) closeTransports() (err error) {
	d.group.Close()
	for _, tr := range d.transports {
		if cerr := tr.Close(); cerr != nil && err == nil {
			err = cerr
		}
	}
	d.goroutines.Wait()
	return err
}

// now returns the time since the engine started.
func (d *driver) now() handshake.Instant { return time.Since(d.started) }

// wakeAt has tick called at that time, if it would be called later.
func (d *driver) wakeAt(due int64) {
	if due < d.due.Load() {
		d.due.Store(due)
		d.setTimer()
	}
}

// setTimer sets the timer, unless the sources are polled, which ticks as
// well. It is called whenever that may have changed, with the lock or without.
func (d *driver) setTimer() {
	if !d.group.Armed() {
		return
	}
	if due := d.due.Load(); due != never {
		d.timer.Reset(max(time.Duration(due)-d.now(), 0))
	}
}

// Now implements progress.Owner.
func (d *driver) Now() handshake.Instant { return d.now() }

// Tick implements progress.Owner.
func (d *driver) Tick(now time.Duration) {
	if int64(now) >= d.due.Load() {
		d.e.tick()
	}
}

// Armed implements progress.Owner.
func (d *driver) Armed() { d.setTimer() }

// Failed implements progress.Owner.
func (d *driver) Failed(err error) {
	if !errors.Is(err, ErrTransportClosed) {
		d.e.cfg.Observer.TransportError(d.e.rank, err)
	}
}

// poll polls until done is set, for as long as that is better than to be woken.
func (e *Engine) poll(ctx context.Context, done *atomic.Bool) {
	e.flushCoalesced()
	e.driver.group.Poll(ctx, done, nil)
}

// pollOnce polls once, for a caller that will not wait.
func (e *Engine) pollOnce() {
	e.flushCoalesced()
	e.driver.group.PollOnce()
}

// Await waits for a value on c, or for ctx, whose cause it returns.
func (e *Engine) Await(ctx context.Context, c <-chan struct{}) error {
	e.flushCoalesced()
	return e.driver.group.Await(ctx, c)
}
