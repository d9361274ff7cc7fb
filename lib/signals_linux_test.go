package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSignals checks that signal handlers without an alternate stack run while a program sends messages, for its own
// signals, 1 kHz timers and signals from other processes.
func TestSignals(t *testing.T) {
	dir := builtLibrary(t)
	for _, abi := range []string{"standard", "mpich"} {
		program := compile(t, dir, abi, "signals.c")
		for _, mode := range []string{"usr1", "alrm", "prof", "late", "foreign"} {
			t.Run(abi+"/"+mode, func(t *testing.T) {
				out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "-n", "2", program, mode)
				if err != nil || strings.Count(out, "ok\n") != 2 {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
		t.Run(abi+"/outside", func(t *testing.T) { signalRanks(t, dir, program) })
	}
}

// signalRanks sends SIGUSR1 to the ranks of a job until the job ends.
func signalRanks(t *testing.T, dir, program string) {
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "zrlctl"), "run", "-n", "2", program, "outside", "300")
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"))
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	var ranks []int
	for range 2 {
		var pid int
		if _, err := fmt.Fscanf(lines, "process %d\n", &pid); err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, pid)
	}
	text := make(chan string, 1)
	go func() {
		rest, _ := io.ReadAll(lines)
		text <- string(rest)
	}()
	for {
		select {
		case rest := <-text:
			if err := c.Wait(); err != nil || strings.Count(rest, "ok\n") != 2 {
				t.Errorf("%v\n%s", err, rest)
			}
			return
		default:
		}
		for _, pid := range ranks {
			_ = unix.Kill(pid, unix.SIGUSR1) // the process may have exited
		}
	}
}
