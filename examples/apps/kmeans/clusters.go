package kmeans

import (
	"context"
	"math"
)

// clusters are the centroids, and what an iteration computes for them.
type clusters struct {
	dimensions int
	// centroids and sums are vectors, one after another. A sum is that of the
	// vectors of a cluster, and counts says how many these are.
	centroids, sums, counts []int32
}

func newClusters(dimensions, n int) *clusters {
	return &clusters{dimensions, make([]int32, n*dimensions), make([]int32, n*dimensions), make([]int32, n)}
}

// seed takes vectors at equal distances in the list as centroids, as upstream's
// example does.
func (k *clusters) seed(vectors []int32) {
	d := k.dimensions
	step := len(vectors) / d / len(k.counts)
	for i := range k.counts {
		copy(k.centroids[i*d:][:d], vectors[i*step*d:])
	}
}

// nearest is the cluster of a vector: the lowest of those whose centroids are
// equally near.
func (k *clusters) nearest(vector []int32) int32 {
	best, at := int64(math.MaxInt64), 0
	for i := range k.counts {
		if d := distance(vector, k.centroids[i*k.dimensions:]); d < best {
			best, at = d, i
		}
	}
	return int32(at)
}

// distance is the square of that between a and as much of b.
func distance(a, b []int32) (sum int64) {
	for i, x := range a {
		d := int64(x) - int64(b[i])
		sum += d * d
	}
	return sum
}

// checkInterval is how many vectors are assigned between two checks of the context.
const checkInterval = 1 << 10

// clear begins an iteration.
func (k *clusters) clear() {
	clear(k.sums)
	clear(k.counts)
}

// assign finds the cluster of each vector. It sets labels, and adds the vectors
// up.
func (k *clusters) assign(ctx context.Context, vectors, labels []int32) error {
	d := k.dimensions
	for i := range labels {
		if i%checkInterval == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v := vectors[i*d:][:d]
		c := k.nearest(v)
		labels[i] = c
		k.counts[c]++
		add(k.sums[int(c)*d:], v)
	}
	return nil
}

// add adds b to as much of a. It overflows as upstream's does.
func add(a, b []int32) {
	for i, x := range b {
		a[i] += x
	}
}

// move moves the centroids to the means of their vectors, and returns the square
// of how far they moved in all, or the largest int32 if that is less. The
// centroid of a cluster that has lost all its vectors stays; upstream's host
// moves it to 0.
func (k *clusters) move() int32 {
	norm := int64(0)
	d := k.dimensions
	for i, n := range k.counts {
		if n == 0 {
			continue
		}
		mean := k.sums[i*d:][:d]
		for j := range mean {
			mean[j] /= n
		}
		norm = min(norm+distance(mean, k.centroids[i*d:]), math.MaxInt32)
		copy(k.centroids[i*d:], mean)
	}
	return int32(norm)
}
