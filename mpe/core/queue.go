package core

import "slices"

// queue is a first-in-first-out queue.
type queue[T any] struct {
	// items[head:] are queued. pop moves them to the front once more than half of the slice is unused.
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(item T) { q.items = append(q.items, item) }

// pop returns the first item, or the zero value if the queue is empty.
func (q *queue[T]) pop() (item T) {
	if q.head == len(q.items) {
		return item
	}
	at := &q.items[q.head]
	item, *at = *at, item
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 64 && q.head*2 > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return item
}

// remove removes the first item for which the function is returns true, and reports whether there was one.
func (q *queue[T]) remove(is func(T) bool) bool {
	i := slices.IndexFunc(q.items[q.head:], is)
	if i < 0 {
		return false
	}
	q.items = slices.Delete(q.items, q.head+i, q.head+i+1)
	return true
}
