package match

// enter inserts entry i, whose node n is already in the queue's order, into the FIFO of its key. Its position in
// the FIFO is determined by its seq, and is nearly always the end.
func (t *table) enter(i uint32, n *node) {
	h := hash(n.key | t.wild)
	b := t.bucket(h)
	l := lane(b.match(h))
	if first := b.heads[l]; first != 0 && t.join(head{t.at(first), b, first, l}, h, i, n) {
		return
	}
	*t.link(i, n) = link{0, i | headBit}
	t.place(b, h, i)
	t.used++
	if 4*t.used > 7*int(t.n) { // hardly any bucket runs out of lanes
		t.split()
	}
}

// join is enter for a key that already has a FIFO, and reports false if the key has none. f may be the head of
// another key's FIFO.
func (t *table) join(f head, h uint64, i uint32, n *node) bool {
	if key := n.key | t.wild; f.n.key|t.wild != key {
		if f = t.search(f.b, h, key); f.i == 0 {
			return false
		}
	}
	first := t.link(f.i, f.n)
	tail := first.prev &^ headBit
	last := t.at(tail)
	if n.younger != 0 && last.seq > n.seq {
		t.insert(f, i, n)
		return true
	}
	*t.link(i, n) = link{0, tail}
	t.link(tail, last).next = i
	first.prev = i | headBit
	return true
}

// insert is join for an entry that is older than the last entry of the FIFO.
func (t *table) insert(f head, i uint32, n *node) {
	first, own := t.link(f.i, f.n), t.link(i, n)
	if n.seq < f.n.seq {
		t.replace(f, i)
		*own = link{f.i, first.prev}
		first.prev = i
		return
	}
	before := first.prev &^ headBit
	for t.at(before).seq > n.seq {
		before = t.link(before, t.at(before)).prev
	}
	p := t.link(before, t.at(before))
	*own = link{p.next, before}
	t.link(p.next, t.at(p.next)).prev = i
	p.next = i
}

// dropHead removes the head of a FIFO.
func (t *table) dropHead(f head) {
	l := t.link(f.i, f.n)
	t.replace(f, l.next)
	if l.next == 0 {
		t.used--
	} else {
		t.link(l.next, t.at(l.next)).prev = l.prev
	}
}

// drop removes entry i from its FIFO, at any position.
func (t *table) drop(i uint32, n *node) {
	l := t.link(i, n)
	switch {
	case l.prev&headBit != 0:
		t.dropHead(t.locate(i, n))
	case l.next != 0:
		t.link(l.prev, t.at(l.prev)).next = l.next
		t.link(l.next, t.at(l.next)).prev = l.prev
	default:
		t.link(l.prev, t.at(l.prev)).next = 0
		f := t.find(n.key | t.wild)
		t.link(f.i, f.n).prev = l.prev | headBit
	}
}
