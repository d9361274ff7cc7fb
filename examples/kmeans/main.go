// Command kmeans divides vectors into clusters: every rank has a share of the vectors, and rank 0 the centroids. A
// stand-in with kernel kmeans can also be a worker. Host and Work in examples/apps/kmeans exchange the messages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

var (
	ranks    = flag.Int("ranks", 5, "`number` of ranks in this process")
	vectors  = flag.Int("vectors", 20_000, "`number` of vectors")
	clusters = flag.Int("clusters", 8, "`number` of clusters")
)

const (
	dimensions = kmeans.DefaultDimensions
	maxVectors = 1_000_000 // as in upstream's example
)

func main() {
	flag.Parse()
	job.Main(*ranks, divide)
}

func divide(ctx context.Context, world *mpi.Comm) error {
	if *clusters < 1 || *clusters > *vectors || *vectors > maxVectors {
		return fmt.Errorf("-clusters %d, -vectors %d: must be 1 to %d vectors, and no more clusters than vectors",
			*clusters, *vectors, maxVectors)
	}
	options := kmeans.Options{Words: *vectors * dimensions}
	if world.Rank() != kmeans.Root {
		return kmeans.Work(ctx, world, options)
	}
	all := randomVectors()
	start := time.Now()
	got, err := kmeans.Host(ctx, world, all, *clusters, options)
	if err != nil {
		return err
	}
	if _, err := fmt.Printf("vectors: %d, clusters: %d, iterations: %d, ranks: %d, time: %v\n", *vectors, *clusters,
		len(got.Norms), world.Size(), time.Since(start)); err != nil {
		return err
	}
	start = time.Now()
	want, err := kmeans.Serial(all, *clusters, options)
	if err != nil {
		return err
	}
	if _, err := fmt.Printf("on one processor, time: %v\n", time.Since(start)); err != nil {
		return err
	}
	for i, n := range got.Counts {
		if _, err := fmt.Printf("cluster %d: %5d vectors around %5d\n", i, n,
			got.Centroids[i*dimensions:][:dimensions]); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(got, want) {
		return errors.New("the clusters differ from the result of one processor")
	}
	return nil
}

// randomVectors returns the same vectors on every call. They form as many heaps as there are clusters.
func randomVectors() []int32 {
	const space, width = 1000, 100 // the width of a heap, and the maximum distance of its centre from 0
	random := rand.New(rand.NewPCG(1, 0))
	heaps := make([]int32, *clusters*dimensions)
	for i := range heaps {
		heaps[i] = random.Int32N(2*space+1) - space
	}
	all := make([]int32, 0, *vectors*dimensions)
	for len(all) < cap(all) {
		heap := random.IntN(*clusters) * dimensions
		for _, center := range heaps[heap:][:dimensions] {
			all = append(all, center+random.Int32N(2*width+1)-width)
		}
	}
	return all
}
