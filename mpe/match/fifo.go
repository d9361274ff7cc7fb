package match

// insertEntry inserts entry i, whose node n is already in the queue's order, into the FIFO of its key. Its seq
// determines the position in the FIFO, which is nearly always the end.
func (t *table) insertEntry(i uint32, n *node) {
	h := hash(n.key | t.wildMask)
	b := t.bucket(h)
	l := lane(b.match(h))
	if first := b.heads[l]; first != 0 && t.appendFIFO(head{t.nodeAt(first), b, first, l}, h, i, n) {
		return
	}
	*t.link(i, n) = link{0, i | headBit}
	t.addHead(b, h, i)
	t.fifoCount++
	if 4*t.fifoCount > 7*int(t.bucketCount) { // few buckets run out of lanes at this load
		t.splitBucket()
	}
}

// appendFIFO inserts an entry into the existing FIFO of its key, and reports false if the key has no FIFO. f is the
// head that a lookup by tag has found; it may belong to another key with the same tag.
func (t *table) appendFIFO(f head, h uint64, i uint32, n *node) bool {
	if key := n.key | t.wildMask; f.n.key|t.wildMask != key {
		if f = t.search(f.b, h, key); f.i == 0 {
			return false
		}
	}
	first := t.link(f.i, f.n)
	tail := first.prev &^ headBit
	last := t.nodeAt(tail)
	if n.younger != 0 && last.seq > n.seq {
		t.insertOlder(f, i, n)
		return true
	}
	*t.link(i, n) = link{0, tail}
	t.link(tail, last).next = i
	first.prev = i | headBit
	return true
}

// insertOlder inserts an entry that is older than the last entry of its FIFO.
func (t *table) insertOlder(f head, i uint32, n *node) {
	first, own := t.link(f.i, f.n), t.link(i, n)
	if n.seq < f.n.seq {
		t.replace(f, i)
		*own = link{f.i, first.prev}
		first.prev = i
		return
	}
	before := first.prev &^ headBit
	for t.nodeAt(before).seq > n.seq {
		before = t.link(before, t.nodeAt(before)).prev
	}
	p := t.link(before, t.nodeAt(before))
	*own = link{p.next, before}
	t.link(p.next, t.nodeAt(p.next)).prev = i
	p.next = i
}

// dropHead removes the head of a FIFO.
func (t *table) dropHead(f head) {
	l := t.link(f.i, f.n)
	t.replace(f, l.next)
	if l.next == 0 {
		t.fifoCount--
	} else {
		t.link(l.next, t.nodeAt(l.next)).prev = l.prev
	}
}

// removeEntry removes entry i from any position in its FIFO.
func (t *table) removeEntry(i uint32, n *node) {
	l := t.link(i, n)
	switch {
	case l.prev&headBit != 0:
		t.dropHead(t.locate(i, n))
	case l.next != 0:
		t.link(l.prev, t.nodeAt(l.prev)).next = l.next
		t.link(l.next, t.nodeAt(l.next)).prev = l.prev
	default:
		t.link(l.prev, t.nodeAt(l.prev)).next = 0
		f := t.find(n.key | t.wildMask)
		t.link(f.i, f.n).prev = l.prev | headBit
	}
}
