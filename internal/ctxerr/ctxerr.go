// Package ctxerr makes the error of a call whose context is done: callers find both ctx.Err() and context.Cause in it.
package ctxerr

import (
	"context"
	"errors"
)

// Cause returns nil if ctx is not done. Otherwise it returns an error with the text of context.Cause, in which
// errors.Is and errors.As find both the cause and ctx.Err, so that a test for context.Canceled succeeds whatever the
// cause is.
func Cause(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return &causeError{cause, err}
}

// causeError combines a cause with the error of its context.
type causeError struct{ cause, err error }

// Error returns the text of the cause.
func (e *causeError) Error() string { return e.cause.Error() }

// Unwrap returns both errors.
func (e *causeError) Unwrap() []error { return []error{e.cause, e.err} }
