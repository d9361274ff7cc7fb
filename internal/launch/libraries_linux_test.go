package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// worldProgram prints the number of ranks. With an argument, it waits for the end of its input.
const worldProgram = `#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
	int size;
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	printf("one of %d\n", size);
	fflush(stdout);
	if (argc > 1) for (;;) getchar();
	MPI_Finalize();
	return 0;
}
`

// compile compiles worldProgram.
func compile(t *testing.T, compiler, packages string) (program string) {
	t.Helper()
	cc := needs.Program(t, "programs of other MPI libraries", compiler, packages)
	dir := t.TempDir()
	program = filepath.Join(dir, "world")
	if err := os.WriteFile(program+".c", []byte(worldProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestOpenMPI: programs of Open MPI must not run silently as several worlds of one rank, whether they exited, are
// running, or were started by a script.
func TestOpenMPI(t *testing.T) {
	program := compile(t, "mpicc.openmpi", "libopenmpi-dev")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+program+" on\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{program}, {program, "on"}, {script}} {
		out := &locked{news: make(chan struct{}, 1)}
		j := &Job{Programs: []Program{{Ranks: 2, Args: args}}, Stdout: out, Stderr: os.Stderr}
		late := make(chan time.Time)
		ended := make(chan error, 1)
		go func() { ended <- j.run(late, func() {}) }()
		if len(args) > 1 || args[0] == script {
			out.until("one of 1", 2)
			late <- time.Time{}
		}
		err := <-ended
		if ExitCode(err) != 1 ||
			!strings.Contains(err.Error(), "("+args[0]+") has not contacted its launcher, and uses ") ||
			!strings.Contains(err.Error(), "build the program with zrlmpicc") {
			t.Errorf("%q: %v", args, err)
		}
	}
	// A single rank is valid.
	out := &locked{news: make(chan struct{}, 1)}
	j := &Job{Programs: []Program{{Ranks: 1, Args: []string{program}}}, Stdout: out, Stderr: os.Stderr}
	if err := j.Run(); err != nil {
		t.Error(err)
	}
}

// TestVerbose: the MPI library found by the dynamic linker is reported for each program.
func TestVerbose(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := compile(t, "mpicc.mpich", "libmpich-dev")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{program}, "/libmpich.so"},
		{[]string{self, "rank", "exchange"}, " (" + self + ") uses no shared MPI library"},
	} {
		var said []string
		j := &Job{
			Programs: []Program{{Ranks: 2, Args: tt.args}}, Stdout: new(locked), Stderr: os.Stderr,
			Verbose: func(text string) { said = append(said, text) },
		}
		if err := j.Run(); err != nil {
			t.Fatal(err)
		}
		if len(said) != 1 || !strings.Contains(said[0], " ("+tt.args[0]+") uses ") ||
			!strings.Contains(said[0], tt.want) {
			t.Errorf("%q, want %q", said, tt.want)
		}
	}
}
