package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openPTY returns both ends of a new pseudoterminal.
func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// onTTY is a zrlctl process that runs on a separate terminal.
type onTTY struct {
	t             *testing.T
	cmd           *exec.Cmd
	master, slave *os.File
	before        *term.State

	mu   sync.Mutex
	said bytes.Buffer
	more chan struct{}
}

func startOnTTY(t *testing.T, args ...string) *onTTY {
	t.Helper()
	master, slave := openPTY(t)
	o := &onTTY{t: t, master: master, slave: slave, more: make(chan struct{}, 1)}
	o.resize(100, 30)
	var err error
	if o.before, err = term.GetState(int(slave.Fd())); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*testTimeout)
	t.Cleanup(cancel)
	o.cmd = exec.CommandContext(ctx, self, args...)
	o.cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=")
	o.cmd.Stdin, o.cmd.Stdout, o.cmd.Stderr = slave, slave, slave
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go o.read()
	return o
}

func (o *onTTY) read() {
	buf := make([]byte, 4096)
	for {
		n, err := o.master.Read(buf)
		o.mu.Lock()
		o.said.Write(buf[:n])
		o.mu.Unlock()
		select {
		case o.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (o *onTTY) resize(width, height uint16) {
	o.t.Helper()
	if err := unix.IoctlSetWinsize(int(o.slave.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: height, Col: width}); err != nil {
		o.t.Fatal(err)
	}
}

// until waits for output that matches a regular expression. It starts to search after the previous match.
func (o *onTTY) until(pattern string) string {
	o.t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(testTimeout)
	for {
		o.mu.Lock()
		said := o.said.Bytes()
		if at := re.FindIndex(said); at != nil {
			found := string(said[at[0]:at[1]])
			o.said.Next(at[1])
			o.mu.Unlock()
			return found
		}
		o.mu.Unlock()
		select {
		case <-o.more:
		case <-late:
			o.mu.Lock()
			defer o.mu.Unlock()
			o.t.Fatalf("%s is never shown, but %q", pattern, o.said.Bytes())
		}
	}
}

func (o *onTTY) press(keys string) {
	o.t.Helper()
	if _, err := o.master.WriteString(keys); err != nil {
		o.t.Fatal(err)
	}
}

// end waits for the program to end, and checks that the terminal is restored.
func (o *onTTY) end() {
	o.t.Helper()
	if err := o.cmd.Wait(); err != nil {
		o.t.Errorf("it ended with %v", err)
	}
	o.until(`\x1b\[\?25h\x1b\[\?1049l`)
	after, err := term.GetState(int(o.slave.Fd()))
	if err != nil {
		o.t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+v", after), fmt.Sprintf("%+v", o.before); got != want {
		o.t.Errorf("the terminal is %s, and was %s", got, want)
	}
}

// TestTopOnTerminal: on a real terminal, top draws, adapts to the terminal's size, and reads keys. However it ends, it
// restores the terminal.
func TestTopOnTerminal(t *testing.T) {
	socket := startDaemon(t)
	for name, end := range map[string]func(o *onTTY){
		"q":       func(o *onTTY) { o.press("q") },
		"ctrl-c":  func(o *onTTY) { o.press("\x03") },
		"sigterm": func(o *onTTY) { signalTo(o, syscall.SIGTERM) },
		"sigint":  func(o *onTTY) { signalTo(o, syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			o := startOnTTY(t, "top", "--interval", "100ms", "--socket", socket)
			o.until(`\x1b\[\?1049h\x1b\[\?25l`)
			frame := o.until(`zrlmpid [^\r]*\(local: 4\)(?s).* every 100ms `)
			if n := strings.Count(frame, "\r\n"); n != 29 {
				t.Errorf("%d lines: %q", n+1, frame)
			}
			o.press("/echo")
			o.until(`filter: echo`)
			o.press("\r")
			o.until(`hidden by the filter(?s).*shows keys[^\r]*filter: echo`) // Enter was handled
			o.resize(60, 9)
			const line = `(?:[^\n\x1b]|\x1b\[[0-9;]*[mK])*`
			frame = o.until(`\x1b\[H(?:` + line + `\n){8}` + line + `\x1b\[J`) // exactly nine lines
			if !strings.Contains(frame, "every 100ms") {
				t.Errorf("%q", frame)
			}
			end(o)
			o.end()
		})
	}
}

func signalTo(o *onTTY, s syscall.Signal) {
	if err := o.cmd.Process.Signal(s); err != nil {
		o.t.Error(err)
	}
}

// TestTopSuspends: on Ctrl-Z, top restores the terminal, and switches to the alternate screen again when it continues.
// In this test it continues immediately because there is no shell.
func TestTopSuspends(t *testing.T) {
	o := startOnTTY(t, "top", "--interval", "100ms", "--socket", startDaemon(t))
	o.until(` every 100ms `)
	o.press("\x1a")
	o.until(`\x1b\[\?25h\x1b\[\?1049l`)
	o.until(`\x1b\[\?1049h\x1b\[\?25l(?s).* every 100ms `)
	o.press("q")
	o.end()
}

// TestTopOnDumbTerminal: on a terminal that does not support control sequences, top prints samples one after the other.
func TestTopOnDumbTerminal(t *testing.T) {
	_, slave := openPTY(t)
	t.Setenv("TERM", "dumb")
	if newTTY(slave, slave) != nil {
		t.Error("it would be drawn on")
	}
	t.Setenv("TERM", "xterm")
	if newTTY(slave, slave) == nil || newTTY(strings.NewReader(""), slave) != nil ||
		newTTY(slave, &bytes.Buffer{}) != nil {
		t.Error("terminals are not distinguished from other files")
	}
}
