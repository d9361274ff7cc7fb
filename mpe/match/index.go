package match

// index finds the entries of a queue by source alone or by tag alone. It shares the queue's entries, but links them
// separately.
type index struct{ table }

// buildIndex creates the index of class c from the queued entries.
func (q *queue) buildIndex(c class) *index {
	x := &index{}
	x.slab, x.wildMask = q.slab, masks[c]
	x.init()
	q.indexes[c] = x
	q.indexCount++
	for i := q.oldest(); i != 0; i = q.nodeAt(i).younger {
		x.add(q, i, q.nodeAt(i))
	}
	return x
}

// add inserts entry i of the queue into the index. n is the entry's node.
func (x *index) add(q *queue, i uint32, n *node) {
	x.slab = q.slab // may have grown
	x.links.grow(i)
	x.insertEntry(i, n)
}

// enterIndexes adds an entry to the indexes that exist; an index is built when it is first needed.
func (q *queue) enterIndexes(i uint32, n *node) {
	for _, x := range q.indexes {
		if x != nil {
			x.add(q, i, n)
		}
	}
}

func (q *queue) leaveIndexes(i uint32, n *node) {
	for _, x := range q.indexes {
		if x != nil {
			x.removeEntry(i, n)
		}
	}
}
