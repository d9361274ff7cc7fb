package match

// firstLevel is how many entries the first level holds.
const firstLevel = 256

// setFront moves the border between the levels before entry i.
func (q *queue) setFront(i uint32) {
	q.front, q.bound = i, q.at(i).seq
}

// refill moves the border when entry i leaves, which was in the first level or
// the oldest of the second.
func (q *queue) refill(i uint32, n *node) {
	if i != q.front {
		q.stats.Refills++
		n = q.at(q.front)
	}
	q.setFront(n.younger)
}

// spill moves the border when entry i was queued in the first level, or just
// before the second, with younger ones behind it.
func (q *queue) spill(i uint32) {
	last := q.front // push has set it, if there was no second level
	if q.length > firstLevel+1 {
		last = q.at(q.front).older
		q.setFront(last)
	}
	if last != i {
		q.stats.Spills++
	}
}
