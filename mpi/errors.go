package mpi

import (
	"fmt"
	"slices"
	"strings"
)

// Error is an error of this package: what failed, where, and why. errors.Is
// compares it with a Class, and errors.As finds the cause, such as the
// *mpe.WaitError of a deadline, which says who waits for whom. Causes name
// ranks of the world, and the error itself those of the communicator.
type Error struct {
	Class Class
	// Op is the call that failed, such as "Recv". For a request it is the
	// call that made it.
	Op string
	// Comm is the communicator's name, or "" if there is none.
	Comm string
	// Rank is the caller's rank in the communicator.
	Rank int
	// Peer is the other rank, AnySource, or Undefined if the call has none.
	Peer int
	// Send is true if the peer is a destination, false if it is a source.
	Send bool
	// Tag is the message's, AnyTag, or Undefined if the call has none.
	Tag int
	// Err is the cause.
	Err error
}

// Error says what happened, where, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("mpi: ")
	b.WriteString(e.Op)
	switch {
	case e.Peer == Undefined:
	case e.Send:
		b.WriteString(" to rank " + rankText(e.Peer))
	case e.Peer == AnySource:
		b.WriteString(" from any source")
	default:
		b.WriteString(" from rank " + rankText(e.Peer))
	}
	switch {
	case e.Tag == Undefined:
	case e.Tag == AnyTag && !e.Send:
		b.WriteString(", any tag")
	default:
		b.WriteString(", tag " + tagText(e.Tag))
	}
	if e.Comm != "" {
		fmt.Fprintf(&b, ", on rank %d of %s", e.Rank, e.Comm)
	}
	fmt.Fprintf(&b, ": %s", e.Class.String())
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrTruncate) and the like true.
func (e *Error) Is(target error) bool {
	c, ok := target.(Class)
	return ok && c == e.Class
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorf is an error of a call that has no communicator and no peer.
func errorf(class Class, op, format string, args ...any) error {
	return &Error{Class: class, Op: op, Peer: Undefined, Tag: Undefined, Err: fmt.Errorf(format, args...)}
}

// requestsError is the errors of several requests.
type requestsError struct {
	total  int // requests
	failed int
	first  int // index of the first that failed of those that failed by themselves
	errs   []error
}

func (e *requestsError) add(index int, err error) {
	if err == nil {
		return
	}
	if e.failed++; e.failed == 1 || severity(err) < severity(e.errs[0]) {
		e.first = index
		e.errs = slices.Insert(e.errs, 0, err)
		return
	}
	e.errs = append(e.errs, err)
}

// result is the error of the call that waited for the requests.
func (e *requestsError) result(op string) error {
	if len(e.errs) == 0 {
		return nil
	}
	failed := *e // so that e stays on the stack where nothing failed
	return &Error{Class: ErrInStatus, Op: op, Peer: Undefined, Tag: Undefined, Err: &failed}
}

// Error counts the failures and gives the first.
func (e *requestsError) Error() string {
	return fmt.Sprintf("%d of %d requests failed; the first of them, number %d, says: %v", e.failed, e.total, e.first, e.errs[0])
}

// Unwrap returns the errors of the requests.
func (e *requestsError) Unwrap() []error { return e.errs }
