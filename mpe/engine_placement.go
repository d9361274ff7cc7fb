package mpe

import (
	"sync"
	"sync/atomic"
)

// placed is where a transport puts payload, without the engine's lock.
type placed struct {
	// mu is held while the transport uses what is below. It is taken with the
	// engine's lock held, or without, and never the other way round.
	mu sync.Mutex
	on atomic.Bool
	tr Transport
	at Placement
	// gen changes when the placement is revoked. What has been written by then is
	// lost, as a network loses it. The engine's lock guards it, too.
	gen uint32
}

// poll is Poll of the transport, into the placement if there is one for it. It
// returns the generation, or 0 if there is none.
func (l *placed) poll(tr DirectPlacer, batch []RxPacket) (n int, gen uint32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tr != tr || len(l.at.Buf) == 0 {
		n, err = tr.Poll(batch)
		return n, 0, err
	}
	n, err = tr.PollInto(batch, l.at)
	return n, l.gen, err
}

// place implements driver.
func (e *Engine) place(tr Transport, at Placement) {
	l := &e.placed
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tr, l.at = tr, at
	l.on.Store(tr != nil)
}

// revoke implements driver.
func (e *Engine) revoke() {
	l := &e.placed
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tr, l.at = nil, Placement{}
	l.on.Store(false)
	if l.gen++; l.gen == 0 {
		l.gen++
	}
}
