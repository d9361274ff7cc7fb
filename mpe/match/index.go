package match

// index finds the entries of a queue by a part of their keys. It has the queue's entries, and links of
// its own.
type index struct{ table }

// build makes the index of class c over what is queued.
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
	x.slab = q.slab // which may have grown
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
