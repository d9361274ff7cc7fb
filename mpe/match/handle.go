package match

// Handle identifies a queued entry; the zero Handle identifies no entry. A handle becomes stale when its entry leaves
// the queue, by a match or otherwise. Handles are never reused, so every method reports false for a stale handle.
type Handle struct {
	seq   uint64
	index uint32
	gen   uint32 // nonzero for a restored entry, because its seq is not unique
}

// Index returns the number of the entry, which is unique in its queue while the entry is queued. Only the zero Handle
// returns 0.
func (h Handle) Index() uint32 { return h.index }

// Order returns the position of a queued message among all arrived messages, as Matcher.Order does.
func (h Handle) Order() uint64 { return h.seq }

// lookup returns the entry number of a handle, or 0 if the handle is stale.
func (q *queue) lookup(handle Handle) uint32 {
	if handle.index == 0 || handle.index > q.lastIndex {
		return 0
	}
	if q.nodeAt(handle.index).seq != handle.seq || q.cold(handle.index).gen != handle.gen {
		return 0
	}
	return handle.index
}
