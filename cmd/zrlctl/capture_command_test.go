package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// TestCaptureCommand: a user who was not recording still gets the packets of a failed message, and analyze names the
// cause of the failure.
func TestCaptureCommand(t *testing.T) {
	socket := startDaemon(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "hang.pcapng")
	if code, _, stderr := zrlctl(t, "", "send", "4", "--words", "1", "--timeout", "150ms", "--socket",
		socket); code != exitTimeout {
		t.Fatal(code, stderr)
	}
	for _, tt := range []struct {
		args, stdout, stderr string
		code                 int
	}{
		{args: "capture -o " + file, stdout: ", 1 finding; read it with: zrlctl analyze " + file},
		{args: "analyze " + file, code: exitFailure,
			stdout: "for CLEAR_TO_SEND from rank 4: rank 4 has not posted the matching receive"},
		{args: "capture --json -o " + file, stdout: `"findings": 1`},
		{args: "capture --last 1ns -o " + file, stdout: "0 packets"},
		{args: "capture", code: exitUsage, stderr: "--output is missing"},
		{args: "capture --last -1s -o " + file, code: exitUsage, stderr: "--last -1s"},
		{args: "capture -o /no/such/folder/file", code: exitFailure, stderr: "/no/such/folder/file"},
		{args: "status", stdout: "PROBLEMS\n  1 operation failed, the last one at 20"},
		{args: "status", stdout: "RECENT FAILURES\n  20"},
		{args: "status", stdout: "rank 0: send to rank 4, WAIT_CLEAR: rank 0 has waited "},
	} {
		code, stdout, stderr := zrlctl(t, "", append([]string{"--socket", socket}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%s: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
	stdout := filepath.Join(dir, "stdout")
	_, text, _ := zrlctl(t, "", "capture", "-o", "-", "--socket", socket)
	if err := os.WriteFile(stdout, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "never_cleared: rank 0 has waited") {
		t.Error("no packet has the finding as a comment")
	}
	if code, text, _ := zrlctl(t, "", "decode", stdout); code != exitOK || !strings.Contains(text, "SEND_REQUEST 0→4") {
		t.Errorf("standard output: exit code %d, %q", code, text)
	}
}

// TestCaptureFollow: packets are added to the file as they arrive. The file is complete after the user interrupts the
// command.
func TestCaptureFollow(t *testing.T) {
	socket := startDaemon(t)
	file := filepath.Join(t.TempDir(), "file.pcapng")
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var out, errs strings.Builder
	go func() {
		ended <- run(ctx, []string{"capture", "--follow", "-o", file, "--socket", socket}, nil, &out, &errs)
	}()
	for packetsIn(file) < 8 {
		if code, _, stderr := zrlctl(t, "", "ping", "1", "--socket", socket); code != exitOK {
			t.Fatal(stderr)
		}
		if len(ended) > 0 {
			t.Fatal(out.String(), errs.String())
		}
	}
	interrupt()
	if code := <-ended; code != exitOK || !strings.Contains(out.String(), "; read it with: zrlctl analyze "+file) {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

// packetsIn counts the packets in a recording. The recording may be growing, or not exist yet.
func packetsIn(file string) (n int) {
	src, err := capture.Options{}.OpenFile(file)
	if err != nil {
		return 0
	}
	defer src.Close()
	var u pcapng.Unit
	for src.Next(&u) == nil {
		n++
	}
	return n
}
