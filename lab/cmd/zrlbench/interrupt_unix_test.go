//go:build unix

package main

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestBenchInterrupted checks that Ctrl-C ends a measurement and all processes that it started.
func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	go func() {
		var out strings.Builder
		code := run(ctx, strings.Fields("pingpong --only attached --steps 4:100000000"), strings.NewReader(""), &out,
			writer)
		writer.Close()
		ended <- strings.Repeat("failed ", code) + out.String()
	}()
	buf := make([]byte, 4096)
	if n, err := reader.Read(buf); err != nil || !strings.Contains(string(buf[:n]), "pingpong, attached") {
		t.Errorf("%v, %q", err, buf[:n])
	}
	cancel()
	if got := <-ended; got != "failed " {
		t.Errorf("%q", got)
	}
	// No child process remains.
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == nil {
		t.Errorf("process %d still runs", pid)
	}
}
