package mpe

import "sync"

// placed is where transports put payload, without the engine's lock.
type placed struct {
	// mu is held while a transport uses what its source has of placements. It is taken with the
	// engine's lock held, or without, and never the other way round.
	mu sync.Mutex
	// gen changes when a placement is revoked. What has been written by then is
	// lost, as a network loses it. The engine's lock guards it, too.
	gen uint32
	// sources has, by peer, that of its transport if it is polled.
	sources []*source
}

// pollInto is Poll of a source's transport, into its placements if there are any. It
// returns the generation, or 0 if there are none.
func (l *placed) pollInto(s *source) (n int, gen uint32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.placements.Len() == 0 {
		n, err = s.tr.Poll(s.batch, nil)
		return n, 0, err
	}
	n, err = s.tr.Poll(s.batch, &s.placements)
	return n, l.gen, err
}

// Place implements Effects.
func (f *effects) Place(at Placement) {
	l := &f.placed
	s := l.sources[at.Peer]
	if s == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.placements.Set(at)
	s.placing.Store(s.placements.Len() > 0)
}

// Revoke implements Effects.
func (f *effects) Revoke(peer int) {
	f.Place(Placement{Peer: peer})
	l := &f.placed
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gen++; l.gen == 0 {
		l.gen++
	}
}
