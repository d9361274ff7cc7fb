package kmeans

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Work serves rank Root as a worker, once. How many vectors and clusters there
// are it learns from the messages.
func Work(ctx context.Context, c *mpi.Comm, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	o, err := o.complete()
	if err != nil {
		return err
	}
	w := &worker{c: c, o: o, buf: make([]int32, o.Words)}
	vectors, err := w.vectors(ctx)
	if err != nil {
		return err
	}
	vectors = slices.Clone(vectors) // the buffer is used again
	labels := make([]int32, len(vectors)/o.Dimensions)
	var k *clusters
	norm := int32(math.MaxInt32)
	for n := 0; o.goesOn(n, norm); n++ {
		centroids, err := w.vectors(ctx)
		if err != nil {
			return err
		}
		if k == nil {
			k = newClusters(o.Dimensions, len(centroids)/o.Dimensions)
		}
		if len(centroids) != len(k.centroids) {
			return fmt.Errorf("%w: %d words of centroids where there were %d before", ErrMessage, len(centroids), len(k.centroids))
		}
		copy(k.centroids, centroids)
		if err := k.assign(ctx, vectors, labels); err != nil {
			return err
		}
		if err := mpi.Send(ctx, c, k.sums, Root, tag); err != nil {
			return err
		}
		if err := mpi.Send(ctx, c, k.counts, Root, tag); err != nil {
			return err
		}
		if err := recvAll(ctx, c, w.buf[:1], Root); err != nil {
			return err
		}
		norm = w.buf[0]
	}
	return mpi.Send(ctx, c, labels, Root, tag)
}

type worker struct {
	c *mpi.Comm
	o Options
	// buf takes the longest message.
	buf []int32
}

// vectors receives a whole number of vectors. They are in the buffer.
func (w *worker) vectors(ctx context.Context) ([]int32, error) {
	st, err := mpi.Recv(ctx, w.c, w.buf, Root, tag)
	if err != nil {
		return nil, err
	}
	n := mpi.Count[int32](st)
	if n < 1 || n%w.o.Dimensions != 0 {
		return nil, fmt.Errorf("%w: %d words are not a whole number of vectors of %d dimensions", ErrMessage, n, w.o.Dimensions)
	}
	return w.buf[:n], nil
}
