package standin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	term = syscall.SIGTERM
	kill = syscall.SIGKILL
)

// program is one run of a user's program, in its own process group.
type program struct {
	process *os.Process
	// input is closed to ask the program to exit. It is usually the program's standard input.
	input  io.Closer
	stdout io.ReadCloser
	stderr io.ReadCloser
	grace  time.Duration
	log    *zap.Logger
	tasks  sync.WaitGroup
	// serveToEnd is set if the program is served until its connection closes, so that all output written before its
	// exit is read.
	serveToEnd bool

	// exited is closed after the program has exited. From then on, exitErr describes how the program ended; it is nil
	// after an exit with status 0.
	exited  chan struct{}
	exitErr error

	mu     sync.Mutex
	reaped bool // from now on, the process ID may belong to another process
}

// newCommand returns a command that runs a program with env added to the daemon's environment.
func newCommand(command, env []string) *exec.Cmd {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// startProgram starts a program that uses the given input. The caller must then call run, which ends the program and
// closes the input.
func startProgram(cmd *exec.Cmd, input io.Closer, grace time.Duration, log *zap.Logger) (*program, error) {
	p := &program{input: input, grace: grace, exited: make(chan struct{})}
	var errs [3]error
	p.stdout, errs[0] = cmd.StdoutPipe()
	p.stderr, errs[1] = cmd.StderrPipe()
	if errs[0] == nil && errs[1] == nil {
		errs[2] = cmd.Start()
	}
	if err := errors.Join(errs[:]...); err != nil {
		input.Close()
		return nil, fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	p.process = cmd.Process
	p.log = log.With(zap.Int("pid", cmd.Process.Pid))
	p.log.Info("program started")
	p.tasks.Go(p.reap)
	p.tasks.Go(func() { logLines(p.stderr, p.log) })
	return p, nil
}

// reap waits for the program to exit. It kills the other processes in the group while the program is still a zombie,
// because until then the system cannot reuse the group's ID.
func (p *program) reap() {
	defer close(p.exited)
	for unix.Waitid(unix.P_PID, p.process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.process.Pid, kill) // fails if no process is left
	state, err := p.process.Wait()
	p.reaped = true
	switch {
	case err != nil:
		p.exitErr = fmt.Errorf("exit status of the program unknown: %w", err)
	case !state.Success():
		p.exitErr = fmt.Errorf("program ended: %v", state)
	}
}

// signal sends a signal to all processes in the program's group.
func (p *program) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.process.Pid, s) // fails if the program has exited
	}
}

// closeOutputs closes the program's outputs, so that their readers return.
func (p *program) closeOutputs() {
	p.stdout.Close()
	p.stderr.Close()
}
