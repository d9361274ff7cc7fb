package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The exit codes of Main.
const (
	exitOK      = 0
	exitFailure = 1 // a rank returned an error
	exitStart   = 2 // no rank was started
)

// Main runs a program with Run and exits. The exit code is 0 if no rank returned an error, 1 if a rank did, and 2 if
// the ranks could not be started, for instance because the environment is wrong or no daemon answers. It prints the
// error to standard error. SIGINT and SIGTERM cancel the context of the program, so that blocking calls return an error
// with the reason for their wait; a second signal terminates the process at once.
//
//	func main() { job.Main(4, program) }
//
// Main does not parse flags and arguments.
func Main(n int, program func(ctx context.Context, world *mpi.Comm) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal terminates the process at once
	err := Run(ctx, n, program)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	}
	os.Exit(exitCode(err))
}

// Run runs a program as one rank of a cluster or as all ranks of one, and returns the first error of a rank.
//
// If ZRLMPI_SOCKET, ZRLMPI_CONFIG or ZRLMPI_RANK is set, or a launcher such as zrlctl run or MPICH's mpiexec has
// started the program, the program is the one rank that Init opens, and the world has the size of the cluster.
// Otherwise it runs n times in this process, as n ranks of the extended profile, each in a goroutine with its own
// world; the ranks share the variables outside of the function.
//
// The context of the ranks derives from ctx. It is also cancelled when a rank of this process returns an error, so that
// the other ranks do not wait for it forever. When all ranks have returned, Run calls Finalize for each that has not
// called it. If ctx is done before Finalize succeeds, Run returns the error of ctx.
func Run(ctx context.Context, n int, program func(ctx context.Context, world *mpi.Comm) error) error {
	if program == nil {
		return &startError{errorf(mpi.ErrArg, "Run", "the program is nil")}
	}
	worlds, err := openWorlds(ctx, n)
	if err != nil {
		return &startError{err}
	}
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var once sync.Once
	var first error
	err = forEachWorld(worlds, func(world *mpi.Comm) error {
		err := program(running, world)
		if err != nil {
			err = fmt.Errorf("rank %d: %w", world.Rank(), err)
			once.Do(func() { first = err })
			fail(err)
		}
		return err
	})
	if err != nil {
		_ = finalize(running, worlds) // running is cancelled, so this aborts
		return first
	}
	if err := finalize(ctx, worlds); err != nil {
		return cmp.Or(ctxerr.Cause(ctx), err)
	}
	return nil
}

// finalize calls Finalize for all ranks of this process that have not called it themselves.
func finalize(ctx context.Context, worlds []*mpi.Comm) error {
	return forEachWorld(worlds, func(world *mpi.Comm) error {
		if world.Finalized() {
			return nil
		}
		return world.Finalize(ctx)
	})
}

// forEachWorld calls the function do for all world communicators concurrently and joins the errors.
func forEachWorld(worlds []*mpi.Comm, do func(*mpi.Comm) error) error {
	errs := make([]error, len(worlds))
	var calls sync.WaitGroup
	for i, world := range worlds {
		calls.Go(func() { errs[i] = do(world) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// openWorlds returns the world communicators of the ranks in this process.
func openWorlds(ctx context.Context, n int) ([]*mpi.Comm, error) {
	for _, name := range []string{EnvSocket, EnvConfig, EnvRank, pmi.EnvFD} {
		if os.Getenv(name) != "" {
			world, err := Init(ctx)
			return []*mpi.Comm{world}, err
		}
	}
	devices, err := node.StartLocal(n, protocol.Extended)
	if err != nil {
		return nil, errorf(mpi.ErrOther, "Run", "%w", err)
	}
	return newWorlds(ctx, devices)
}

// newWorlds returns the world communicators of devices. If New rejects one of the devices, newWorlds closes all of
// them.
func newWorlds(ctx context.Context, devices []mpe.Device) ([]*mpi.Comm, error) {
	worlds := make([]*mpi.Comm, len(devices))
	for i, d := range devices {
		var err error
		if worlds[i], err = mpi.New(d); err != nil {
			for _, d := range devices {
				_ = d.Close(ctx) // New's error is reported instead
			}
			return nil, err
		}
	}
	return worlds, nil
}

// startError is an error that occurred before any rank was running.
type startError struct{ err error }

// Error returns the text of the cause.
func (e *startError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *startError) Unwrap() error { return e.err }

// exitCode returns the exit code with which a program reports a result of Run.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if _, ok := errors.AsType[*startError](err); ok {
		return exitStart
	}
	return exitFailure
}
