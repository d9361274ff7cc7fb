package hangs_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// envSteps holds the steps of a process of the test binary that runs steps instead of tests, and envHost the number of
// its host. When the process is ready, it waits until the file named by envGo exists.
const (
	envSteps = "ZRLMPI_TEST_STEPS"
	envHost  = "ZRLMPI_TEST_HOST"
	envGo    = "ZRLMPI_TEST_GO"
)

// runSteps is the Go version of testdata/steps.c.
func runSteps(steps []string) error {
	ctx := context.Background()
	world, err := job.Init(ctx)
	if err != nil {
		return err
	}
	comm := world
	for _, step := range steps {
		var call string
		var a, b, n int
		_, _ = fmt.Sscan(step, &call, &a, &b, &n) // steps may have fewer than three numbers
		out := func(n int) []int32 { return make([]int32, n) }
		in := out
		switch call {
		case "send":
			err = mpi.Send(ctx, comm, out(n), a, b)
		case "floats":
			err = mpi.Send(ctx, comm, make([]float32, n), a, b)
		case "ssend":
			err = mpi.Ssend(ctx, comm, out(n), a, b)
		case "isend":
			_, err = mpi.Isend(comm, out(n), a, b)
		case "recv":
			_, err = mpi.Recv(ctx, comm, in(n), a, b)
		case "irecv":
			_, err = mpi.Irecv(comm, in(n), a, b)
		case "try":
			_, _ = mpi.Recv(ctx, comm, in(n), a, b)
		case "allreduce":
			err = mpi.Allreduce(ctx, comm, out(a), in(a), mpi.Sum)
		case "scan":
			err = mpi.Scan(ctx, comm, out(a), in(a), mpi.Sum)
		case "reduce":
			err = mpi.Reduce(ctx, comm, out(b), in(b), mpi.Sum, a)
		case "bcast":
			err = mpi.Bcast(ctx, comm, in(b), a)
		case "barrier":
			err = mpi.Barrier(ctx, comm)
		case "dup":
			comm, err = world.Dup(ctx)
		case "world":
			comm = world
		case "ready":
			fmt.Println("ready", os.Getenv(envHost), os.Getpid())
			for _, err := os.Stat(os.Getenv(envGo)); err != nil; _, err = os.Stat(os.Getenv(envGo)) {
				time.Sleep(10 * time.Millisecond)
			}
		case "exit":
			os.Exit(0)
		case "compute":
			select {}
		default:
			err = fmt.Errorf("no step %q", step)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return world.Finalize(ctx)
}
