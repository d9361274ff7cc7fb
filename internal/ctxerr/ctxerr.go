// Package ctxerr makes the error of a call whose context is done: callers find both ctx.Err() and context.Cause in it.
package ctxerr

import (
	"context"
	"errors"
)

// Of returns nil if ctx is not done. Otherwise the text of the error is that of context.Cause, and errors.Is and
// errors.As find the cause and ctx.Err, so that a test for context.Canceled holds whatever cause the caller gave.
func Of(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return &causeError{cause, err}
}

// causeError is a cause and the error of the context that it ended.
type causeError struct{ cause, err error }

// Error returns the text of the cause.
func (e *causeError) Error() string { return e.cause.Error() }

// Unwrap returns both.
func (e *causeError) Unwrap() []error { return []error{e.cause, e.err} }
