// Package poller waits for many file descriptors with one goroutine, which holds
// no thread.
//
// It is for descriptors that are read by callers that wait for what they bring, and have
// to be watched in the meantime only: a descriptor is watched from Arm until
// it has become readable once. Go's own poller has no such thing. It wakes a
// thread for all that arrives, also while a caller polls for it anyway.
//
// It must never read a descriptor.
package poller

import (
	"errors"
	"time"
)

// ErrUnsupported is the error of Add on a system without epoll.
var ErrUnsupported = errors.New("this system has no epoll")

// Handler is called about a descriptor. Its methods are called one at a time, and must
// take little time: other descriptors wait.
type Handler interface {
	// Ready is called when the descriptor is readable, once after each Arm. If
	// it returns more than 0, PollAgain is called so much later.
	Ready() time.Duration
	// PollAgain is called again as long as it returns more than 0, so much later.
	PollAgain() time.Duration
}
