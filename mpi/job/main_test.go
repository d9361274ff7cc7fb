package job_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

func TestRun(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		var sum, ran atomic.Int64
		err := job.Run(t.Context(), n, func(ctx context.Context, world *mpi.Comm) error {
			all := make([]int64, world.Size())
			if err := mpi.Allgather(ctx, world, []int64{int64(world.Rank())}, all); err != nil {
				return err
			}
			ran.Add(1)
			for _, rank := range all {
				sum.Add(rank)
			}
			return nil
		})
		if want := int64(n * n * (n - 1) / 2); err != nil || ran.Load() != int64(n) || sum.Load() != want {
			t.Errorf("%d ranks: %v; %d ran, their sums are %d, want %d", n, err, ran.Load(), sum.Load(), want)
		}
	}
}

// TestRunFails checks that a failing rank ends all ranks, and that Run returns its error.
func TestRunFails(t *testing.T) {
	broken := errors.New("out of order")
	var ended atomic.Int32
	err := job.Run(t.Context(), 3, func(ctx context.Context, world *mpi.Comm) error {
		if world.Rank() == 2 {
			return broken
		}
		_, err := mpi.Recv(ctx, world, make([]int32, 1), 2, 0)
		if errors.Is(err, broken) {
			ended.Add(1)
		}
		return err
	})
	if !errors.Is(err, broken) || err.Error() != "rank 2: out of order" || ended.Load() != 2 {
		t.Errorf("%v; %d other ranks ended because of it", err, ended.Load())
	}
}

// TestRunCancelled checks that cancelling the caller's context ends all ranks, whose errors name the calls that waited.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	err := job.Run(ctx, 1, func(ctx context.Context, world *mpi.Comm) error {
		_, err := mpi.Recv(ctx, world, make([]int32, 1), 0, 0)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "rank 0: mpi: Recv from rank 0") ||
		!strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
}

// TestRunOfMistakes checks errors of the call itself, and that a program may call Finalize.
func TestRunOfMistakes(t *testing.T) {
	if err := job.Run(t.Context(), 2, nil); !errors.Is(err, mpi.ErrArg) {
		t.Error(err)
	}
	if _, err := mpi.New(nil); !errors.Is(err, mpi.ErrArg) {
		t.Error(err)
	}
	if err := job.Run(t.Context(), 2, func(ctx context.Context, world *mpi.Comm) error {
		if world.Rank() == 0 {
			return world.Finalize(ctx)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestRunCancelledInFinalize checks that Run reports the end of the context even if the program ignores it.
func TestRunCancelledInFinalize(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	err := job.Run(ctx, 1, func(_ context.Context, world *mpi.Comm) error {
		const n = 100_000
		if err := world.AttachBuffer(5 * n); err != nil {
			return err
		}
		err := mpi.Bsend(world, make([]int32, n), 0, 0) // no receive is posted
		cancel(enough)
		return err
	})
	if !errors.Is(err, enough) || !errors.Is(err, context.Canceled) || err.Error() != "enough" {
		t.Error(err)
	}
}

// program is the environment variable that makes this test binary run a program with Main.
const program = "ZRLMPI_TEST_MAIN"

func TestMain(m *testing.M) {
	switch os.Getenv(program) {
	case "":
		for _, name := range []string{job.EnvSocket, job.EnvConfig, job.EnvRank, pmi.EnvFD} {
			os.Unsetenv(name) // Run would read it as the description of a cluster
		}
		os.Exit(statetest.Run(m))
	case "ok":
		job.Main(3, func(ctx context.Context, world *mpi.Comm) error { return mpi.Barrier(ctx, world) })
	case "fails":
		job.Main(3, func(_ context.Context, world *mpi.Comm) error {
			if world.Rank() == 1 {
				return errors.New("out of order")
			}
			return nil
		})
	case "no ranks":
		job.Main(0, func(context.Context, *mpi.Comm) error { return nil })
	case "waits":
		job.Main(1, func(ctx context.Context, world *mpi.Comm) error {
			fmt.Println("ready")
			_, err := mpi.Recv(ctx, world, make([]int32, 1), 0, 0)
			return err
		})
	}
}

// runMain returns a command that runs a program in this test binary, and its standard error.
func runMain(t *testing.T, name string, env ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = append(append(os.Environ(), program+"="+name), env...)
	stderr := new(strings.Builder)
	cmd.Stderr = stderr
	return cmd, stderr
}

func TestMainExitCodes(t *testing.T) {
	name := filepath.Base(os.Args[0])
	for _, c := range []struct {
		program string
		env     string
		code    int
		stderr  string
	}{
		{"ok", "", 0, ""},
		{"fails", "", 1, name + ": rank 1: out of order\n"},
		{"no ranks", "", 2, name + ": mpi: Run: MPI_ERR_OTHER: a cluster of 0 ranks: it has 1 to 128\n"},
		{"ok", job.EnvSocket + "=/nowhere/a.sock", 2, name + ": mpi: Init: "},
		{"ok", job.EnvRank + "=0", 2, "neither ZRLMPI_SOCKET nor ZRLMPI_CONFIG is set"},
	} {
		cmd, stderr := runMain(t, c.program, c.env)
		_ = cmd.Run()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(stderr.String(), c.stderr) ||
			c.stderr == "" && stderr.Len() > 0 {
			t.Errorf("%s %s: exit code %d, %q; want %d, %q", c.program, c.env, cmd.ProcessState.ExitCode(), stderr,
				c.code, c.stderr)
		}
	}
}

func TestMainInterrupted(t *testing.T) {
	cmd, stderr := runMain(t, "waits")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "mpi: Recv from rank 0") ||
		!strings.Contains(stderr.String(), "terminated signal received") {
		t.Errorf("exit code %d, %q", cmd.ProcessState.ExitCode(), stderr)
	}
}
