package mpe

import "sync"

// placementTable guards the placements with a lock of its own, because transports place payload while they do not hold
// the engine's lock.
type placementTable struct {
	// mu is held while a transport uses the placements of its source. Lock order: the engine's lock, then mu.
	mu sync.Mutex
	// generation changes when a placement is revoked. Payload placed earlier but not yet processed then counts as lost
	// by the network. Writing generation also requires the engine's lock.
	generation uint32
	// sources holds the source that polls each peer's transport; nil for transports that are not polled.
	sources []*source
}

// pollInto polls a source's transport and passes it the source's placements, if any. gen is the generation of the
// placements, or 0 if the source has none.
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
