package mpe

import "sync"

// placementTable guards the placements, because transports place payload without the engine's lock.
type placementTable struct {
	// mu is held while a transport uses the placements of its source. It may be acquired with or without the
	// engine's lock held, but the engine's lock must not be acquired while mu is held.
	mu sync.Mutex
	// generation changes when a placement is revoked. Placed payload that was not processed before that is lost, as if
	// the network had lost it. Writing generation requires the engine's lock, too.
	generation uint32
	// sources holds the source of each peer's transport, or nil if the transport is not polled.
	sources []*source
}

// pollInto polls a source's transport, with its placements if there are any. It returns the generation of the
// placements, or 0 without placements.
func (l *placementTable) pollInto(s *source) (n int, gen uint32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.placements.Len() == 0 {
		n, err = s.transport.Poll(s.batch, nil)
		return n, 0, err
	}
	n, err = s.transport.Poll(s.batch, &s.placements)
	return n, l.generation, err
}

// Place implements core.Effects.
func (f *effects) Place(at Placement) {
	table := &f.placements
	s := table.sources[at.Peer]
	if s == nil {
		return
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	s.placements.Set(at)
	s.placing.Store(s.placements.Len() > 0)
}

// Revoke implements core.Effects.
func (f *effects) Revoke(peer int) {
	f.Place(Placement{Peer: peer})
	l := &f.placements
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.generation++; l.generation == 0 {
		l.generation++
	}
}
