//go:build !unix

package launch

import (
	"errors"
	"os"
)

// Signals are those that a launcher passes on to the ranks.
var Signals = []os.Signal{os.Interrupt}

// Run cannot run a job on this system.
func (j *Job) Run() error { return errors.ErrUnsupported }
