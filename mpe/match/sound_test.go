package match

import "math"

// sound checks what must hold inside a queue after every operation.
func (o *model) sound(q *queue) {
	var older uint32
	var last uint64
	n, second, wild, counts := 0, 0, 0, [numClasses]int{}
	for i := q.oldest; i != 0; i = q.age(i).younger {
		e := q.at(i)
		o.want(q.age(i).older == older, "entry %d: older is %d, want %d", i, q.age(i).older, older)
		o.want(e.seq > last, "entry %d has number %d after %d", i, e.seq, last)
		o.want((n < firstLevel) == (e.seq < q.bound), "entry %d is number %d of the queue, with bound %d", i, n, q.bound)
		if n == firstLevel {
			o.want(q.front == i && q.bound == e.seq, "the second level begins with %d (%d), want %d (%d)", q.front, q.bound, i, e.seq)
		}
		if e.seq < q.bound && isExact(e.key) {
			o.inBucket(q.nodes, q.firstBucket(hash(e.key)), i)
		} else {
			second++
			o.inBucket(q.nodes, q.second.bucket(hash(e.key)), i)
		}
		for _, c := range []class{bySource, byTag} {
			if x := q.extra[c]; x != nil {
				o.want(x.nodes.at(i).seq == e.seq && x.nodes.at(i).key == e.key|masks[c], "entry %d of index %d is %+v", i, c, *x.nodes.at(i))
				o.inBucket(x.nodes, x.bucket(hash(x.nodes.at(i).key)), i)
			}
		}
		if c := classOf(e.key); c != exact {
			counts[c]++
			wild++
		}
		older, last = i, e.seq
		n++
	}
	o.want(q.youngest == older && q.length == n, "%d entries up to %d, want %d up to %d", q.length, q.youngest, n, older)
	o.want(q.second.used == second, "the second table counts %d, want %d", q.second.used, second)
	o.want(q.count == counts && q.wild == wild, "classes %v (%d), want %v", q.count, q.wild, counts)
	if n <= firstLevel {
		o.want(q.front == 0 && q.bound == math.MaxUint64, "no second level, but it begins with %d (%d)", q.front, q.bound)
	}
	for _, x := range q.extra {
		if x != nil {
			o.want(x.used == n, "an index counts %d, want %d", x.used, n)
		}
	}
	free := 0
	for i := q.free; i != 0; i = q.at(i).next {
		free++
	}
	o.want(free+n == int(q.used), "%d free and %d queued of %d entries", free, n, q.used)
}

// inBucket checks that entry i is in the FIFO of its key in a bucket, and its
// links.
func (o *model) inBucket(s nodes, b *bucket, i uint32) {
	e := s.at(i)
	h := s.find(b, hash(e.key), e.key)
	o.want(h != 0, "entry %d: no FIFO of its key", i)
	head := s.at(h)
	o.want(head.chain != notHead, "entry %d: its head %d is none", i, h)
	o.want(s.at(head.prev).next == 0, "entry %d: its tail %d has a successor", i, head.prev)
	if h == i {
		return
	}
	o.want(e.chain == notHead, "entry %d of the FIFO of %d is a head too", i, h)
	p := s.at(e.prev)
	o.want(p.next == i && p.seq < e.seq && p.key == e.key, "entry %d: predecessor %d is %+v", i, e.prev, *p)
}
