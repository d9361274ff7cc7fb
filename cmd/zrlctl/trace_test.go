package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrace: the growing trace of a daemon contains messages with their phases, and queue lengths that show a pending
// send. It ends when the user interrupts the command.
func TestTrace(t *testing.T) {
	socket := startDaemon(t)
	file := filepath.Join(t.TempDir(), "file.perfetto-trace")
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var out, errs strings.Builder
	go func() { ended <- run(ctx, []string{"trace", "-o", file, "--socket", socket}, nil, &out, &errs) }()
	oneSend := []byte{0xf0, 1, 1} // field 30 is the value of a counter
	for text := []byte(nil); !bytes.Contains(text, []byte("Send to rank 4, 4 bytes, communicator 0")) ||
		!bytes.Contains(text, []byte("SEND_REQUEST to CLEAR_TO_SEND")) ||
		!bytes.Contains(text, []byte("sends in flight")) ||
		!bytes.Contains(text, oneSend); {
		if code, _, stderr := zrlctl(t, "", "ping", "1", "--socket", socket); code != exitOK {
			t.Fatal(stderr)
		}
		if code, _, stderr := zrlctl(t, "", "send", "4", "--words", "1", "--timeout", "100ms", "--socket",
			socket); code != exitTimeout {
			t.Fatal(stderr)
		}
		if len(ended) > 0 {
			t.Fatal(out.String(), errs.String())
		}
		text, _ = os.ReadFile(file) // it may not exist yet
	}
	interrupt()
	if code := <-ended; code != exitOK || !strings.Contains(out.String(), "; open it with https://ui.perfetto.dev") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

func TestTraceCommand(t *testing.T) {
	socket := startDaemon(t)
	file := filepath.Join(t.TempDir(), "file")
	for _, tt := range []struct {
		args, stdout, stderr string
		code                 int
	}{
		{args: "trace -o " + file + " --for 50ms --json", stdout: `"messages": 0`},
		{args: "trace -o - --for 50ms", stdout: "posted receives"},
		{args: "trace", code: exitUsage, stderr: "--output is missing"},
		{args: "trace --for -1s -o " + file, code: exitUsage, stderr: "--for -1s"},
		{args: "trace -o /no/such/folder/file", code: exitFailure, stderr: "/no/such/folder/file"},
		{args: "trace -o /dev/full", code: exitFailure, stderr: "no space left"},
	} {
		code, stdout, stderr := zrlctl(t, "", append([]string{"--socket", socket}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%s: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
}

// TestCaptureFollowHasQueues: a recording made with --follow contains queue lengths, and analyze writes them to the
// trace.
func TestCaptureFollowHasQueues(t *testing.T) {
	socket := startDaemon(t)
	dir := t.TempDir()
	file, trace := filepath.Join(dir, "file.pcapng"), filepath.Join(dir, "file.perfetto-trace")
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var out, errs strings.Builder
	go func() {
		ended <- run(ctx, []string{"capture", "--follow", "-o", file, "--socket", socket}, nil, &out, &errs)
	}()
	for text := []byte(nil); !bytes.Contains(text, []byte("rank 0: posted 0, unexpected 0, sends 0")) ||
		packetsIn(file) < 8; {
		if code, _, stderr := zrlctl(t, "", "ping", "1", "--socket", socket); code != exitOK {
			t.Fatal(stderr)
		}
		if len(ended) > 0 {
			t.Fatal(out.String(), errs.String())
		}
		text, _ = os.ReadFile(file)
	}
	interrupt()
	if code := <-ended; code != exitOK {
		t.Fatal(code, errs.String())
	}
	if code, _, stderr := zrlctl(t, "", "analyze", file, "--perfetto", trace); code > exitFailure {
		t.Fatal(code, stderr)
	}
	if text, err := os.ReadFile(trace); err != nil || !bytes.Contains(text, []byte("unexpected messages")) {
		t.Errorf("the trace has no counters of queues, %v", err)
	}
}
