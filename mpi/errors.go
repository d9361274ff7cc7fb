package mpi

import (
	"fmt"
	"slices"
	"strings"
)

// Error is an error of this package. It describes the failed call, its arguments and the cause. errors.Is compares it
// with a Class, and errors.As finds the cause, such as the *mpe.WaitError of an expired deadline, which names the ranks
// that wait for each other. Causes use ranks of the world; the error itself uses ranks of the communicator.
type Error struct {
	Class Class
	// Op is the name of the call that failed, such as "Recv". For a request, it is the name of the call that
	// created the request.
	Op string
	// Comm is the name of the communicator, or "".
	Comm string
	// Rank is the caller's rank in the communicator.
	Rank int
	// Peer is the other rank, AnySource, or Undefined if the call has no peer.
	Peer int
	// Send is true if the peer is a destination, and false if it is a source.
	Send bool
	// Tag is the tag of the message, AnyTag, or Undefined if the call has no tag.
	Tag int
	// Err is the cause.
	Err error
}

// Error returns the failed call, the communicator, the class and the cause.
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

// Is reports whether target is the error's class, as in errors.Is(err, ErrTruncate).
func (e *Error) Is(target error) bool {
	c, ok := target.(Class)
	return ok && c == e.Class
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorf returns an error of a call that has no communicator and no peer.
func errorf(class Class, op, format string, args ...any) error {
	return &Error{Class: class, Op: op, Peer: Undefined, Tag: Undefined, Err: fmt.Errorf(format, args...)}
}

// requestsError collects the errors of several requests.
type requestsError struct {
	total      int // number of requests
	failed     int
	firstIndex int // index of the first error in errs; independent failures come before their consequences
	errs       []error
}

// add adds the error of a request, which may be nil. The most severe error stays first, so that it is the one to be
// reported.
func (e *requestsError) add(index int, err error) {
	if err == nil {
		return
	}
	if e.failed++; e.failed == 1 || severity(err) < severity(e.errs[0]) {
		e.firstIndex = index
		e.errs = slices.Insert(e.errs, 0, err)
		return
	}
	e.errs = append(e.errs, err)
}

// result returns the error of the call named op, which waited for the requests.
func (e *requestsError) result(op string) error {
	if len(e.errs) == 0 {
		return nil
	}
	failed := *e // a copy, so that e stays on the stack if nothing failed
	return &Error{Class: ErrInStatus, Op: op, Peer: Undefined, Tag: Undefined, Err: &failed}
}

// Error returns the number of failures and the first error.
func (e *requestsError) Error() string {
	return fmt.Sprintf("%d of %d requests failed; the first of them, number %d, says: %v", e.failed, e.total, e.firstIndex,
		e.errs[0])
}

// Unwrap returns the errors of the requests.
func (e *requestsError) Unwrap() []error { return e.errs }
