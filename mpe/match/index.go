package match

// index finds the entries of a queue by a part of their keys. It shares the entries of the queue, but has its own
// links.
type index struct{ table }

// build creates the index of class c for the queued entries.
func (q *queue) build(c class) *index {
	x := &index{}
	x.slab, x.wild = q.slab, masks[c]
	x.init()
	q.extra[c] = x
	q.extras++
	for i := q.oldest(); i != 0; i = q.at(i).younger {
		x.add(q, i, q.at(i))
	}
	return x
}

// add enters entry i of the queue, whose node is n.
func (x *index) add(q *queue, i uint32, n *node) {
	x.slab = q.slab // may have grown
	x.links.grow(i)
	x.enter(i, n)
}

func (q *queue) enterIndexes(i uint32, n *node) {
	for _, x := range q.extra {
		if x != nil {
			x.add(q, i, n)
		}
	}
}

func (q *queue) leaveIndexes(i uint32, n *node) {
	for _, x := range q.extra {
		if x != nil {
			x.drop(i, n)
		}
	}
}
