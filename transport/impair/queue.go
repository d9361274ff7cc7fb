package impair

import (
	"container/heap"
	"time"
)

// Queue holds values until they are due. It returns them in order of due time, and values due at the same time in the
// order in which they were pushed. The zero value is an empty queue.
type Queue[T any] struct {
	items timedHeap[T]
	next  uint64
}

type item[T any] struct {
	due    time.Time
	number uint64
	value  T
}

// Push adds a value, due at the given time.
func (q *Queue[T]) Push(due time.Time, value T) {
	heap.Push(&q.items, item[T]{due, q.next, value})
	q.next++
}

// Pop removes and returns the first value if it is due at now.
func (q *Queue[T]) Pop(now time.Time) (value T, ok bool) {
	if len(q.items) == 0 || q.items[0].due.After(now) {
		return value, false
	}
	return heap.Pop(&q.items).(item[T]).value, true
}

// NextDue returns the time at which the first value is due, or false if the queue is empty.
func (q *Queue[T]) NextDue() (time.Time, bool) {
	if len(q.items) == 0 {
		return time.Time{}, false
	}
	return q.items[0].due, true
}

// timedHeap implements heap.Interface.
type timedHeap[T any] []item[T]

func (h timedHeap[T]) Len() int { return len(h) }
func (h timedHeap[T]) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].number < h[j].number
	}
	return h[i].due.Before(h[j].due)
}
func (h timedHeap[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timedHeap[T]) Push(x any)   { *h = append(*h, x.(item[T])) }
func (h *timedHeap[T]) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = item[T]{}
	*h = (*h)[:last]
	return x
}
