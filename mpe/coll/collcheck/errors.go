package collcheck

import (
	"errors"
	"fmt"
)

// ErrSchedule matches every *Error.
var ErrSchedule = errors.New("schedule is wrong")

// Error reports a mistake in a schedule.
type Error struct {
	// Rank and Step locate the mistake. Step is 0 if the mistake concerns the schedule as a whole.
	Rank, Step int
	Problem    string
}

func (e *Error) Error() string {
	if e.Step == 0 {
		return fmt.Sprintf("rank %d: %s", e.Rank, e.Problem)
	}
	return fmt.Sprintf("rank %d, step %d: %s", e.Rank, e.Step, e.Problem)
}

// Is reports whether target is ErrSchedule.
func (e *Error) Is(target error) bool { return target == ErrSchedule }

func scheduleError(rank, step int, format string, args ...any) error {
	return &Error{Rank: rank, Step: step, Problem: fmt.Sprintf(format, args...)}
}
