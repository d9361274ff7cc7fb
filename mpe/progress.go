package mpe

import (
	"context"
	"errors"
	"time"
)

// Whoever waits for a message carries messages meanwhile: he looks for packets
// himself, for a while, and so no goroutine has to be woken to tell him (drive).
// While nobody looks, the process's poller is woken by the first packet (driver).
// A transport that cannot be asked without waiting has a goroutine that waits in
// its Recv (read).

// recvRetry is how long to leave a transport alone that failed to receive.
const recvRetry = 10 * time.Millisecond

// batchSize is how many packets are taken from a transport at a time: enough to
// spread the cost of the lock and the system call, few enough to stay in cache.
const batchSize = 64

// startReading has packets taken from all transports. If it fails, none are.
func (e *Engine) startReading() error {
	var plain []Transport
	for _, tr := range e.transports {
		p, ok := tr.(PollTransport)
		if !ok || !p.CanPoll() || len(e.drivers) == maxDrivers {
			plain = append(plain, tr)
			continue
		}
		d, err := newDriver(e, p)
		if err != nil {
			for _, d := range e.drivers {
				d.close()
			}
			return err
		}
		e.drivers = append(e.drivers, d)
	}
	for _, tr := range plain {
		e.goroutines.Go(func() { e.read(tr) })
	}
	e.rest()
	return nil
}

// read feeds one transport's packets to the peers until it is closed.
func (e *Engine) read(tr Transport) {
	batch := make([]Arrival, batchSize)
	for {
		n, err := tr.Recv(batch)
		if n > 0 {
			e.arrived(tr, batch[:n], 0)
		}
		if errors.Is(err, ErrTransportClosed) {
			return
		}
		if err != nil {
			e.cfg.Observer.TransportError(e.rank, err)
			select { // a network that is out of order must not cost a core
			case <-time.After(recvRetry):
			case <-e.stop:
			}
		}
	}
}

// await waits for a value on c, or for ctx, whose cause it returns. Others are to
// be told of c already, and counted in e.waiting.
func (e *Engine) await(ctx context.Context, c <-chan struct{}) error {
	e.rest()
	start := e.now()
	defer func() { e.waited(e.now() - start) }()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Await waits for a value on c, or for ctx, whose cause it returns.
func (e *Engine) Await(ctx context.Context, c <-chan struct{}) error {
	e.drive(ctx, nil, c)
	select {
	case <-c:
		return nil
	default:
	}
	e.waiting.Add(1)
	defer e.waiting.Add(-1)
	return e.await(ctx, c)
}

// rest has the poller watch all transports.
func (e *Engine) rest() {
	for _, d := range e.drivers {
		d.rest()
	}
}
