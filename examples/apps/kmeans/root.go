package kmeans

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Result describes how vectors were divided into clusters.
type Result struct {
	// Centroids holds the means, consecutively.
	Centroids []int32
	// Counts holds the number of vectors in each cluster, and Labels holds the cluster of each vector. Both
	// refer to the time before the last move of the centroids.
	Counts, Labels []int32
	// Norms has one entry per iteration: the sum of the squared distances by which the centroids moved.
	Norms []int32
}

// Serial divides vectors into n clusters on one processor, as a reference for Host. The vectors are stored
// consecutively.
func Serial(vectors []int32, n int, options Options) (*Result, error) {
	options, err := options.check(vectors, n, 1)
	if err != nil {
		return nil, err
	}
	k := newClusters(options.Dimensions, n)
	k.seed(vectors)
	result := &Result{Labels: make([]int32, len(vectors)/options.Dimensions)}
	for norm := int32(math.MaxInt32); options.shouldContinue(len(result.Norms), norm); {
		k.clear()
		if err := k.assign(context.Background(), vectors, result.Labels); err != nil {
			return nil, err
		}
		norm = k.updateCentroids()
		result.Norms = append(result.Norms, norm)
	}
	result.Centroids, result.Counts = k.centroids, k.counts
	return result, nil
}

// Host divides vectors into n clusters, together with all other ranks of comm, which must have the same options. It
// must run on rank Root. The sums of each coordinate must fit in an int32, because the ranks exchange them in that
// form.
//
// Host makes its collective calls with package mpi, which knows the form that upstream's compiler gave these
// calls on FPGAs. If collective calls are not ordinary messages, Host uses Send and Recv, as Work does.
func Host(ctx context.Context, comm *mpi.Comm, vectors []int32, n int, options Options) (*Result, error) {
	options, err := options.check(vectors, n, comm.Size())
	if err != nil {
		return nil, err
	}
	ranks := exchange.NewLibrary(comm)
	if !exchange.MatchesByOrder(comm) {
		if ranks, err = exchange.NewUnrolled(comm, nil, ErrMessage); err != nil {
			return nil, err
		}
	}
	h := &host{ranks: ranks, options: options, clusters: newClusters(options.Dimensions, n)}
	h.seed(vectors)
	return h.run(ctx, vectors)
}

// check validates the vectors and the number of clusters, and returns the options with defaults filled in.
func (o Options) check(vectors []int32, n, ranks int) (Options, error) {
	o, err := o.withDefaults()
	if err != nil {
		return o, err
	}
	switch count := len(vectors) / o.Dimensions; {
	case len(vectors)%o.Dimensions != 0:
		return o, fmt.Errorf("%w: %d numbers are not a whole number of vectors of %d", ErrOptions, len(vectors),
			o.Dimensions)
	case n < 1 || n > count:
		return o, fmt.Errorf("%w: %d clusters of %d vectors: must be at least 1, and no more than the vectors",
			ErrOptions, n, count)
	case count < ranks:
		// A message cannot be empty.
		return o, fmt.Errorf("%w: %d vectors are too few for %d ranks", ErrOptions, count, ranks)
	}
	return o, nil
}

// host is the state of rank Root.
type host struct {
	*clusters
	ranks   *exchange.Ranks
	options Options
}

// run makes the same calls as upstream's source, in the same order. All ranks get the same number of vectors; Root also
// keeps the remainder.
func (h *host) run(ctx context.Context, vectors []int32) (*Result, error) {
	ranks, each := h.ranks.Size(), len(vectors)/h.dimensions/h.ranks.Size()
	dealt, left := vectors[:ranks*each*h.dimensions], vectors[ranks*each*h.dimensions:]
	result := &Result{Labels: make([]int32, len(vectors)/h.dimensions)}
	own, labels := dealt[:each*h.dimensions], result.Labels[:each]
	if err := exchange.Scatter(ctx, h.ranks, dealt, own); err != nil {
		return nil, err
	}
	for norm := int32(math.MaxInt32); h.options.shouldContinue(len(result.Norms), norm); {
		if err := exchange.Bcast(ctx, h.ranks, h.centroids, Root); err != nil {
			return nil, err
		}
		h.clear()
		if err := errors.Join(h.assign(ctx, own, labels), h.assign(ctx, left, result.Labels[ranks*each:])); err != nil {
			return nil, err
		}
		if err := exchange.Sum(ctx, h.ranks, h.sums); err != nil {
			return nil, err
		}
		if err := exchange.Sum(ctx, h.ranks, h.counts); err != nil {
			return nil, err
		}
		norm = h.updateCentroids()
		result.Norms = append(result.Norms, norm)
		if err := exchange.Bcast(ctx, h.ranks, []int32{norm}, Root); err != nil {
			return nil, err
		}
	}
	if err := exchange.Gather(ctx, h.ranks, labels, result.Labels[:ranks*each]); err != nil {
		return nil, err
	}
	result.Centroids, result.Counts = h.centroids, h.counts
	return result, nil
}
