package tune

import (
	"context"
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// elemLen is the size in bytes of an element, an int32.
const elemLen = 4

// root is the root rank in calls that have one.
const root = 0

// worker executes jobs on a rank.
type worker struct {
	comm *mpi.Comm
	// send and recv are buffers that all jobs reuse.
	send, recv []int32
}

// runJob executes a job: it makes the call once and verifies the result, and then makes the call Iterations times, each
// time after a barrier.
func (w *worker) runJob(ctx context.Context, j job) ([]int64, error) {
	of, err := collectives.ParseName(j.Collective)
	if err != nil {
		return nil, err
	}
	if j.Bytes < 0 || j.Bytes > maxVectorBytes || j.Bytes%elemLen != 0 || j.Iterations < 0 ||
		j.Iterations > maxIterations {
		return nil, fmt.Errorf("a job of %d bytes and %d calls", j.Bytes, j.Iterations)
	}
	opts := []mpi.Option{mpi.WithAlgorithm(j.By.Algorithm)}
	if j.By.Segment > 0 {
		opts = append(opts, mpi.WithSegment(j.By.Segment))
	}
	call := w.prepare(of, j.Bytes/elemLen)
	if err := call(ctx, opts); err != nil {
		return nil, err
	}
	if err := w.verify(of, j.Bytes/elemLen); err != nil {
		return nil, err
	}
	nanos := make([]int64, j.Iterations)
	for i := range nanos {
		if err := mpi.Barrier(ctx, w.comm, mpi.WithAlgorithm("dissemination")); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := call(ctx, opts); err != nil {
			return nil, err
		}
		nanos[i] = int64(time.Since(start))
	}
	return nanos, nil
}

// word returns the word at index i in the data that a rank contributes to a call.
func word(rank, i int) int32 { return int32(uint32(i+1)*2654435761 + uint32(rank)*40503) }

// prepare fills the buffers for a call whose vectors or blocks have the given number of words. It returns a function
// that makes the call.
func (w *worker) prepare(of coll.Collective, words int) func(context.Context, []mpi.Option) error {
	comm, p := w.comm, w.comm.Size()
	send, recv := words, words
	switch of {
	case coll.Gather, coll.Allgather:
		recv *= p
	case coll.Scatter, coll.ReduceScatter:
		send *= p
	case coll.Alltoall:
		send *= p
		recv *= p
	}
	s, r := growBuffer(&w.send, send), growBuffer(&w.recv, recv)
	for i := range s {
		s[i] = word(comm.Rank(), i)
	}
	for i := range r {
		r[i] = -1
	}
	if of == coll.Bcast && comm.Rank() == root {
		copy(r, s)
	}
	return map[coll.Collective]func(context.Context, []mpi.Option) error{
		coll.Barrier: func(ctx context.Context, o []mpi.Option) error { return mpi.Barrier(ctx, comm, o...) },
		coll.Bcast:   func(ctx context.Context, o []mpi.Option) error { return mpi.Bcast(ctx, comm, r, root, o...) },
		coll.Reduce: func(ctx context.Context,
			o []mpi.Option) error {
			return mpi.Reduce(ctx, comm, s, r, mpi.Sum, root, o...)
		},
		coll.Allreduce: func(ctx context.Context,
			o []mpi.Option) error {
			return mpi.Allreduce(ctx, comm, s, r, mpi.Sum, o...)
		},
		coll.Gather: func(ctx context.Context, o []mpi.Option) error { return mpi.Gather(ctx, comm, s, r, root, o...) },
		coll.Scatter: func(ctx context.Context,
			o []mpi.Option) error {
			return mpi.Scatter(ctx, comm, s, r, root, o...)
		},
		coll.Allgather: func(ctx context.Context, o []mpi.Option) error { return mpi.Allgather(ctx, comm, s, r, o...) },
		coll.Alltoall:  func(ctx context.Context, o []mpi.Option) error { return mpi.Alltoall(ctx, comm, s, r, o...) },
		coll.ReduceScatter: func(ctx context.Context, o []mpi.Option) error {
			return mpi.ReduceScatterBlock(ctx, comm, s, r, mpi.Sum, o...)
		},
		coll.Scan:   func(ctx context.Context, o []mpi.Option) error { return mpi.Scan(ctx, comm, s, r, mpi.Sum, o...) },
		coll.Exscan: func(ctx context.Context, o []mpi.Option) error { return mpi.Exscan(ctx, comm, s, r, mpi.Sum, o...) },
	}[of]
}

// growBuffer returns the first n words of a buffer. It replaces a buffer that is too short by a longer one.
func growBuffer(kept *[]int32, n int) []int32 {
	if len(*kept) < n {
		*kept = make([]int32, n)
	}
	return (*kept)[:n]
}

// verify checks the receive buffer after the call.
func (w *worker) verify(of coll.Collective, words int) error {
	me, p := w.comm.Rank(), w.comm.Size()
	// sum returns the sum of the words at index i that the first ranks contribute.
	sum := func(ranks, i int) (n int32) {
		for r := range ranks {
			n += word(r, i)
		}
		return n
	}
	var want func(i int) int32
	n := words
	switch of {
	case coll.Barrier:
		return nil
	case coll.Bcast:
		want = func(i int) int32 { return word(root, i) }
	case coll.Reduce:
		if me != root {
			return nil
		}
		want = func(i int) int32 { return sum(p, i) }
	case coll.Allreduce:
		want = func(i int) int32 { return sum(p, i) }
	case coll.Gather, coll.Allgather:
		if of == coll.Gather && me != root {
			return nil
		}
		n *= p
		want = func(i int) int32 { return word(i/words, i%words) }
	case coll.Scatter:
		want = func(i int) int32 { return word(root, me*words+i) }
	case coll.Alltoall:
		n *= p
		want = func(i int) int32 { return word(i/words, me*words+i%words) }
	case coll.ReduceScatter:
		want = func(i int) int32 { return sum(p, me*words+i) }
	case coll.Scan:
		want = func(i int) int32 { return sum(me+1, i) }
	case coll.Exscan:
		if me == 0 {
			return nil // rank 0 receives no result
		}
		want = func(i int) int32 { return sum(me, i) }
	}
	for i := range n {
		if w.recv[i] != want(i) {
			return fmt.Errorf("word %d of %d is %d instead of %d", i, n, w.recv[i], want(i))
		}
	}
	return nil
}
