//go:build unix

package bench

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// processorTime returns the user and system time used by this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inGroup makes a command start in a new process group. killGroup kills the remaining processes of the group.
func inGroup(cmd *exec.Cmd) (killGroup func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group may be empty
		}
	}
}

// interrupt sends SIGINT to a process.
func interrupt(p *os.Process) error { return p.Signal(syscall.SIGINT) }
