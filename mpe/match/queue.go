package match

import "math"

const (
	// firstLevel is how many entries the first level holds.
	firstLevel = 256
	// firstBits make 128 buckets of the first level, 4 kB, with two entries
	// in each on average.
	firstBits = 7
)

// queue is the PRQ or the UMQ without what is queued.
type queue struct {
	slab
	oldest, youngest uint32
	// front is the oldest entry of the second level and bound its seq; with
	// no second level, 0 and the largest number.
	front  uint32
	bound  uint64
	length int
	limit  int
	wild   int             // entries with a wildcard
	count  [numClasses]int // the same by class
	second table
	extra  [numClasses]*index // of the UMQ: by source, by tag
	extras int                // how many of them are built
	stats  QueueStats
	first  [1 << firstBits]bucket
}

func (q *queue) init(limit int) {
	q.limit = limit
	q.bound = math.MaxUint64
	q.second = newTable()
}

func (q *queue) firstBucket(h uint64) *bucket {
	return &q.first[h>>(64-firstBits)]
}

// find returns the oldest entry with an exact key, or 0.
func (q *queue) find(key uint64) uint32 {
	h := hash(key)
	i := q.nodes.find(q.firstBucket(h), h, key)
	if i == 0 && q.front != 0 {
		i = q.nodes.find(q.second.bucket(h), h, key)
	}
	return i
}

// receive returns the oldest posted receive that a message fits, or 0.
func (q *queue) receive(key uint64) uint32 {
	if q.wild == 0 {
		return q.find(key)
	}
	best, seq := uint32(0), uint64(math.MaxUint64)
	for c := bySource; c < numClasses; c++ {
		if q.count[c] == 0 {
			continue
		}
		if i := q.second.find(q.nodes, key|masks[c]); i != 0 && q.at(i).seq < seq {
			best, seq = i, q.at(i).seq
		}
	}
	if q.wild == q.length {
		return best
	}
	h := hash(key)
	i := q.nodes.find(q.firstBucket(h), h, key)
	if i == 0 && seq > q.bound {
		i = q.nodes.find(q.second.bucket(h), h, key)
	}
	if i != 0 && q.at(i).seq < seq {
		best = i
	}
	return best
}

// message returns the oldest message that a receive fits, or 0.
func (q *queue) message(key uint64) uint32 {
	if q.length == 0 {
		return 0
	}
	switch c := classOf(key); c {
	case exact:
		return q.find(key)
	case byNone:
		return q.oldest
	default:
		x := q.extra[c]
		if x == nil {
			x = q.build(c)
		}
		return x.table.find(x.nodes, key)
	}
}

// push queues a new entry behind all others.
func (q *queue) push(key, seq uint64) uint32 {
	i := q.alloc()
	n := q.at(i)
	n.key, n.seq = key, seq
	*q.age(i) = age{older: q.youngest}
	if q.youngest != 0 {
		q.age(q.youngest).younger = i
	} else {
		q.oldest = i
	}
	q.youngest = i
	if q.length == firstLevel {
		q.front, q.bound = i, seq
	}
	q.added(i, n)
	return i
}

// insert queues an entry at the place that its seq gives it. It returns 0 if an
// entry has that place.
func (q *queue) insert(key, seq uint64) uint32 {
	after := q.before(seq)
	if after != 0 && q.at(after).seq == seq {
		return 0
	}
	if after == q.youngest {
		return q.push(key, seq)
	}
	i := q.alloc()
	n := q.at(i)
	n.key, n.seq = key, seq
	a := q.age(i)
	a.older = after
	if after == 0 {
		a.younger, q.oldest = q.oldest, i
	} else {
		a.younger, q.age(after).younger = q.age(after).younger, i
	}
	q.age(a.younger).older = i
	switch {
	case q.length < firstLevel || seq > q.bound:
	case q.front == 0:
		q.spill(q.youngest)
	case q.age(q.front).older == i:
		q.setFront(i)
	default:
		q.spill(q.age(q.front).older)
	}
	q.added(i, n)
	return i
}

// before returns the youngest entry whose seq is at most seq, or 0.
func (q *queue) before(seq uint64) uint32 {
	if q.oldest != 0 && seq < q.at(q.oldest).seq {
		return 0
	}
	i := q.youngest
	for i != 0 && q.at(i).seq > seq {
		i = q.age(i).older
	}
	return i
}

// added counts a new entry and enters it into the tables.
func (q *queue) added(i uint32, n *node) {
	q.length++
	if q.length > q.stats.MaxDepth {
		q.stats.MaxDepth = q.length
	}
	h := hash(n.key)
	switch {
	case !isExact(n.key):
		q.wild++
		q.count[classOf(n.key)]++
		q.second.enter(q.nodes, h, i, n)
	case n.seq < q.bound:
		q.nodes.enter(q.firstBucket(h), h, i, n)
	default:
		q.second.enter(q.nodes, h, i, n)
	}
	if q.extras != 0 {
		for c := bySource; c < byNone; c++ {
			if x := q.extra[c]; x != nil {
				q.enterIndex(x, c, i)
			}
		}
	}
}

// remove takes an entry out. The caller has taken what it stands for.
func (q *queue) remove(i uint32) {
	n := q.at(i)
	h := hash(n.key)
	switch {
	case !isExact(n.key):
		q.wild--
		q.count[classOf(n.key)]--
		q.second.leave(q.nodes, h, i, n)
	case n.seq < q.bound:
		q.nodes.leave(q.firstBucket(h), h, i, n)
	default:
		q.second.leave(q.nodes, h, i, n)
	}
	if q.extras != 0 {
		q.leaveIndexes(i)
	}
	q.length--
	a := *q.age(i)
	if a.older != 0 {
		q.age(a.older).younger = a.younger
	} else {
		q.oldest = a.younger
	}
	if a.younger != 0 {
		q.age(a.younger).older = a.older
	} else {
		q.youngest = a.older
	}
	switch {
	case i == q.front:
		q.setFront(a.younger)
	case q.front != 0 && n.seq < q.bound:
		q.refill()
	}
	q.release(i)
}

// setFront moves the border between the levels before entry i.
func (q *queue) setFront(i uint32) {
	q.front, q.bound = i, math.MaxUint64
	if i != 0 {
		q.bound = q.at(i).seq
	}
}

// refill moves the oldest entry of the second level to the first.
func (q *queue) refill() {
	i := q.front
	n := q.at(i)
	q.stats.Refills++
	if isExact(n.key) {
		h := hash(n.key)
		q.second.leave(q.nodes, h, i, n)
		q.nodes.enter(q.firstBucket(h), h, i, n)
	}
	q.setFront(q.age(i).younger)
}

// spill moves the youngest entry of the first level, i, to the second: a
// message was restored into a full first level.
func (q *queue) spill(i uint32) {
	n := q.at(i)
	q.stats.Spills++
	if isExact(n.key) {
		h := hash(n.key)
		q.nodes.leave(q.firstBucket(h), h, i, n)
		q.second.enter(q.nodes, h, i, n)
	}
	q.setFront(i)
}

// hit counts a match.
func (q *queue) hit(i uint32) {
	if q.at(i).seq < q.bound {
		q.stats.FirstLevelHits++
	} else {
		q.stats.SecondLevelHits++
	}
}
