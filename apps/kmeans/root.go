package kmeans

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Result is what the vectors have been divided into.
type Result struct {
	// Centroids are the means, one after another.
	Centroids []int32
	// Counts says how many vectors each cluster has, and Labels which cluster
	// each vector belongs to: before the centroids moved for the last time.
	Counts, Labels []int32
	// Norms has an entry for each iteration: the square of how far the
	// centroids moved in all.
	Norms []int32
}

// Serial divides the vectors, which stand one after another, into n clusters on
// one processor: what Host is measured by.
func Serial(vectors []int32, n int, o Options) (*Result, error) {
	o, err := o.check(vectors, n, 1)
	if err != nil {
		return nil, err
	}
	k := newClusters(o.Dimensions, n)
	k.seed(vectors)
	r := &Result{Labels: make([]int32, len(vectors)/o.Dimensions)}
	for norm := int32(math.MaxInt32); o.goesOn(len(r.Norms), norm); {
		if err := k.assign(context.Background(), vectors, r.Labels); err != nil {
			return nil, err
		}
		norm = k.move()
		r.Norms = append(r.Norms, norm)
	}
	r.Centroids, r.Counts = k.centroids, k.counts
	return r, nil
}

// Host divides the vectors into n clusters together with all other ranks of c; it
// is for rank Root. The options must be those of the others. The sums of each
// coordinate have to fit into an int32, because that is what ranks exchange.
func Host(ctx context.Context, c *mpi.Comm, vectors []int32, n int, o Options) (*Result, error) {
	o, err := o.check(vectors, n, c.Size())
	if err != nil {
		return nil, err
	}
	h := &host{c: c, o: o, clusters: newClusters(o.Dimensions, n)}
	h.seed(vectors)
	return h.run(ctx, vectors)
}

// check refuses what cannot be divided.
func (o Options) check(vectors []int32, n, ranks int) (Options, error) {
	o, err := o.complete()
	if err != nil {
		return o, err
	}
	switch count := len(vectors) / o.Dimensions; {
	case len(vectors)%o.Dimensions != 0:
		return o, fmt.Errorf("%w: %d numbers are not a whole number of vectors of %d", ErrOptions, len(vectors), o.Dimensions)
	case n < 1 || n > count:
		return o, fmt.Errorf("%w: %d clusters of %d vectors: there are at least one, and no more than vectors", ErrOptions, n, count)
	case count < ranks:
		// A message cannot be empty.
		return o, fmt.Errorf("%w: %d vectors are too few for %d ranks", ErrOptions, count, ranks)
	}
	return o, nil
}

// host is rank Root.
type host struct {
	*clusters
	c *mpi.Comm
	o Options
}

// run does in the order of upstream's source what each of its collective calls
// becomes: a walk over the ranks.
func (h *host) run(ctx context.Context, vectors []int32) (*Result, error) {
	r := &Result{Labels: make([]int32, len(vectors)/h.dimensions)}
	if err := h.others(func(rank int) error { // Scatter
		first, end := share(len(r.Labels), h.c.Size(), rank)
		return mpi.Send(ctx, h.c, vectors[first*h.dimensions:end*h.dimensions], rank, tag)
	}); err != nil {
		return nil, err
	}
	_, own := share(len(r.Labels), h.c.Size(), Root)
	for norm := int32(math.MaxInt32); h.o.goesOn(len(r.Norms), norm); {
		if err := h.bcast(ctx, h.centroids); err != nil {
			return nil, err
		}
		if err := h.assign(ctx, vectors, r.Labels[:own]); err != nil {
			return nil, err
		}
		if err := h.reduce(ctx, h.sums); err != nil {
			return nil, err
		}
		if err := h.reduce(ctx, h.counts); err != nil {
			return nil, err
		}
		norm = h.move()
		r.Norms = append(r.Norms, norm)
		if err := h.bcast(ctx, []int32{norm}); err != nil {
			return nil, err
		}
	}
	if err := h.others(func(rank int) error { // Gather
		first, end := share(len(r.Labels), h.c.Size(), rank)
		return recvAll(ctx, h.c, r.Labels[first:end], rank)
	}); err != nil {
		return nil, err
	}
	r.Centroids, r.Counts = h.centroids, h.counts
	return r, nil
}

// others calls f for all other ranks.
func (h *host) others(f func(rank int) error) error {
	for rank := 1; rank < h.c.Size(); rank++ {
		if err := f(rank); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) bcast(ctx context.Context, words []int32) error {
	return h.others(func(rank int) error { return mpi.Send(ctx, h.c, words, rank, tag) })
}

// reduce adds the others' words to ours.
func (h *host) reduce(ctx context.Context, words []int32) error {
	theirs := slices.Clone(words)
	return h.others(func(rank int) error {
		if err := recvAll(ctx, h.c, theirs, rank); err != nil {
			return err
		}
		add(words, theirs)
		return nil
	})
}

// share is what a rank gets of n vectors: the same as all others, and one more
// for the first ranks if they cannot be divided evenly.
func share(n, ranks, rank int) (first, end int) {
	each, more := n/ranks, n%ranks
	first = rank*each + min(rank, more)
	end = first + each
	if rank < more {
		end++
	}
	return first, end
}

// recvAll receives a message of a length that is known.
func recvAll(ctx context.Context, c *mpi.Comm, words []int32, from int) error {
	st, err := mpi.Recv(ctx, c, words, from, tag)
	if err != nil {
		return err
	}
	if n := mpi.Count[int32](st); n != len(words) {
		return fmt.Errorf("%w: %d words from rank %d instead of %d: all ranks need the same dimensions, iterations and norm limit",
			ErrMessage, n, from, len(words))
	}
	return nil
}
