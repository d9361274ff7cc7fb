package match

// queue is the PRQ or the UMQ, without the stored receives or messages.
type queue struct {
	table
	free       uint32 // head of the list of freed entries
	lastIndex  uint32 // highest entry number in use so far
	length     int
	limit      int
	count      [numClasses]int    // entries by class
	indexes    [numClasses]*index // of the UMQ: by source, by tag
	indexCount int                // number of indexes built
	restored   int                // entries queued by restore
	gen        uint32             // gen of the last restored entry
}

func (q *queue) init(limit int) {
	q.grow(0)
	*q.nodeAt(0) = node{key: noKey, seq: never}
	q.table.init()
	q.limit = limit
}

func (q *queue) oldest() uint32   { return q.nodeAt(0).younger }
func (q *queue) youngest() uint32 { return q.nodeAt(0).older }

// isExact reports whether the keys of all entries are free of wildcards.
func (q *queue) isExact() bool { return q.count[exact] == q.length }

// findReceive returns the oldest posted receive that matches a message, for a queue with wildcards. It compares the
// matching heads of all classes in use. Skipping a class whose oldest receive is younger than a match found so far
// would save nothing: in a deep queue, nearly every class contains an older receive, for other messages.
func (q *queue) findReceive(key uint64) head {
	var found [numClasses]head
	const none = never << classBits
	seqs := [numClasses]uint64{none, none, none, none}
	for c := range found {
		if q.count[c] == 0 {
			continue
		}
		// This is find, inlined to avoid a call for each class.
		k := key | masks[c]
		h := hash(k)
		b := q.bucket(h)
		l := lane(b.match(h))
		i := b.heads[l]
		f := head{q.nodeAt(i), b, i, l}
		if isOther(f.n.key, k, i) {
			f = q.search(b, h, k)
		}
		found[c] = f
		seqs[c] = f.n.seq<<classBits | uint64(c)
	}
	oldest := lesser(lesser(seqs[exact], seqs[bySource]), lesser(seqs[byTag], seqs[byNone]))
	return found[oldest&(1<<classBits-1)]
}

// lesser returns the lesser of two numbers below 1<<63. Unlike min, it does not branch, because no branch predictor can
// predict the class of the oldest receive.
func lesser(a, b uint64) uint64 {
	return b + (a-b)&uint64(int64(a-b)>>63)
}

// findMessage returns the oldest message that matches a receive.
func (q *queue) findMessage(key uint64) head {
	c := classOf(key)
	if c == exact {
		return q.find(key)
	}
	i := q.oldest()
	if c != byNone {
		x := q.indexes[c]
		if x == nil {
			x = q.buildIndex(c)
		}
		i = x.find(key).i
	}
	if i == 0 {
		return head{}
	}
	return q.locate(i, q.nodeAt(i)) // the oldest entry of an index is also the head of the FIFO of its full key
}

// push queues a new entry before entry y, or at the end if y is 0, and returns the new entry's number.
func (q *queue) push(key, seq uint64, y uint32) uint32 {
	i := q.free
	if i == 0 {
		q.lastIndex++
		i = q.lastIndex
		q.grow(i)
	}
	n, after := q.nodeAt(i), q.nodeAt(y)
	before := q.nodeAt(after.older)
	q.free = n.next
	n.key, n.seq = key, seq
	n.older, n.younger = after.older, y
	after.older, before.younger = i, i
	q.length++
	q.count[classOf(key)]++
	q.insertEntry(i, n)
	if q.indexCount != 0 {
		q.enterIndexes(i, n)
	}
	return i
}

// take removes a matched entry, which is the head of its FIFO. The caller must remove the entry's value from the store.
func (q *queue) take(f head) {
	if f.n.next == 0 && f.lane < lanes {
		f.b.free(f.lane)
		q.fifoCount--
	} else {
		q.dropHead(f)
	}
	q.release(f.i, f.n)
}

// remove removes an entry from any position. The caller must remove the entry's value from the store.
func (q *queue) remove(i uint32) {
	n := q.nodeAt(i)
	q.removeEntry(i, n)
	q.release(i, n)
}

// release removes an entry, which is no longer in the table, from the queue's order and from the indexes, and adds it
// to the front of the free list, so that the next entry reuses it while its cache lines are warm.
func (q *queue) release(i uint32, n *node) {
	q.nodeAt(n.older).younger = n.younger
	q.nodeAt(n.younger).older = n.older
	q.length--
	q.count[classOf(n.key)]--
	if q.indexCount != 0 {
		q.leaveIndexes(i, n)
	}
	if q.restored != 0 {
		q.forget(i)
	}
	n.seq = 0 // its handles are stale
	n.next = q.free
	q.free = i
}
