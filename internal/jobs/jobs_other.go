//go:build !linux

package jobs

import (
	"context"
	"errors"
	"io"

	"github.com/zrlmpi/zrlmpid/internal/query"
)

// Budget is the number of bytes that may still be read of answers.
type Budget struct{}

// NewBudget returns a budget.
func NewBudget(int64) *Budget { return new(Budget) }

// Propose has no directory to propose.
func Propose(string) (string, error) { return "", errors.ErrUnsupported }

// Make has no directory to make.
func Make(string) (path string, warning, err error) { return "", nil, nil }

// Remove has nothing to remove.
func Remove(string) error { return nil }

// RemoveEmpty has nothing to remove.
func RemoveEmpty(string) {}

// Sweep has nothing to remove.
func Sweep() {}

// Serve has nothing to answer on.
func Serve(string, int, query.Handler) (io.Closer, error) { return nil, errors.ErrUnsupported }

// Find finds nothing.
func Find() ([]Job, error) { return nil, nil }

// FindOf finds nothing.
func FindOf(int, string) ([]Job, error) { return nil, nil }

// Ranks finds nothing.
func Ranks(string) []int { return nil }

// Matches reports whether a user names the job by name.
func (j *Job) Matches(name string) bool { return j.Name == name }

// Ask cannot ask.
func (*Job) Ask(context.Context, query.Request, ...*Budget) (text []byte, pid int, err error) {
	return nil, 0, errors.ErrUnsupported
}

// Stream cannot ask.
func (*Job) Stream(context.Context, query.Request) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}
