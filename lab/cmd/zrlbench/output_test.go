package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
)

// fullDisk is a writer that accepts a limited number of bytes.
type fullDisk struct{ room int }

func (f *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	if n < len(b) {
		return n, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	}
	return n, nil
}

// TestFullDisk checks that a command fails if its output is incomplete, and that it reports the reason once.
func TestFullDisk(t *testing.T) {
	for _, room := range []int{0, 10} {
		for _, args := range []string{"--help", "version", "version --json", "completion bash", "tune show",
			"tune show --json", "tune --help", "show --help"} {
			var errs bytes.Buffer
			code := run(t.Context(), strings.Fields(args), strings.NewReader(""), &fullDisk{room}, &errs)
			if code == exitOK || strings.Count(errs.String(),
				"zrlbench: write /dev/stdout: no space left on device") != 1 {
				t.Errorf("zrlbench %s, space for %d bytes: exit code %d, %q", args, room, code, errs.String())
			}
		}
	}
}

// TestFullFile checks that results are printed even if they cannot be saved, and that this error is reported.
func TestFullFile(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("NO TEST OF FILES ON A FULL DISK: ", err)
	}
	code, stdout, stderr := zrlbench(t, "pingpong", "--quick", "--only", "extended-udp", "--steps", "4:2", "--save",
		full)
	if code != exitFailure || !strings.Contains(stdout, "extended-udp") ||
		strings.Count(stderr, "write /dev/full: no space left on device") != 1 {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}
