package mpe

import (
	"context"
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// recvRetry is the delay after a failed call of a transport's Recv before the next call.
const recvRetry = 10 * time.Millisecond

// batchSize is the maximum number of packets received from a transport at a time: enough to amortize the lock
// and the system call, few enough to stay in cache.
const batchSize = 64

// start starts receiving from all transports, or from none if it fails. A caller waiting for a message first polls the
// sources itself, which saves waking a goroutine. While no caller polls, the first packet wakes the poller of the
// process (package progress). For a transport that cannot be polled, or that exceeds progress.MaxDrivers, start starts
// a goroutine that blocks in Recv.
func (e *Engine) start(oversubscribed bool) error {
	e.group.Init((*owner)(e), oversubscribed)
	e.placements.sources = make([]*source, e.size)
	e.processedUntil = make([]handshake.Instant, len(e.transports))
	var plain []int
	e.leasing.source = -1
	for id, tr := range e.transports {
		transport, ok := tr.(PollTransport)
		if !ok || !transport.CanPoll() || e.group.Len() == progress.MaxDrivers {
			plain = append(plain, id)
			e.processedUntil[id] = core.Never // its packets are processed as soon as they are received
			continue
		}
		s, interval := newSource(e, id, transport), progress.NetworkInterval
		if _, memory := tr.(MemoryTransport); memory {
			interval = progress.MemoryInterval
			if !oversubscribed {
				e.leasing.source = e.group.Len()
			}
		}
		if err := e.group.Add(transport.Wakeup(), s, interval); err != nil {
			e.group.Close()
			return err
		}
		e.sources = append(e.sources, s)
		for rank := range e.outlets {
			if e.outlets[rank].transport == tr {
				e.placements.sources[rank] = s
			}
		}
	}
	for _, id := range plain {
		e.goroutines.Go(func() { read(e, id) })
	}
	e.group.Watch()
	return nil
}

// read passes a transport's packets to an engine until the transport is closed.
func read(engine *Engine, id int) {
	tr := engine.transports[id]
	batch := make([]RxPacket, batchSize)
	for {
		n, err := tr.Recv(batch)
		if n > 0 {
			engine.receiveBatch(id, batch[:n], 0)
		}
		if errors.Is(err, ErrTransportClosed) {
			return
		}
		if err != nil {
			(*owner)(engine).Failed(err)
			select { // a failing network must not cost a core
			case <-time.After(recvRetry):
			case <-engine.stop:
			}
		}
	}
}

// closeTransports closes the transports of an engine, waits for its goroutines, and returns the first error.
func closeTransports(engine *Engine) (err error) {
	engine.group.Close()
	for _, tr := range engine.transports {
		if cerr := tr.Close(); cerr != nil && err == nil {
			err = cerr
		}
	}
	engine.goroutines.Wait()
	return err
}

// receiveBatch passes packets to the core. A nonzero gen is the generation of the placements that may hold their
// payload; if it is no longer current, receiveBatch drops the packets.
func (e *Engine) receiveBatch(network int, batch []RxPacket, gen uint32) {
	e.mu.Lock()
	if gen == 0 || gen == e.placements.generation {
		if e.canReuseTime() {
			batch = e.core.ReceiveShorts(network, batch)
		}
		if len(batch) > 0 || e.core.NeedsFlush() {
			e.core.Begin(e.clock.now())
			e.core.ReceiveBatch(network, batch)
		}
	}
	e.unlock()
}

// owner is an engine in its role as the progress.Owner of its sources.
type owner Engine

// Now implements progress.Owner.
func (o *owner) Now() time.Duration { return o.clock.now() }

// Tick implements progress.Owner.
func (o *owner) Tick(now time.Duration) {
	if int64(now) >= o.tickAt.Load() {
		o.tick()
	}
}

// onTimer runs when the timer expires. If timeouts are due but received packets are still unprocessed, it processes the
// packets first.
func (o *owner) onTimer() {
	if o.tick() {
		o.group.Drain()
		o.tick()
	}
}

// tick makes the core handle timeouts. It reports whether some timeouts are due but must wait until received packets
// have been processed.
func (o *owner) tick() (wait bool) {
	engine := (*Engine)(o)
	engine.lock()
	defer engine.unlock()
	engine.heartbeats.notify()
	for _, s := range engine.sources {
		s.advance(engine.core.Now())
		engine.processedUntil[s.network] = s.processedUntil
	}
	wait = engine.core.Tick(engine.processedUntil)
	engine.tickAt.Store(int64(engine.core.End().Deadline))
	o.Armed()
	return wait
}

// Calls implements progress.Owner.
func (o *owner) Calls() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.postCount
}

// Armed implements progress.Owner. It sets the timer, unless a goroutine polls the sources and therefore runs the
// ticks. It must be called after any change to polling or to the time of the next tick. Callers may hold the lock.
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

// PollOnce polls the sources once, for a caller that does not want to wait.
func (e *Engine) PollOnce() {
	e.sendCoalesced()
	e.group.PollOnce()
}

// Await waits for a value on the channel c. If ctx is done first, it returns the cause of ctx.
func (e *Engine) Await(ctx context.Context, c <-chan struct{}) error {
	e.sendCoalesced()
	return e.group.Await(ctx, c)
}

// Sleep is like Await, but does not poll. It is for a caller that has already polled for long enough.
func (e *Engine) Sleep(ctx context.Context, c <-chan struct{}, polled time.Duration) error {
	e.sendCoalesced()
	return e.group.AwaitSleeping(ctx, c, polled)
}

// sendCoalesced sends the coalesced packets, for a caller that waits for progress.
func (e *Engine) sendCoalesced() {
	if !e.hasCoalesced.Load() {
		return
	}
	e.lock()
	defer e.unlock()
	e.core.FlushCoalesced()
}
