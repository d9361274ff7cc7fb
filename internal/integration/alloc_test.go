//go:build !race

// The race detector allocates memory itself, and makes pools drop items at random.

package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// TestNoAllocations checks that messages do not allocate after a warm-up, on any path: over every transport and
// profile, short and long, one at a time and with many in flight, and with persistent requests. It counts the
// allocations of both ranks.
func TestNoAllocations(t *testing.T) {
	for name, link := range map[string]string{
		"cloudfpga":    "profile: cloudfpga",
		"v0.9":         "profile: v0.9",
		"extended UDP": "profile: extended, transport: udp",
		"extended shm": "profile: extended, transport: shm",
		"extended TCP": "profile: extended, transport: tcp",
	} {
		t.Run(name, func(t *testing.T) {
			devices := inProcess(link)(t, 2)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			world, done := make([]*mpi.Comm, 2), make(chan error, 1)
			for rank, d := range devices {
				c, err := mpi.New(d)
				if err != nil {
					t.Fatal(err)
				}
				world[rank] = c
			}
			for _, words := range []int{1, 1000, 10_000, 100_000} {
				for pattern, play := range map[string]func(context.Context, *mpi.Comm, []int32) func() error{
					"blocking": blocking, "window": window, "persistent": persistent, "collectives": together,
				} {
					if pattern == "collectives" && words > 1000 {
						continue // the schedules of long calls are built during execution
					}
					near, far := play(ctx, world[0], make([]int32, words)), play(ctx, world[1], make([]int32, words))
					const rounds = 20
					begin := make(chan int)
					go func() {
						for n := range begin {
							for range n {
								if err := far(); err != nil {
									done <- err
									return
								}
							}
						}
						done <- nil
					}()
					round := func() {
						begin <- rounds
						for range rounds {
							if err := near(); err != nil {
								t.Error(err)
							}
						}
					}
					round() // warm up
					if n := testing.AllocsPerRun(5, round); n >= rounds {
						t.Errorf("%d words, %s: %v allocations in %d rounds", words, pattern, n, rounds)
					} else if n > 0 {
						t.Logf("%d words, %s: %v allocations in %d rounds", words, pattern, n, rounds)
					}
					close(begin)
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// blocking sends a message and receives one back.
func blocking(ctx context.Context, c *mpi.Comm, buf []int32) func() error {
	other := 1 - c.Rank()
	return func() error {
		if c.Rank() == 0 {
			if err := mpi.Send(ctx, c, buf, other, 1); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(ctx, c, buf, other, 1); err != nil {
			return err
		}
		if c.Rank() == 1 {
			return mpi.Send(ctx, c, buf, other, 1)
		}
		return nil
	}
}

// window keeps several messages in flight in both directions.
func window(ctx context.Context, c *mpi.Comm, buf []int32) func() error {
	const inFlight = 8
	other := 1 - c.Rank()
	in, requests := make([][]int32, inFlight), make([]mpi.Request, 2*inFlight)
	for i := range in {
		in[i] = make([]int32, len(buf))
	}
	return func() (err error) {
		for i := range in {
			if requests[i], err = mpi.Irecv(c, in[i], other, 2); err != nil {
				return err
			}
		}
		for i := range in {
			if requests[inFlight+i], err = mpi.Isend(c, buf, other, 2); err != nil {
				return err
			}
		}
		return mpi.Waitall(ctx, requests, nil)
	}
}

// together makes collective calls, some with each rank as the root.
func together(ctx context.Context, c *mpi.Comm, buf []int32) func() error {
	sum := make([]int32, len(buf))
	return func() error {
		for root := range 2 {
			if err := mpi.Bcast(ctx, c, buf, root); err != nil {
				return err
			}
			if err := mpi.Reduce(ctx, c, buf, sum, mpi.Max, root); err != nil {
				return err
			}
		}
		if err := mpi.Allreduce(ctx, c, buf, sum, mpi.Max); err != nil {
			return err
		}
		return mpi.Barrier(ctx, c)
	}
}

// persistent is like blocking, with persistent requests.
func persistent(ctx context.Context, c *mpi.Comm, buf []int32) func() error {
	other := 1 - c.Rank()
	send, err := mpi.SendInit(c, buf, other, 3)
	if err != nil {
		return func() error { return err }
	}
	recv, err := mpi.RecvInit(c, buf, other, 3)
	if err != nil {
		return func() error { return err }
	}
	first, second := send, recv
	if c.Rank() == 1 {
		first, second = recv, send
	}
	return func() error {
		for _, r := range []mpi.Request{first, second} {
			if err := r.Start(); err != nil {
				return err
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}
