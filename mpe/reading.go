package mpe

import (
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/progress"
)

// Whoever waits for a message carries messages meanwhile: he looks for packets
// himself, for a while, and so no goroutine has to be woken to tell him. While nobody
// looks, the process's poller is woken by the first packet (package drive).
// A transport that cannot be asked without waiting has a goroutine that waits in
// its Recv (read).

// recvRetry is how long to leave a transport alone that failed to receive.
const recvRetry = 10 * time.Millisecond

// batchSize is how many packets are taken from a transport at a time: enough to
// spread the cost of the lock and the system call, few enough to stay in cache.
const batchSize = 64

// startReading has packets taken from all transports. If it fails, none are.
func (e *Engine) startReading() error {
	e.group.Init((*owner)(e), e.cfg.Oversubscribed)
	var plain []Transport
	for _, tr := range e.transports {
		p, ok := tr.(PollTransport)
		if !ok || !p.CanPoll() || e.group.Len() == progress.MaxDrivers {
			plain = append(plain, tr)
			continue
		}
		s := newSource(e, p)
		if err := e.group.Add(p.Wakeup(), s); err != nil {
			e.group.Close()
			return err
		}
		e.sources = append(e.sources, s)
		for _, peer := range e.peers {
			if peer != nil && peer.tr == tr {
				peer.src = s
			}
		}
	}
	for _, tr := range plain {
		e.goroutines.Go(func() { e.read(tr) })
	}
	e.group.Rest()
	return nil
}

// read feeds one transport's packets to the peers until it is closed.
func (e *Engine) read(tr Transport) {
	batch := make([]RxPacket, batchSize)
	for {
		n, err := tr.Recv(batch)
		if n > 0 {
			e.receiveBatch(tr, batch[:n], 0)
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
