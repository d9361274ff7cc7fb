package kmeans

import (
	"context"
	"math"
)

// clusters holds the centroids, and the intermediate results of an iteration.
type clusters struct {
	dimensions int
	// centroids and sums hold vectors one after another. sums holds the sum of the vectors in each cluster, and counts
	// holds their number.
	centroids, sums, counts []int32
}

func newClusters(dimensions, n int) *clusters {
	return &clusters{dimensions, make([]int32, n*dimensions), make([]int32, n*dimensions), make([]int32, n)}
}

// seed chooses vectors at equal intervals in the list as centroids, as in upstream's example.
func (k *clusters) seed(vectors []int32) {
	d := k.dimensions
	step := len(vectors) / d / len(k.counts)
	for i := range k.counts {
		copy(k.centroids[i*d:][:d], vectors[i*step*d:])
	}
}

// nearest returns the cluster to which a vector belongs. If several centroids are equally near, it returns the
// lowest cluster.
func (k *clusters) nearest(vector []int32) int32 {
	best, at := int64(math.MaxInt64), 0
	for i := range k.counts {
		if d := distance(vector, k.centroids[i*k.dimensions:]); d < best {
			best, at = d, i
		}
	}
	return int32(at)
}

// distance returns the square of the distance between a and the beginning of b.
func distance(a, b []int32) (sum int64) {
	for i, x := range a {
		d := int64(x) - int64(b[i])
		sum += d * d
	}
	return sum
}

// checkInterval is the number of vectors assigned between two checks of the context.
const checkInterval = 1 << 10

// clear resets sums and counts for an iteration.
func (k *clusters) clear() {
	clear(k.sums)
	clear(k.counts)
}

// assign stores the cluster of each vector in labels and adds each vector to the sum of its cluster.
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

// add adds b to the beginning of a. Sums wrap around, as in upstream's code.
func add(a, b []int32) {
	for i, x := range b {
		a[i] += x
	}
}

// updateCentroids moves each centroid to the mean of its vectors. It returns the sum of the squared distances, limited
// to the largest int32. If a cluster has no vectors, its centroid does not move; upstream's host moves it to 0.
func (k *clusters) updateCentroids() int32 {
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
