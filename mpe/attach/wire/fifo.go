package wire

// fifo is a queue of items.
type fifo struct {
	items []Item
	head  int
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(it Item) {
	if q.head > 64 && q.head > len(q.items)/2 { // mostly behind us
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, it)
}

func (q *fifo) pop() Item {
	if q.len() == 0 {
		return nil
	}
	it := q.items[q.head]
	q.items[q.head] = nil
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
		if cap(q.items) > 4096 { // a rush is over
			q.items = nil
		}
	}
	return it
}

// raw is an item of one frame without payload.
type Raw []byte

func (f Raw) Frame(b []byte) (head, payload []byte, more bool) { return append(b, f...), nil, false }
func (f Raw) Written()                                         {}
