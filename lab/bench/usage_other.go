//go:build !unix

package bench

import (
	"os"
	"os/exec"
	"time"
)

// processorTime returns 0, as the time is unknown on this system.
func processorTime() time.Duration { return 0 }

// inGroup does nothing, because this system has no process groups.
func inGroup(*exec.Cmd) (killGroup func()) { return func() {} }

// interrupt kills a process, as it cannot be interrupted on this system.
func interrupt(p *os.Process) error { return p.Kill() }
