package match

// index finds the entries of a queue by a part of their keys.
type index struct{ table }

// build makes the index of class c over what is queued.
func (q *queue) build(c class) *index {
	x := &index{}
	x.init()
	q.extra[c] = x
	q.extras++
	for i := q.oldest(); i != 0; i = q.at(i).younger {
		x.add(c, i, q.at(i))
	}
	return x
}

// add enters entry i of the queue, whose node there is n.
func (x *index) add(c class, i uint32, n *node) {
	x.grow(i)
	e := x.at(i)
	e.key, e.seq = n.key|masks[c], n.seq
	x.enter(i, e)
}

func (q *queue) enterIndexes(i uint32, n *node) {
	for c, x := range q.extra {
		if x != nil {
			x.add(class(c), i, n)
		}
	}
}

func (q *queue) leaveIndexes(i uint32) {
	for _, x := range q.extra {
		if x != nil {
			x.drop(i, x.at(i))
		}
	}
}
