package mpi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// A token is passed around a ring of ranks, and each rank adds its number. A program that calls job.Main instead of
// job.Run also runs in a cluster.
func Example() {
	ring := func(ctx context.Context, world *mpi.Comm) error {
		rank, size := world.Rank(), world.Size()
		next, previous := (rank+1)%size, (rank+size-1)%size
		token := []int32{0}
		if rank == 0 {
			if err := mpi.Send(ctx, world, token, next, 0); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(ctx, world, token, previous, 0); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println("the sum of the ranks is", token[0])
			return nil
		}
		token[0] += int32(rank)
		return mpi.Send(ctx, world, token, next, 0)
	}
	if err := job.Run(context.Background(), 4, ring); err != nil {
		log.Fatal(err)
	}
	// Output: the sum of the ranks is 6
}

// The receiver probes for a message of unknown length, and then receives it into a slice of that length.
func ExampleProbe() {
	err := job.Run(context.Background(), 2, func(ctx context.Context, world *mpi.Comm) error {
		if world.Rank() == 0 {
			return mpi.Send(ctx, world, []float64{1, 2.5, 4}, 1, 7)
		}
		status, err := mpi.Probe(ctx, world, mpi.AnySource, mpi.AnyTag)
		if err != nil {
			return err
		}
		numbers := make([]float64, mpi.Count[float64](status))
		if _, err := mpi.Recv(ctx, world, numbers, status.Source, status.Tag); err != nil {
			return err
		}
		fmt.Println(numbers, "with tag", status.Tag)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: [1 2.5 4] with tag 7
}

// All ranks get the sums in place, and the greatest value with its rank.
func ExampleAllreduce() {
	err := job.Run(context.Background(), 3, func(ctx context.Context, world *mpi.Comm) error {
		rank := world.Rank()
		sums := []float64{float64(rank), 1}
		if err := mpi.Allreduce(ctx, world, sums, sums, mpi.Sum); err != nil {
			return err
		}
		best := []mpi.Float64Loc{{Value: float64(rank * (2 - rank)), Index: int32(rank)}}
		if err := mpi.Allreduce(ctx, world, best, best, mpi.MaxLoc); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(sums, "and the greatest is", best[0].Value, "of rank", best[0].Index)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: [3 3] and the greatest is 1 of rank 1
}

// The reduction uses a function of the program: here, the greatest common divisor.
func ExampleOpOf() {
	gcd := mpi.OpOf(func(in, inout []int64) {
		for i, a := range in {
			for b := inout[i]; b != 0; {
				a, b = b, a%b
			}
			inout[i] = a
		}
	}, true)
	err := job.Run(context.Background(), 3, func(ctx context.Context, world *mpi.Comm) error {
		mine, all := []int64{int64(12 + 18*world.Rank())}, []int64{0}
		if err := mpi.Reduce(ctx, world, mine, all, gcd, 0); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(all[0])
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 6
}

// Structs with a fixed layout are sent without their padding.
func ExampleStructType() {
	type particle struct {
		Kind     uint8
		Position [3]float64
		Charge   float32
	}
	err := job.Run(context.Background(), 2, func(ctx context.Context, world *mpi.Comm) error {
		t, err := mpi.StructType[particle]()
		if err != nil {
			return err
		}
		if world.Rank() == 0 {
			all := []particle{{1, [3]float64{0, 0.5, 1}, -1}, {2, [3]float64{3, 2, 1}, 2}}
			return world.Send(ctx, mpi.Typed(all, len(all), t), 1, 0)
		}
		all := make([]particle, 2)
		if _, err := world.Recv(ctx, mpi.Typed(all, len(all), t), 0, 0); err != nil {
			return err
		}
		fmt.Println(t.Size(), "of", t.Extent(), "bytes:", all)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 29 of 40 bytes: [{1 [0 0.5 1] -1} {2 [3 2 1] 2}]
}
