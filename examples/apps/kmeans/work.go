package kmeans

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Work serves rank Root as a worker for one computation. It uses Send and Recv instead of collective calls, because it
// learns the numbers of vectors and clusters only from Root's messages.
func Work(ctx context.Context, comm *mpi.Comm, options Options) error {
	if err := options.Check(); err != nil {
		return err
	}
	options, err := options.withDefaults()
	if err != nil {
		return err
	}
	if !exchange.MatchesByOrder(comm) {
		options.FPGAs = nil
	}
	ranks, err := exchange.NewUnrolled(comm, options.FPGAs, ErrMessage)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	buf := make([]int32, options.Words)
	vectors, err := exchange.RecvScatter(ctx, ranks, buf)
	if err = options.checkVectors(vectors, err); err != nil {
		return err
	}
	vectors = slices.Clone(vectors) // the buffer is reused
	labels := make([]int32, len(vectors)/options.Dimensions)
	var k *clusters
	norm := [1]int32{math.MaxInt32}
	for n := 0; options.shouldContinue(n, norm[0]); n++ {
		centroids, err := exchange.RecvBcast(ctx, ranks, buf)
		if err = options.checkVectors(centroids, err); err != nil {
			return err
		}
		if k == nil {
			k = newClusters(options.Dimensions, len(centroids)/options.Dimensions)
		}
		if len(centroids) != len(k.centroids) {
			return fmt.Errorf("%w: %d words of centroids, but there were %d before", ErrMessage, len(centroids),
				len(k.centroids))
		}
		copy(k.centroids, centroids)
		k.clear()
		if err := k.assign(ctx, vectors, labels); err != nil {
			return err
		}
		if err := exchange.Sum(ctx, ranks, k.sums); err != nil {
			return err
		}
		if err := exchange.Sum(ctx, ranks, k.counts); err != nil {
			return err
		}
		if err := exchange.Bcast(ctx, ranks, norm[:], Root); err != nil {
			return err
		}
	}
	return exchange.Gather(ctx, ranks, labels, nil)
}

// checkVectors checks that a message was received and consists of whole vectors. Its parameter err is the error of the
// receive.
func (o *Options) checkVectors(words []int32, err error) error {
	switch n := len(words); {
	case errors.Is(err, mpi.ErrTruncate):
		return fmt.Errorf("%w; this rank accepts at most %d words (its option words)", err, o.Words)
	case err != nil:
		return err
	case n < 1 || n%o.Dimensions != 0:
		return fmt.Errorf("%w: %d words are not a whole number of vectors of %d dimensions", ErrMessage, n,
			o.Dimensions)
	}
	return nil
}
