package match

// Handle names a queued entry; the zero Handle names none. Once the entry is
// removed from its queue, by a match or otherwise, the handle is stale and every method
// that takes it reports false, forever: a handle is never reused.
type Handle struct {
	seq   uint64
	index uint32
	gen   uint32 // of a restored entry; 0 of others, whose seq is new
}

// lookup returns the entry that a handle names, or 0.
func (q *queue) lookup(h Handle) uint32 {
	if h.index == 0 || h.index > q.last {
		return 0
	}
	if q.at(h.index).seq != h.seq || q.rare(h.index).gen != h.gen {
		return 0
	}
	return h.index
}
