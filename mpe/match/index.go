package match

// index finds the entries of a queue by a part of their keys.
type index struct {
	nodes
	table
}

// build makes the index of class c over what is queued.
func (q *queue) build(c class) *index {
	x := &index{table: newTable()}
	q.extra[c] = x
	q.extras++
	for i := q.oldest; i != 0; i = q.age(i).younger {
		q.enterIndex(x, c, i)
	}
	return x
}

func (q *queue) enterIndex(x *index, c class, i uint32) {
	for int(i>>segBits) >= len(x.nodes) {
		x.nodes = append(x.nodes, new([segLen]node))
	}
	n, e := q.at(i), x.nodes.at(i)
	e.key, e.seq = n.key|masks[c], n.seq
	x.table.enter(x.nodes, hash(e.key), i, e)
}

func (q *queue) leaveIndexes(i uint32) {
	for _, x := range q.extra {
		if x != nil {
			n := x.nodes.at(i)
			x.table.leave(x.nodes, hash(n.key), i, n)
		}
	}
}
