package match

// sound checks the invariants of a queue that must hold after every operation.
func (o *model) sound(q *queue) {
	var older uint32
	var last uint64
	n, restored, counts := 0, 0, [numClasses]int{}
	for i := q.oldest(); i != 0; i = q.nodeAt(i).younger {
		e := q.nodeAt(i)
		o.want(e.older == older, "entry %d: older is %d, want %d", i, e.older, older)
		o.want(e.seq > last, "entry %d has number %d after %d", i, e.seq, last)
		o.inTable(&q.table, i)
		for _, c := range []class{bySource, byTag} {
			if x := q.indexes[c]; x != nil {
				o.want(x.nodeAt(i) == e && x.wildMask == masks[c], "entry %d of index %d is another one", i, c)
				o.inTable(&x.table, i)
			}
		}
		counts[classOf(e.key)]++
		if q.cold(i).gen != 0 {
			restored++
		}
		older, last = i, e.seq
		n++
	}
	o.want(q.youngest() == older && q.length == n, "%d entries up to %d, want %d up to %d", q.length, q.youngest(), n,
		older)
	o.want(q.count == counts, "classes %v, want %v", q.count, counts)
	o.want(q.restored == restored, "%d entries restored, want %d", q.restored, restored)
	o.tidy(&q.table, n)
	for _, x := range q.indexes {
		if x != nil {
			o.tidy(&x.table, n)
		}
	}
	free := 0
	for i := q.free; i != 0; i = q.nodeAt(i).next {
		o.want(q.nodeAt(i).seq == 0 && q.cold(i).gen == 0, "the free entry %d is %+v, gen %d", i, *q.nodeAt(i), q.cold(i).gen)
		free++
	}
	o.want(free+n == int(q.lastIndex), "%d free and %d queued of %d entries", free, n, q.lastIndex)
}

// inTable checks that entry i is in the FIFO of its key, and that its links are consistent.
func (o *model) inTable(t *table, i uint32) {
	e := t.nodeAt(i)
	key := e.key | t.wildMask
	f := t.find(key)
	o.want(f.i != 0 && f.n == t.nodeAt(f.i) && f.n.key|t.wildMask == key, "entry %d: no FIFO of its key", i)
	prev := t.link(f.i, f.n).prev
	o.want(prev&headBit != 0, "entry %d: its head %d is not a head", i, f.i)
	tail := prev &^ headBit
	o.want(t.link(tail, t.nodeAt(tail)).next == 0, "entry %d: its tail %d has a successor", i, tail)
	if f.i == i {
		return
	}
	before := t.link(i, e).prev
	o.want(before&headBit == 0, "entry %d of the FIFO of %d is a head too", i, f.i)
	p := t.nodeAt(before)
	o.want(t.link(before, p).next == i && p.seq < e.seq && p.key|t.wildMask == key, "entry %d: predecessor %d is %+v", i,
		before, *p)
}

// tidy checks that the buckets hold n entries, and that unused lanes are empty.
func (o *model) tidy(t *table, n int) {
	fifos := 0
	fifo := func(i uint32) {
		if i != 0 {
			fifos++
		}
		for ; i != 0; i = t.link(i, t.nodeAt(i)).next {
			n--
		}
	}
	for b := range t.bucketCount {
		k := t.bucketAt(b)
		for l, i := range k.heads[:lanes] {
			tag := k.tags >> (l * laneBits) & laneMask
			o.want((i != 0) == (tag != 0), "bucket %d has head %d with tag %#x", b, i, tag)
			o.want(i == 0 || tag == tagOf(hash(t.nodeAt(i).key|t.wildMask)), "bucket %d: entry %d has the tag %#x", b, i, tag)
			fifo(i)
		}
		for i := k.heads[lanes]; i != 0; i = *t.chain(i) {
			fifo(i)
		}
	}
	o.want(fifos == t.fifoCount, "%d FIFOs, counted %d", fifos, t.fifoCount)
	o.want(n == 0, "the table holds %d entries too few", n)
	o.want(t.nodeAt(0).key == noKey && t.nodeAt(0).seq == never, "no entry has become %+v", *t.nodeAt(0))
}
