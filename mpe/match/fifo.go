package match

// enter puts entry i, whose key and seq are set, into the FIFO of its key, at
// the place that its seq gives it: nearly always the end.
func (t *table) enter(i uint32, n *node) {
	h := hash(n.key)
	b := t.bucket(h)
	l := lane(b.match(h))
	if first := b.heads[l]; first != 0 && t.join(head{t.at(first), b, first, l}, h, i, n) {
		return
	}
	n.next, n.prev = 0, i|headBit
	t.place(b, h, i)
	t.used++
	if 4*t.used > 7*int(t.n) { // hardly a bucket runs out of lanes
		t.split()
	}
}

// join is enter if there is a FIFO of the key. f may be the head of another
// key's.
func (t *table) join(f head, h uint64, i uint32, n *node) bool {
	if f.n.key != n.key {
		if f = t.search(f.b, h, n.key); f.i == 0 {
			return false
		}
	}
	tail := f.n.prev &^ headBit
	last := t.at(tail)
	if last.seq > n.seq {
		t.insert(f, i, n)
		return true
	}
	n.next, n.prev = 0, tail
	last.next = i
	f.n.prev = i | headBit
	return true
}

// insert is join for an entry that is older than the last.
func (t *table) insert(f head, i uint32, n *node) {
	if n.seq < f.n.seq {
		t.replace(f, i)
		n.next, n.prev = f.i, f.n.prev
		f.n.prev = i
		return
	}
	before := f.n.prev &^ headBit
	for t.at(before).seq > n.seq {
		before = t.at(before).prev
	}
	p := t.at(before)
	n.next, n.prev = p.next, before
	t.at(p.next).prev = i
	p.next = i
}

// dropHead removes the head of a FIFO.
func (t *table) dropHead(f head) {
	next := f.n.next
	t.replace(f, next)
	if next == 0 {
		t.used--
	} else {
		t.at(next).prev = f.n.prev
	}
}

// drop takes entry i out, wherever in its FIFO it is.
func (t *table) drop(i uint32, n *node) {
	switch {
	case n.prev&headBit != 0:
		t.dropHead(t.locate(i, n))
	case n.next != 0:
		t.at(n.prev).next = n.next
		t.at(n.next).prev = n.prev
	default:
		t.at(n.prev).next = 0
		t.find(n.key).n.prev = n.prev | headBit
	}
}
