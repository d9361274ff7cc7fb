package match

import (
	"errors"
	"fmt"
	"math"
)

// DefaultLimit is the default maximum number of entries in a queue.
const DefaultLimit = 1 << 20

// Limits bounds the number of entries in the queues of a Matcher, and thereby its memory. Zero or less means
// DefaultLimit. The maximum is 1<<30; larger values mean 1<<30.
type Limits struct {
	Posted     int // receives in the PRQ
	Unexpected int // messages in the UMQ
}

// limit returns the effective value of a field of Limits.
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

// ErrFull matches every *FullError.
var ErrFull = errors.New("match: queue full")

// FullError is returned when an entry cannot be queued because its queue is at its limit.
type FullError struct {
	Queue Queue
	Limit int // entries
}

func (e *FullError) Error() string {
	if e.Queue == Unexpected {
		return fmt.Sprintf("match: %d unexpected messages are queued, which is the limit: post receives for them, or "+
			"raise the limit", e.Limit)
	}
	return fmt.Sprintf("match: %d receives are posted, which is the limit: complete or cancel some, or raise the limit",
		e.Limit)
}

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }

// KeyError reports an invalid source or tag. The source and tag of a message must not be negative. A receive may also
// use AnySource or AnyTag.
type KeyError struct {
	Queue       Queue // Unexpected for a message, Posted for a receive
	Source, Tag int32
}

func (e *KeyError) Error() string {
	if e.Queue == Unexpected {
		return fmt.Sprintf("match: a message from source %d with tag %d: both must be 0 or greater", e.Source, e.Tag)
	}
	return fmt.Sprintf("match: a receive from source %d with tag %d: both must be 0 or greater, or the wildcard -1",
		e.Source, e.Tag)
}

// OrderError reports an invalid order argument of Restore or Repost: either Order or PostOrder never returned it, or it
// belongs to another queued entry.
type OrderError struct {
	Queue       Queue  // Unexpected for a message, Posted for a receive
	Order, Last uint64 // the invalid order, and the last assigned order
}

func (e *OrderError) Error() string {
	if e.Queue == Posted {
		return fmt.Sprintf("match: a receive cannot be posted again at place %d: it is in use or was never assigned "+
			"(the last was %d); use the value that PostOrder returned after Post", e.Order, e.Last)
	}
	return fmt.Sprintf("match: a message cannot be restored to place %d: it is in use or was never assigned (the "+
		"last was %d); use the value that Order returned after Arrive", e.Order, e.Last)
}

// Queue identifies one of the two queues.
type Queue uint8

const (
	Posted     Queue = iota // the PRQ
	Unexpected              // the UMQ
)
