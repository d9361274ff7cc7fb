// Package sim is the core of discrete-event models of hardware: a clock that counts cycles, events, and queues. A model
// is deterministic: events in the same cycle are executed in the order in which they were scheduled.
//
// The fault simulations in the tests of packages handshake, extended and mpe do not use this package. A node in them
// reports when it must be called next, and each packet may change that time, but a Clock cannot cancel an event.
package sim

// Cycle is a point in simulated time, or a duration, in clock cycles.
type Cycle int64

// Clock holds the pending events. The zero value is a clock at cycle 0.
type Clock struct {
	now       Cycle
	scheduled uint64
	executed  uint64
	// events is a binary heap: the event at index i precedes the events at 2i+1 and 2i+2.
	events []event
}

type event struct {
	at       Cycle
	order    uint64
	callback func()
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.order < f.order }

// Now returns the current cycle.
func (c *Clock) Now() Cycle { return c.now }

// Events returns the number of events that have been executed.
func (c *Clock) Events() uint64 { return c.executed }

// After schedules an event d cycles from now. A negative d counts as 0.
func (c *Clock) After(d Cycle, do func()) {
	c.scheduled++
	c.events = append(c.events, event{c.now + max(d, 0), c.scheduled, do})
	for i := len(c.events) - 1; i > 0; {
		parent := (i - 1) / 2
		if !c.events[i].before(&c.events[parent]) {
			break
		}
		c.events[i], c.events[parent] = c.events[parent], c.events[i]
		i = parent
	}
}

// Run executes events until none is pending.
func (c *Clock) Run() {
	for len(c.events) > 0 {
		next := c.pop()
		c.now = next.at
		c.executed++
		next.callback()
	}
}

func (c *Clock) pop() event {
	first, last := c.events[0], len(c.events)-1
	c.events[0] = c.events[last]
	c.events[last] = event{} // so that the callback can be freed
	c.events = c.events[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if c.events[child].before(&c.events[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		c.events[i], c.events[least] = c.events[least], c.events[i]
		i = least
	}
}

// FIFO is a queue. The zero value is an empty queue.
type FIFO[T any] struct{ items []T }

// Push appends an item.
func (q *FIFO[T]) Push(item T) { q.items = append(q.items, item) }

// Len returns the number of items.
func (q *FIFO[T]) Len() int { return len(q.items) }

// Head returns the oldest item. The queue must not be empty.
func (q *FIFO[T]) Head() T { return q.items[0] }

// Pop removes the oldest item and returns it. The queue must not be empty.
func (q *FIFO[T]) Pop() T {
	var none T
	item := q.items[0]
	q.items[0] = none
	q.items = q.items[1:]
	return item
}
