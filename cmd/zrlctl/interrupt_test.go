package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// TestInterrupted: a command that a signal ends has the exit code that a shell would report, and the error of an
// interrupted send states what is unknown. A command that is meant to run until it is interrupted succeeds.
func TestInterrupted(t *testing.T) {
	socket := startDaemon(t)
	// waits returns a function that returns once rank 0 is waiting for peer.
	waits := func(peer int) func(*wakingWriter) {
		return func(*wakingWriter) {
			client := control.NewClient(socket)
			defer client.Close()
			for t.Context().Err() == nil {
				s, err := client.Status(t.Context())
				if err != nil {
					return
				}
				for _, p := range s.Ranks[0].Engine.Peers {
					if p.Rank == peer && (p.Sending != nil || p.Receiving != nil) {
						return
					}
				}
			}
		}
	}
	for _, tt := range []struct {
		args   string
		signal os.Signal
		begun  func(*wakingWriter)
		code   int
		stderr string
	}{
		{"send 4 --words 1 --timeout 0", syscall.SIGINT, waits(4), 130,
			"rank 4 keeps the SEND_REQUEST if it has received it"},
		{"recv 1 --timeout 0", syscall.SIGTERM, waits(1), 143, "cancelled by its caller"},
		{"ping 3 --timeout 0", syscall.SIGINT, waits(3), 130, "the daemon continues an open round trip"},
		{"top", syscall.SIGINT, func(w *wakingWriter) { <-w.written }, exitOK, ""},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var errs bytes.Buffer
		out := &wakingWriter{written: make(chan struct{}, 1)}
		go func() {
			tt.begun(out)
			cancel(&interruptedError{tt.signal})
		}()
		code := run(ctx, strings.Fields("--socket "+socket+" "+tt.args), strings.NewReader(""), out, &errs)
		cancel(nil)
		if code != tt.code || !strings.Contains(errs.String(), tt.stderr) {
			t.Errorf("%s: exit code %d, %q", tt.args, code, errs.String())
		}
	}
}

// wakingWriter is an output that signals its first write.
type wakingWriter struct{ written chan struct{} }

func (w *wakingWriter) Write(b []byte) (int, error) {
	select {
	case w.written <- struct{}{}:
	default:
	}
	return len(b), nil
}
