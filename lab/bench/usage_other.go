//go:build !unix

package bench

import (
	"os"
	"os/exec"
	"time"
)

// processorTime is not known here.
func processorTime() time.Duration { return 0 }

// inGroup does nothing where there are no groups of processes.
func inGroup(*exec.Cmd) (killGroup func()) { return func() {} }

// interrupt ends a process.
func interrupt(p *os.Process) error { return p.Kill() }
