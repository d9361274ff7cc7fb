// Command ring passes messages around: from rank 0 to rank 1, from each rank to the next, and from the last one back to
// rank 0. A stand-in with kernel ring also passes them on.
package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

const tag = 0

var rounds = flag.Int("rounds", 100, "`number` of messages of each length")

func main() {
	flag.Parse()
	job.Main(4, ring)
}

func ring(ctx context.Context, world *mpi.Comm) error {
	rank, size := world.Rank(), world.Size()
	previous, next := (rank+size-1)%size, (rank+1)%size
	for _, words := range []int{1, 1000, 65536} {
		start := time.Now()
		for i := range *rounds {
			message, back := slices.Repeat([]int32{int32(i + 1)}, words), make([]int32, words)
			if rank == 0 {
				if _, err := mpi.Sendrecv(ctx, world, message, next, tag, back, previous, tag); err != nil {
					return err
				}
				if !slices.Equal(message, back) {
					return fmt.Errorf("message %d of %d words came back from rank %d changed", i, words, previous)
				}
				continue
			}
			if _, err := mpi.Recv(ctx, world, back, previous, tag); err != nil {
				return err
			}
			if err := mpi.Send(ctx, world, back, next, tag); err != nil {
				return err
			}
		}
		if rank == 0 {
			round := time.Since(start) / time.Duration(max(*rounds, 1))
			if _, err := fmt.Printf("%5d words: mean of a round %v, of a hop %v\n", words, round,
				round/time.Duration(size)); err != nil {
				return err
			}
		}
	}
	return nil
}
