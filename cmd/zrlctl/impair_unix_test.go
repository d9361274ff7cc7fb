//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestImpairReports: with SIGUSR1 or -v, the command prints reports and continues.
func TestImpairReports(t *testing.T) {
	for _, flag := range []string{"--verbose", "--verbose=false"} {
		cfg, _ := impairFiles(t)
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		ended := make(chan int, 1)
		go func() {
			ended <- run(ctx, []string{"impair", cfg, flag}, nil, w, os.Stderr)
			w.Close()
		}()
		reports := 0
		for in := bufio.NewScanner(r); in.Scan(); {
			switch {
			case strings.HasPrefix(in.Text(), "ready: udp"):
				if flag != "--verbose" {
					// The command has already installed its handler, and no other handler exists in this process.
					if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
						t.Fatal(err)
					}
				}
			case strings.Contains(in.Text(), "all  all"):
				reports++
				cancel()
			}
		}
		cancel()
		if code := <-ended; code != exitOK || reports != 2 {
			t.Errorf("%s: %d reports, exit code %d", flag, reports, code)
		}
	}
}
