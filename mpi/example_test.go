package mpi_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// A token goes around a ring of ranks, and each adds its number.
func Example() {
	// A program that a launcher starts once per rank does this with the world
	// that mpi.Init gives it.
	ring := func(ctx context.Context, world *mpi.Comm) error {
		rank, size := world.Rank(), world.Size()
		right, left := (rank+1)%size, (rank+size-1)%size
		token := []int32{0}
		if rank == 0 {
			if err := mpi.Send(ctx, world, token, right, 0); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(ctx, world, token, left, 0); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println("the ranks add up to", token[0])
			return nil
		}
		token[0] += int32(rank)
		return mpi.Send(ctx, world, token, right, 0)
	}

	// Here the ranks are goroutines, on a network in memory.
	ctx := context.Background()
	var wg sync.WaitGroup
	for _, dev := range mpitest.New(4, mpitest.Options{}) {
		world, err := mpi.New(dev)
		if err != nil {
			log.Fatal(err)
		}
		wg.Go(func() {
			if err := ring(ctx, world); err != nil {
				log.Print(err)
			}
		})
	}
	wg.Wait()
	// Output: the ranks add up to 6
}

// A message of unknown size is probed, and then received into a slice of its
// size.
func ExampleProbe() {
	ctx := context.Background()
	world, err := mpi.New(mpitest.New(1, mpitest.Options{})[0])
	if err != nil {
		log.Fatal(err)
	}
	sent, err := mpi.Isend(world, []float64{1, 2.5, 4}, 0, 7)
	if err != nil {
		log.Fatal(err)
	}
	st, err := mpi.Probe(ctx, world, mpi.AnySource, mpi.AnyTag)
	if err != nil {
		log.Fatal(err)
	}
	numbers := make([]float64, mpi.Count[float64](st))
	if _, err := mpi.Recv(ctx, world, numbers, st.Source, st.Tag); err != nil {
		log.Fatal(err)
	}
	if _, err := sent.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(numbers, "with tag", st.Tag)
	// Output: [1 2.5 4] with tag 7
}

// All ranks get the sum of what they have, in place, and the place of the greatest value.
func ExampleAllreduce() {
	ctx := context.Background()
	var wg sync.WaitGroup
	for _, dev := range mpitest.New(3, mpitest.Options{}) {
		world, err := mpi.New(dev)
		if err != nil {
			log.Fatal(err)
		}
		wg.Go(func() {
			rank := world.Rank()
			v := []float64{float64(rank), 1}
			if err := mpi.Allreduce(ctx, world, v, v, mpi.Sum); err != nil {
				log.Print(err)
			}
			best := []mpi.Float64Loc{{Value: float64(rank * (2 - rank)), Index: int32(rank)}}
			if err := mpi.Allreduce(ctx, world, best, best, mpi.MaxLoc); err != nil {
				log.Print(err)
			}
			if rank == 0 {
				fmt.Println(v, "and the greatest is", best[0].Value, "of rank", best[0].Index)
			}
		})
	}
	wg.Wait()
	// Output: [3 3] and the greatest is 1 of rank 1
}

// A function of the program combines: here, it is the greatest common divisor.
func ExampleOpOf() {
	gcd := mpi.OpOf(func(in, inout []int64) {
		for i, a := range in {
			for b := inout[i]; b != 0; {
				a, b = b, a%b
			}
			inout[i] = a
		}
	}, true)
	ctx := context.Background()
	var wg sync.WaitGroup
	for _, dev := range mpitest.New(3, mpitest.Options{}) {
		world, err := mpi.New(dev)
		if err != nil {
			log.Fatal(err)
		}
		wg.Go(func() {
			mine, all := []int64{int64(12 + 18*world.Rank())}, []int64{0}
			if err := mpi.Reduce(ctx, world, mine, all, gcd, 0); err != nil {
				log.Print(err)
			}
			if world.Rank() == 0 {
				fmt.Println(all[0])
			}
		})
	}
	wg.Wait()
	// Output: 6
}
