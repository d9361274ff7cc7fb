package integration_test

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Upstream's examples of collective calls, written for any rank and any implementation of the calls.

// The problem of upstream's jacobi2d-col.cpp.
const (
	jacobiSize       = 256
	jacobiBorder     = 128
	jacobiIterations = 2
)

// jacobiBlocks gives every rank a block of lines. The root, rank 0, holds the whole grid.
func jacobiBlocks(ctx context.Context, world *mpi.Comm, c collectives[int32], grid *jacobi.Grid[int32],
	iterations int) error {
	const n = jacobiSize
	rank, ranks := world.Rank(), world.Size()
	lines := n / ranks
	first, end := rank*lines, (rank+1)*lines
	// One more line above and below.
	old := make([]int32, (lines+2)*n)
	line := func(i int) []int32 { return old[(i-first+1)*n:][:n] }
	next := make([]int32, lines*n)
	for range iterations {
		if err := c.scatter(ctx, grid.Cells, old[n:][:lines*n]); err != nil {
			return err
		}
		if rank != 0 {
			for _, i := range []int{first - 1, min(end, n-1)} {
				if _, err := mpi.Recv(ctx, world, line(i), 0, 0); err != nil {
					return err
				}
			}
		} else {
			for r := 1; r < ranks; r++ {
				for _, i := range []int{r*lines - 1, min((r+1)*lines, n-1)} {
					if err := mpi.Send(ctx, world, grid.Line(i), r, 0); err != nil {
						return err
					}
				}
			}
			copy(line(end), grid.Line(end))
		}
		for i := first; i < end; i++ {
			to := next[(i-first)*n:][:n]
			copy(to, line(i))
			for j := 1; j < n-1 && i > 0 && i < n-1; j++ {
				to[j] = (line(i)[j-1] + line(i)[j+1] + line(i - 1)[j] + line(i + 1)[j]) >> 2
			}
		}
		if err := c.gather(ctx, next, grid.Cells); err != nil {
			return err
		}
	}
	return nil
}

// jacobiRank runs a rank. Rank 0 first sends the number of iterations.
func jacobiRank(ctx context.Context, world *mpi.Comm, c collectives[int32], grid *jacobi.Grid[int32]) error {
	iterations := []int32{jacobiIterations}
	if world.Rank() != 0 {
		if _, err := mpi.Recv(ctx, world, iterations, 0, 0); err != nil {
			return err
		}
	} else {
		for r := 1; r < world.Size(); r++ {
			if err := mpi.Send(ctx, world, iterations, r, 0); err != nil {
				return err
			}
		}
	}
	return jacobiBlocks(ctx, world, c, grid, int(iterations[0]))
}

// A smaller problem than in upstream's kmeans.cpp, which takes a long time.
const (
	kmeansVectors    = 2000
	kmeansClusters   = 16
	kmeansDimensions = 3
	kmeansIterations = 128
	kmeansNormLimit  = 10
)

// kmeansInput returns the vectors.
func kmeansInput() []int32 {
	r := rand.New(rand.NewPCG(1, 2))
	vectors := make([]int32, kmeansVectors*kmeansDimensions)
	for i := range vectors {
		vectors[i] = r.Int32N(20001) - 10000
	}
	return vectors
}

// kmeansResult is rank 0's final result.
type kmeansResult struct{ norms, centroids, counts, labels []int32 }

// kmeansRank gives every rank a share of the vectors. The root holds all vectors.
func kmeansRank(ctx context.Context, world *mpi.Comm, c collectives[int32], all []int32) (*kmeansResult, error) {
	const k, d = kmeansClusters, kmeansDimensions
	each := kmeansVectors / world.Size()
	vectors, labels := make([]int32, each*d), make([]int32, each)
	var r kmeansResult
	r.centroids, r.counts, r.labels = make([]int32, k*d), make([]int32, k), make([]int32, each*world.Size())
	for i := 0; i < k && all != nil; i++ {
		copy(r.centroids[i*d:][:d], all[i*(kmeansVectors/k)*d:])
	}
	if err := c.scatter(ctx, all, vectors); err != nil {
		return nil, err
	}
	norm := []int32{math.MaxInt32}
	for i := 0; i < kmeansIterations && norm[0] > kmeansNormLimit; i++ {
		if err := c.bcast(ctx, r.centroids); err != nil {
			return nil, err
		}
		sums, counts := make([]int32, k*d), make([]int32, k)
		assign(vectors, r.centroids, labels)
		for v, label := range labels {
			counts[label]++
			for j := range d {
				sums[int(label)*d+j] += vectors[v*d+j]
			}
		}
		allSums := make([]int32, k*d)
		if err := c.reduce(ctx, sums, allSums); err != nil {
			return nil, err
		}
		if err := c.reduce(ctx, counts, r.counts); err != nil {
			return nil, err
		}
		if all != nil {
			norm[0] = move(r.centroids, allSums, r.counts)
			r.norms = append(r.norms, norm[0])
		}
		if err := c.bcast(ctx, norm); err != nil {
			return nil, err
		}
	}
	assign(vectors, r.centroids, labels)
	return &r, c.gather(ctx, labels, r.labels)
}

// assign finds the nearest centroid of each vector.
func assign(vectors, centroids, labels []int32) {
	const d = kmeansDimensions
	for v := range labels {
		best := int64(math.MaxInt64)
		for c := range len(centroids) / d {
			if far := distance(vectors[v*d:][:d], centroids[c*d:]); far < best {
				best, labels[v] = far, int32(c)
			}
		}
	}
}

func distance(a, b []int32) (sum int64) {
	for i := range a {
		x := int64(a[i] - b[i])
		sum += x * x
	}
	return sum
}

// move moves the centroids to the means, and returns the total distance.
func move(centroids, sums, counts []int32) int32 {
	const d = kmeansDimensions
	for c, n := range counts {
		for j := 0; j < d && n != 0; j++ {
			sums[c*d+j] /= n
		}
	}
	norm := min(distance(sums, centroids), math.MaxInt32)
	copy(centroids, sums)
	return int32(norm)
}
