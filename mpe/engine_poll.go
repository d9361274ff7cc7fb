package mpe

import (
	"context"
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// recvRetry is how long a transport is not read that failed to receive.
const recvRetry = 10 * time.Millisecond

// batchSize is how many packets are taken from a transport at a time: enough to
// spread the cost of the lock and the system call, few enough to stay in cache.
const batchSize = 64

// start has packets taken from all transports. If it fails, none are. A caller that waits
// for a message polls the sources for a while, so that no goroutine has to be woken for
// it. While no caller polls, the process's poller is woken by the first packet (package
// progress). A transport that cannot be polled has a goroutine that waits in its Recv.
func (e *Engine) start(oversubscribed bool) error {
	e.group.Init((*owner)(e), oversubscribed)
	e.placed.sources = make([]*source, e.size)
	e.known = make([]handshake.Instant, len(e.transports))
	var plain []int
	for id, tr := range e.transports {
		p, ok := tr.(PollTransport)
		if !ok || !p.CanPoll() || e.group.Len() == progress.MaxDrivers {
			plain = append(plain, id)
			e.known[id] = core.Never // what it has brought was taken at once
			continue
		}
		s, interval := newSource(e, id, p), progress.Network
		if _, memory := tr.(MemoryTransport); memory {
			interval = progress.Memory
		}
		if err := e.group.Add(p.Wakeup(), s, interval); err != nil {
			e.group.Close()
			return err
		}
		e.sources = append(e.sources, s)
		for rank := range e.outlets {
			if e.outlets[rank].tr == tr {
				e.placed.sources[rank] = s
			}
		}
	}
	for _, id := range plain {
		e.goroutines.Go(func() { read(e, id) })
	}
	e.group.Watch()
	return nil
}

// read feeds one transport's packets to an engine until it is closed.
func read(e *Engine, id int) {
	tr := e.transports[id]
	batch := make([]RxPacket, batchSize)
	for {
		n, err := tr.Recv(batch)
		if n > 0 {
			e.receiveBatch(id, batch[:n], 0)
		}
		if errors.Is(err, ErrTransportClosed) {
			return
		}
		if err != nil {
			(*owner)(e).Failed(err)
			select { // a network that is out of order must not cost a core
			case <-time.After(recvRetry):
			case <-e.stop:
			}
		}
	}
}

// closeTransports ends all reading and writing of an engine, and waits for the goroutines. It returns
// the first error.
func closeTransports(e *Engine) (err error) {
	e.group.Close()
	for _, tr := range e.transports {
		if cerr := tr.Close(); cerr != nil && err == nil {
			err = cerr
		}
	}
	e.goroutines.Wait()
	return err
}

// receiveBatch hands packets to the core. Unless gen is 0, they may be in the placement of
// that generation.
func (e *Engine) receiveBatch(network int, batch []RxPacket, gen uint32) {
	e.mu.Lock()
	if gen == 0 || gen == e.placed.gen {
		if e.recent() {
			batch = e.core.ReceiveShorts(network, batch)
		}
		if len(batch) > 0 || e.core.NeedsFlush() {
			e.core.Begin(e.clock.now())
			e.core.ReceiveBatch(network, batch)
		}
	}
	e.unlock()
}

// owner is an engine as the progress.Owner of its sources.
type owner Engine

// Now implements progress.Owner.
func (o *owner) Now() time.Duration { return o.clock.now() }

// Tick implements progress.Owner.
func (o *owner) Tick(now time.Duration) {
	if int64(now) >= o.tickAt.Load() {
		o.tick()
	}
}

// expired is called by the timer. The poller may not have come to what has arrived.
func (o *owner) expired() {
	if o.tick() {
		o.group.Drain()
		o.tick()
	}
}

// tick has the core act on time-outs. It reports whether some are due that have to wait
// until what has arrived was taken.
func (o *owner) tick() (wait bool) {
	e := (*Engine)(o)
	e.lock()
	defer e.unlock()
	e.heartbeats.notify()
	for _, s := range e.sources {
		s.advance(e.core.Now())
		e.known[s.network] = s.known
	}
	wait = e.core.Tick(e.known)
	e.tickAt.Store(int64(e.core.End().Deadline))
	o.Armed()
	return wait
}

// Calls implements progress.Owner.
func (o *owner) Calls() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.posts
}

// Armed implements progress.Owner: it sets the timer, unless the sources are polled, which ticks as well. It is called
// whenever that may have changed, with the lock or without.
func (o *owner) Armed() {
	if !o.group.Armed() {
		return
	}
	if due := o.tickAt.Load(); due != int64(core.Never) {
		o.timer.Reset(max(time.Duration(due)-o.clock.now(), 0))
	}
}

// Failed implements progress.Owner.
func (o *owner) Failed(err error) {
	if o.observer != nil && !errors.Is(err, ErrTransportClosed) {
		o.observer.TransportError(o.rank, err)
	}
}

// PollOnce polls once, for a caller that will not wait.
func (e *Engine) PollOnce() {
	e.sendCoalesced()
	e.group.PollOnce()
}

// Await waits for a value on c, or for ctx, whose cause it returns.
func (e *Engine) Await(ctx context.Context, c <-chan struct{}) error {
	e.sendCoalesced()
	return e.group.Await(ctx, c)
}

// Sleep is Await for a caller that has polled for so long: it does not.
func (e *Engine) Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	e.sendCoalesced()
	return e.group.AwaitAsleep(ctx, c, polled)
}

// sendCoalesced sends what was coalesced: its caller wants to see progress.
func (e *Engine) sendCoalesced() {
	if !e.holdsBack.Load() {
		return
	}
	e.lock()
	defer e.unlock()
	e.core.FlushCoalesced()
}
