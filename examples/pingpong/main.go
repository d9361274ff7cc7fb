// Command pingpong measures round trips: rank 0 sends messages to each other rank, which sends them back, with tag 0. A
// stand-in with kernel echo does the same as those ranks.
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

var count = flag.Int("count", 100, "`number` of messages of each length")

func main() {
	flag.Parse()
	job.Main(2, pingpong)
}

func pingpong(ctx context.Context, world *mpi.Comm) error {
	for rank := 1; rank < world.Size(); rank++ {
		for _, words := range []int{1, 346, 347, 1000, 65536} { // 346 words fit into one datagram
			var times []time.Duration
			for i := range *count {
				ball, back := slices.Repeat([]int32{int32(i + 1)}, words), make([]int32, words)
				start := time.Now()
				switch world.Rank() {
				case 0:
					if err := mpi.Send(ctx, world, ball, rank, 0); err != nil {
						return err
					}
					if _, err := mpi.Recv(ctx, world, back, rank, 0); err != nil {
						return err
					}
					if !slices.Equal(ball, back) {
						return fmt.Errorf("message %d of %d words came back from rank %d changed", i, words, rank)
					}
				case rank:
					if _, err := mpi.Recv(ctx, world, back, 0, 0); err != nil {
						return err
					}
					if err := mpi.Send(ctx, world, back, 0, 0); err != nil {
						return err
					}
				}
				times = append(times, time.Since(start))
			}
			if slices.Sort(times); world.Rank() == 0 && *count > 0 {
				if _, err := fmt.Printf("rank %d, %5d words: median %8v, maximum %8v\n", rank, words, times[*count/2],
					times[*count-1]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
