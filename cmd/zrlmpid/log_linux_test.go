package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// stuckPipe returns the writing end of a full pipe from which no process reads.
func stuckPipe(t *testing.T) *os.File {
	t.Helper()
	r, w := pipe(t)
	size, err := unix.FcntlInt(r.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	return w
}

// closedPipe returns the writing end of a pipe whose reading end is closed.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	r, w := pipe(t)
	r.Close()
	return w
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

// fullDevice returns a file on which every write fails.
func fullDevice(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestOutputCannotBeWritten: the daemon exchanges messages, reloads its configuration and ends on SIGTERM even if it
// cannot write its log and standard output.
func TestOutputCannotBeWritten(t *testing.T) {
	const stopTimeout = 10 * time.Second
	program := build(t)
	for _, tt := range []struct {
		name   string
		output func(t *testing.T) *os.File
		// fails is true if a write fails immediately. Its line is then lost.
		fails bool
	}{
		{"stuck pipe", stuckPipe, false},
		{"closed pipe", closedPipe, true},
		{"full device", fullDevice, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, _, socket := testConfig(t)
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, "-log-level", "debug", "-config",
				file(t, "z.yaml", fmt.Sprintf("stop_timeout: %v\n%s", stopTimeout, text)))
			output := tt.output(t)
			cmd.Stdout, cmd.Stderr = output, output
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			client := control.NewClient(socket)
			defer client.Close()
			// until calls try until it succeeds.
			until := func(what string, try func() error) {
				t.Helper()
				for {
					err := try()
					if err == nil {
						return
					}
					select {
					case end := <-ended:
						t.Fatalf("%s: %v; the daemon exited: %v", what, err, end)
					case <-ctx.Done():
						t.Fatalf("%s: %v", what, err)
					case <-time.After(10 * time.Millisecond):
					}
				}
			}
			until("reload", func() error { // the daemon refuses it until it is ready
				_, err := client.Reload(ctx)
				return err
			})
			if err := client.Ping(ctx,
				control.PingRequest{From: control.AnyRank, To: 1, Words: 100, Count: 10, Datatype: "int",
					Timeout: "10s"},
				func(trip control.Trip) error {
					if !trip.Verified {
						return fmt.Errorf("%+v", trip)
					}
					return nil
				}); err != nil {
				t.Fatal(err)
			}
			if tt.fails {
				until("lost lines", func() error {
					s, err := client.Status(ctx)
					if err == nil && s.LostLogLines == 0 {
						err = errors.New("no line is counted")
					}
					return err
				})
			}
			signalled := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Errorf("after SIGTERM: %v", err)
			}
			if took := time.Since(signalled); took > stopTimeout {
				t.Errorf("it ended %v after SIGTERM, with a stop_timeout of %v", took, stopTimeout)
			}
		})
	}
}

// TestAnswerCannotBeWritten: a command fails if it cannot write the output that the user requested.
func TestAnswerCannotBeWritten(t *testing.T) {
	text, _, _ := testConfig(t)
	path := file(t, "z.yaml", text)
	for _, args := range [][]string{{"-version"}, {"-config", path, "-check-config"},
		{"-config", path, "-print-config"}} {
		var stderr bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), fullDevice(t), &stderr)
		if code != exitFailure ||
			stderr.String() != "zrlmpid: standard output: write /dev/full: no space left on device\n" {
			t.Errorf("%v: %d, %q", args, code, &stderr)
		}
	}
}
