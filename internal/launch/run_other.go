//go:build !unix

package launch

import (
	"context"
	"errors"
	"os"
)

// Signals are the signals that a launcher forwards to the ranks.
var Signals = []os.Signal{os.Interrupt}

// Run returns errors.ErrUnsupported.
func (j *Job) Run() error { return errors.ErrUnsupported }

// CheckHosts returns errors.ErrUnsupported.
func (j *Job) CheckHosts(context.Context, []string) error { return errors.ErrUnsupported }

// Replace returns errors.ErrUnsupported.
func Replace(_, _ []string) error { return errors.ErrUnsupported }
