//go:build !unix

package launch

import (
	"context"
	"errors"
	"os"
)

// Signals are those that a launcher passes on to the ranks.
var Signals = []os.Signal{os.Interrupt}

// Run cannot run a job on this system.
func (j *Job) Run() error { return errors.ErrUnsupported }

// CheckHosts cannot check hosts from this system.
func (j *Job) CheckHosts(context.Context, []string) error { return errors.ErrUnsupported }

// Replace cannot run a program in the place of this one.
func Replace(_, _ []string) error { return errors.ErrUnsupported }
