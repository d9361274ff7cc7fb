package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"
)

// limited returns a command that runs another command with a limit set by ulimit.
func limited(flag string, limit int, command ...string) []string {
	return append([]string{"sh", "-c", fmt.Sprintf(`ulimit %s %d && exec "$@"`, flag, limit), "sh"}, command...)
}

// TestLimitedAddressSpace checks that a program with a small address space either runs, or prints one line with the
// size that it needs.
func TestLimitedAddressSpace(t *testing.T) {
	dir := builtLibrary(t)
	for _, abi := range []string{"standard", "mpich"} {
		program := compile(t, dir, abi, "small.c")
		for _, kib := range []int{700_000, 850_000} {
			command := limited("-v", kib, program)
			out, err := runWithLibrary(t, dir, nil, command[0], command[1:]...)
			want := fmt.Sprintf("zrlmpi: the address space of this process is limited to %d KiB, and the MPI library "+
				"needs ", kib)
			if err == nil || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
				t.Errorf("%s, %d KiB: %v\n%s", abi, kib, err, out)
			}
		}
		// From the minimum size where all of Go's reservations are reduced, in the steps of these reservations.
		for _, kib := range []int{1_000_000, 1_100_000, 1_200_000, 1_300_000, 1_400_000, 1_466_000, 1_700_000} {
			command := limited("-v", kib, program)
			if out, err := runWithLibrary(t, dir, nil, command[0], command[1:]...); err != nil ||
				out != "rank 0 of 1: ok\n" {
				t.Errorf("%s, %d KiB: %v\n%s", abi, kib, err, out)
			}
		}
		for _, kib := range []int{1_000_000, 1_500_000, 1_700_000, 2_000_000} {
			command := limited("-v", kib, filepath.Join(dir, "zrlctl"), "run", "-n", "2", program)
			if out, err := runWithLibrary(t, dir, nil, command[0], command[1:]...); err != nil ||
				sortedLines(out) != "rank 0 of 2: ok\nrank 1 of 2: ok\n" {
				t.Errorf("%s, %d KiB, 2 ranks: %v\n%s", abi, kib, err, out)
			}
		}
	}
}

// TestLimitedDescriptors checks that a job with few descriptors runs, or ends with an error that names them.
func TestLimitedDescriptors(t *testing.T) {
	dir := builtLibrary(t)
	program := compile(t, dir, "standard", "small.c")
	ran, failed := 0, 0
	for n := 8; n <= 36; n += 2 {
		command := limited("-n", n, filepath.Join(dir, "zrlctl"), "run", "-n", "2", program)
		out, err := runWithLibrary(t, dir, nil, command[0], command[1:]...)
		switch {
		case err == nil:
			ran++
		case strings.Contains(out, "file descriptors is reached"):
			failed++
		default:
			t.Errorf("%d descriptors: %v\n%s", n, err, out)
		}
	}
	if ran == 0 || failed == 0 {
		t.Errorf("%d jobs ran, %d failed", ran, failed)
	}
}

// TestLimitedAttached checks that a program with a small address space or few descriptors attaches to a daemon, or ends
// with one line that names the limit.
func TestLimitedAttached(t *testing.T) {
	dir := builtLibrary(t)
	program := compile(t, dir, "standard", "small.c")
	daemon := filepath.Join(dir, "zrlmpid")
	if out, err := exec.Command("go", "build", "-o", daemon, "../cmd/zrlmpid").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	folder := t.TempDir()
	config := fmt.Sprintf("control: {socket: %s/c.sock}\nhttp: {listen: \"\"}\nranks:\n- {rank: 0, address: %s1, "+
		"run: host}\n",
		folder, loopback.Network(t))
	background(t, nil, daemon, "-config", writeFile(t, "z.yaml", config))
	status := exec.Command(filepath.Join(dir, "zrlctl"), "status", "--wait", "20s", "--socket", folder+"/c.sock")
	if out, err := status.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	env := []string{"ZRLMPI_SOCKET=" + folder + "/c-attach.sock"}
	run := func(flag string, limit int, named string) {
		t.Helper()
		command := limited(flag, limit, program)
		out, err := runWithLibrary(t, dir, env, command[0], command[1:]...)
		failed := err != nil && strings.Contains(out, named) && strings.Count(out, "\n") == 1
		if !failed && (err != nil || out != "rank 0 of 1: ok\n") {
			t.Errorf("%s %d: %v\n%s", flag, limit, err, out)
		}
	}
	for _, kib := range []int{700_000, 900_000, 1_000_000, 1_200_000, 1_300_000, 1_500_000, 2_000_000} {
		run("-v", kib, "the address space of this process is limited to")
	}
	for n := 5; n <= 14; n++ {
		run("-n", n, "file descriptors is reached: raise it (ulimit -n)")
	}
}

// TestSendToFinalized checks that a send to a rank in MPI_Finalize ends the job with an error that names the call.
func TestSendToFinalized(t *testing.T) {
	dir := builtLibrary(t)
	program := compile(t, dir, "standard", "small.c")
	for _, mode := range []string{"finalize", "blocked"} {
		out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "-n", "2", program, mode)
		if err == nil || !strings.Contains(out, "rank 1 has called MPI_Finalize") {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
}
