// Command hello makes ranks 0 and 1 send each other their numbers, and likewise ranks 2 and 3. In place of an odd rank,
// a stand-in with kernel echo returns the number of rank 0.
package main

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

func main() { job.Main(4, hello) }

func hello(ctx context.Context, world *mpi.Comm) error {
	me, partner := world.Rank(), world.Rank()^1
	sent, received := []int32{int32(me)}, []int32{-1}
	if _, err := mpi.Sendrecv(ctx, world, sent, partner, 0, received, partner, 0); err != nil {
		return err
	}
	_, err := fmt.Printf("rank %d of %d: rank %d sent %d\n", me, world.Size(), partner, received[0])
	return err
}
