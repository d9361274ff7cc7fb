package match

// Handle names a queued entry; the zero Handle names none. Once the entry has
// left its queue, by a match or otherwise, the handle is stale and every method
// that takes it reports false, for ever: a handle is never given out twice.
type Handle struct {
	seq   uint64
	index uint32
	gen   uint32 // tells the uses of an entry apart if seq is restored
}

// handle returns the handle of a queued entry.
func (s *slab) handle(i uint32) Handle {
	n := s.at(i)
	return Handle{seq: n.seq, index: i, gen: n.gen}
}

// lookup returns the entry that a handle names, or 0.
func (s *slab) lookup(h Handle) uint32 {
	if h.index == 0 || h.index > s.used {
		return 0
	}
	if n := s.at(h.index); n.seq != h.seq || n.gen != h.gen {
		return 0
	}
	return h.index
}
