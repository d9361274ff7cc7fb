// Package poller waits for many file descriptors with one goroutine and one
// thread, whatever their number.
//
// It is for descriptors that are read by whoever waits for what they bring, and
// need looking after in the meantime only: a descriptor is watched from Arm until
// it has become readable once. Go's own poller has no such thing. It wakes a
// thread for all that arrives, also while somebody looks for it anyway.
//
// It must never read a descriptor, and never wait for what it calls.
package poller

import (
	"errors"
	"time"
)

// ErrUnsupported is the error of Add on a system without epoll.
var ErrUnsupported = errors.New("this system has no epoll")

// Period is the time between two calls of Tend.
const Period = time.Millisecond

// Handler is told of a descriptor. Its methods are called by one goroutine, the
// poller's, for all descriptors; so they take little time.
type Handler interface {
	// Ready is called when the descriptor is readable, once after each Arm.
	// If it reports true, Tend is called from then on.
	Ready() (tend bool)
	// Tend is called every Period for as long as it reports true.
	Tend() (tend bool)
}
