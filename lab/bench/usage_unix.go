//go:build unix

package bench

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// processorTime is the user and system time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inGroup gives a command's process a group of its own, so that what it starts can
// be ended with it. Returned is the end of all that is left of it.
func inGroup(cmd *exec.Cmd) (killGroup func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group may be empty
		}
	}
}

// interrupt asks a process to end.
func interrupt(p *os.Process) error { return p.Signal(syscall.SIGINT) }
