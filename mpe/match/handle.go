package match

// Handle identifies a queued entry; the zero Handle identifies none. Once the entry is removed from its
// queue, by a match or otherwise, the handle is stale, and every method that takes it reports false: a handle
// is never reused.
type Handle struct {
	seq   uint64
	index uint32
	gen   uint32 // of a restored entry; 0 for other entries, whose seq is new
}

// Index returns the number of the entry, which is unique in its queue while the entry is queued. It is 0 for
// the zero Handle only.
func (h Handle) Index() uint32 { return h.index }

// Order returns the position of a queued message among all messages that arrived, as Matcher.Order does.
func (h Handle) Order() uint64 { return h.seq }

// lookup returns the entry of a handle, or 0.
func (q *queue) lookup(handle Handle) uint32 {
	if handle.index == 0 || handle.index > q.lastIndex {
		return 0
	}
	if q.nodeAt(handle.index).seq != handle.seq || q.cold(handle.index).gen != handle.gen {
		return 0
	}
	return handle.index
}
