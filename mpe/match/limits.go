package match

import (
	"errors"
	"fmt"
	"math"
)

// DefaultLimit is how many entries a queue holds at most if Limits leaves it
// open.
const DefaultLimit = 1 << 20

// Limits bound the memory of a Matcher. They count entries; 0 or less means
// DefaultLimit, and more than 1<<30 means 1<<30.
type Limits struct {
	Posted     int // receives in the PRQ
	Unexpected int // messages in the UMQ
}

func limit(n int) int {
	switch {
	case n <= 0:
		return DefaultLimit
	case n > maxLimit:
		return maxLimit
	}
	return n
}

// maxLimit keeps entry numbers within 32 bits.
const maxLimit = (math.MaxInt32 + 1) / 2

// ErrFull is what a *FullError is to errors.Is.
var ErrFull = errors.New("match: queue full")

// FullError says that an entry had to be queued and that its queue is at its
// limit. Nothing was queued.
type FullError struct {
	Queue Queue
	Limit int // entries
}

func (e *FullError) Error() string {
	if e.Queue == Unexpected {
		return fmt.Sprintf("match: %d unexpected messages are queued, which is the limit: post receives for them, or raise the limit", e.Limit)
	}
	return fmt.Sprintf("match: %d receives are posted, which is the limit: complete or cancel some, or raise the limit", e.Limit)
}

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }

// KeyError says that a source or tag is not one: a message's must be 0 or
// greater, a receive's may be AnySource or AnyTag as well.
type KeyError struct {
	Queue       Queue // Unexpected for a message, Posted for a receive
	Source, Tag int32
}

func (e *KeyError) Error() string {
	if e.Queue == Unexpected {
		return fmt.Sprintf("match: a message from source %d with tag %d: both must be 0 or greater", e.Source, e.Tag)
	}
	return fmt.Sprintf("match: a receive from source %d with tag %d: both must be 0 or greater, or the wildcard -1", e.Source, e.Tag)
}

// OrderError says that a message to be restored, or a receive to be posted again,
// has an order that Order or PostOrder never gave, or that another queued one has.
type OrderError struct {
	Queue       Queue  // Unexpected for a message, Posted for a receive
	Order, Last uint64 // what was asked for, and what was given last
}

func (e *OrderError) Error() string {
	if e.Queue == Posted {
		return fmt.Sprintf("match: a receive cannot be posted again at place %d: it is taken or was never given (the last was %d); use what PostOrder returned after its Post", e.Order, e.Last)
	}
	return fmt.Sprintf("match: a message cannot be restored to place %d: it is taken or was never given (the last was %d); use what Order returned after its Arrive", e.Order, e.Last)
}

// Queue names one of the two queues.
type Queue uint8

const (
	Posted     Queue = iota // the PRQ
	Unexpected              // the UMQ
)
