package launch

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	programs["launcher"] = launcher
	programs["session"] = session
}

// launcher runs a job of two ranks like zrlctl.
func launcher() {
	self, err := os.Executable()
	try(err)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, Signals...)
	j := Job{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals}
	j.Programs = []Program{{Ranks: 2, Args: []string{self, "rank", os.Getenv("PROGRAM")}}}
	try(j.Run())
}

// session is a shell with job control. SIGUSR1 moves its job to the foreground of the terminal and continues it,
// SIGUSR2 sends it SIGUSR1. It prints each state of the job, and of the ranks if they are stopped.
func session() {
	self, err := os.Executable()
	try(err)
	signal.Ignore(syscall.SIGTTOU)
	cmd := exec.Command(self, "rank", "launcher")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	try(cmd.Start())
	pid := cmd.Process.Pid
	go func() {
		for s := range signals {
			if s == syscall.SIGUSR2 {
				try(syscall.Kill(pid, syscall.SIGUSR1))
				continue
			}
			try(unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, pid))
			try(syscall.Kill(pid, syscall.SIGCONT)) // before the test's next key: SIGCONT discards a pending SIGTSTP
			fmt.Println("foreground")
		}
	}()
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err == syscall.EINTR {
			continue
		}
		if !status.Stopped() {
			fmt.Printf("exit code %d\n", status.ExitStatus())
			return
		}
		for stopped(pid) < 2 {
		}
		fmt.Println("2 ranks are stopped")
	}
}

// stopped returns the number of stopped children of a process.
func stopped(parent int) (n int) {
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	try(err)
	for _, name := range all {
		text, _ := os.ReadFile(name) // of a process that has exited meanwhile
		if _, rest, ok := strings.Cut(string(text), ") "); ok && strings.HasPrefix(rest, fmt.Sprintf("T %d ", parent)) {
			n++
		}
	}
	return n
}

// onTerminal runs a program as two ranks in a session on a new terminal. The returned function waits for a line that
// contains a text.
func onTerminal(t *testing.T, program string) (tty *os.File, shell *os.Process, until func(text string)) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	tty = os.NewFile(uintptr(fd), "terminal")
	t.Cleanup(func() { tty.Close() })
	if err := tty.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "rank", "session")
	cmd.Env = append(os.Environ(), "PROGRAM="+program)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = other, other, other
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(tty)
	return tty, cmd.Process, func(text string) {
		t.Helper()
		for line := ""; !strings.Contains(line, text); {
			part, err := lines.ReadString(text[len(text)-1])
			if line += part; err != nil {
				t.Fatalf("%v, after %q", err, line)
			}
		}
	}
}

// TestBackground: a job in the background of a terminal is not stopped, and reads once it is in the foreground.
func TestBackground(t *testing.T) {
	tty, shell, until := onTerminal(t, "prompt")
	until("number? ")
	until("number? ")
	_ = shell.Signal(syscall.SIGUSR1)
	until("foreground")
	fmt.Fprintf(tty, "hello\n")
	until("hello") // the terminal's echo
	until("hello") // rank 0
	fmt.Fprint(tty, "\x04")
	until("exit code 0")
}

// TestSuspend: Ctrl-Z stops the ranks as well, and SIGCONT continues them.
func TestSuspend(t *testing.T) {
	tty, shell, until := onTerminal(t, "interrupted")
	until("ready")
	until("ready")
	_ = shell.Signal(syscall.SIGUSR1)
	until("foreground")
	fmt.Fprint(tty, "\x1a")
	until("2 ranks are stopped")
	_ = shell.Signal(syscall.SIGUSR1)
	until("foreground")
	_ = shell.Signal(syscall.SIGUSR2)
	until("user defined signal 1")
	until("user defined signal 1")
	until("exit code 0")
}
