//go:build !linux

package jobs

import (
	"context"
	"errors"
	"io"

	"github.com/zrlmpi/zrlmpid/internal/query"
)

// Budget is the number of bytes that may still be read from answers.
type Budget struct{}

// NewBudget returns a budget.
func NewBudget(int64) *Budget { return new(Budget) }

// Propose returns errors.ErrUnsupported.
func Propose(string) (string, error) { return "", errors.ErrUnsupported }

// Make does nothing.
func Make(string) (path string, warning, err error) { return "", nil, nil }

// Remove does nothing.
func Remove(string) error { return nil }

// RemoveEmpty does nothing.
func RemoveEmpty(string) {}

// Sweep does nothing.
func Sweep() {}

// Serve returns errors.ErrUnsupported.
func Serve(string, int, query.Handler) (io.Closer, error) { return nil, errors.ErrUnsupported }

// Places returns no directories.
func Places() []string { return nil }

// Find returns no jobs.
func Find() ([]Job, error) { return nil, nil }

// FindOf returns no jobs.
func FindOf(int, string) ([]Job, error) { return nil, nil }

// Ranks returns no ranks.
func Ranks(string) []int { return nil }

// Matches reports whether name is the name of the job.
func (j *Job) Matches(name string) bool { return j.Name == name }

// Ask returns errors.ErrUnsupported.
func (*Job) Ask(context.Context, query.Request, ...*Budget) (text []byte, pid int, err error) {
	return nil, 0, errors.ErrUnsupported
}

// Stream returns errors.ErrUnsupported.
func (*Job) Stream(context.Context, query.Request) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}
