package match

// sound checks the invariants of a queue that must hold after every operation.
func (o *model) sound(q *queue) {
	var older uint32
	var last uint64
	n, restored, counts := 0, 0, [numClasses]int{}
	for i := q.oldest(); i != 0; i = q.at(i).younger {
		e := q.at(i)
		o.want(e.older == older, "entry %d: older is %d, want %d", i, e.older, older)
		o.want(e.seq > last, "entry %d has number %d after %d", i, e.seq, last)
		o.inTable(&q.table, i)
		for _, c := range []class{bySource, byTag} {
			if x := q.extra[c]; x != nil {
				o.want(x.at(i) == e && x.wild == masks[c], "entry %d of index %d is another one", i, c)
				o.inTable(&x.table, i)
			}
		}
		counts[classOf(e.key)]++
		if q.rare(i).gen != 0 {
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
	for _, x := range q.extra {
		if x != nil {
			o.tidy(&x.table, n)
		}
	}
	free := 0
	for i := q.free; i != 0; i = q.at(i).next {
		o.want(q.at(i).seq == 0 && q.rare(i).gen == 0, "the free entry %d is %+v, gen %d", i, *q.at(i), q.rare(i).gen)
		free++
	}
	o.want(free+n == int(q.last), "%d free and %d queued of %d entries", free, n, q.last)
}

// inTable checks that entry i is in the FIFO of its key, and that its links are consistent.
func (o *model) inTable(t *table, i uint32) {
	e := t.at(i)
	key := e.key | t.wild
	f := t.find(key)
	o.want(f.i != 0 && f.n == t.at(f.i) && f.n.key|t.wild == key, "entry %d: no FIFO of its key", i)
	prev := t.link(f.i, f.n).prev
	o.want(prev&headBit != 0, "entry %d: its head %d is none", i, f.i)
	tail := prev &^ headBit
	o.want(t.link(tail, t.at(tail)).next == 0, "entry %d: its tail %d has a successor", i, tail)
	if f.i == i {
		return
	}
	before := t.link(i, e).prev
	o.want(before&headBit == 0, "entry %d of the FIFO of %d is a head too", i, f.i)
	p := t.at(before)
	o.want(t.link(before, p).next == i && p.seq < e.seq && p.key|t.wild == key, "entry %d: predecessor %d is %+v", i,
		before, *p)
}

// tidy checks that the buckets hold n entries, and that unused lanes are empty.
func (o *model) tidy(t *table, n int) {
	fifos := 0
	fifo := func(i uint32) {
		if i != 0 {
			fifos++
		}
		for ; i != 0; i = t.link(i, t.at(i)).next {
			n--
		}
	}
	for b := range t.n {
		k := t.bucketAt(b)
		for l, i := range k.heads[:lanes] {
			tag := k.tags >> (l * laneBits) & laneMask
			o.want((i != 0) == (tag != 0), "bucket %d has head %d with tag %#x", b, i, tag)
			o.want(i == 0 || tag == tagOf(hash(t.at(i).key|t.wild)), "bucket %d: entry %d has the tag %#x", b, i, tag)
			fifo(i)
		}
		for i := k.heads[lanes]; i != 0; i = *t.chain(i) {
			fifo(i)
		}
	}
	o.want(fifos == t.used, "%d FIFOs, counted %d", fifos, t.used)
	o.want(n == 0, "the table holds %d entries too few", n)
	o.want(t.at(0).key == noKey && t.at(0).seq == never, "no entry has become %+v", *t.at(0))
}
