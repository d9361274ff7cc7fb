package jacobi

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Work serves rank Root as a worker for one computation, whose number of iterations Root sends.
func Work[T Cell](ctx context.Context, comm *mpi.Comm, options Options) error {
	options, err := options.withDefaults(comm.Size())
	if err != nil {
		return err
	}
	var iterations [1]int32
	st, err := mpi.Recv(ctx, comm, iterations[:], Root, tag)
	if err != nil {
		return err
	}
	if mpi.Count[int32](st) != 1 || iterations[0] < 0 {
		return fmt.Errorf("%w: the first message from rank %d must be one word, the number of iterations", ErrMessage, Root)
	}
	old, next := newBlock[T](options), newBlock[T](options)
	for range iterations[0] {
		for _, line := range old {
			if err := recvLine(ctx, comm, line, options.Words, Root); err != nil {
				return err
			}
		}
		old.relax(next)
		for _, line := range next {
			if err := sendLine(ctx, comm, line, options.Words, Root); err != nil {
				return err
			}
		}
	}
	return nil
}

// block holds the lines of a worker, and the lines directly above and below them.
type block[T Cell] [][]T

func newBlock[T Cell](o Options) block[T] {
	b := make(block[T], o.Lines+2)
	for i := range b {
		b[i] = make([]T, o.Columns)
	}
	return b
}

// relax computes an iteration and stores it in next. It copies the cells that it cannot compute.
func (b block[T]) relax(next block[T]) {
	last := len(b) - 1
	copy(next[0], b[0])
	copy(next[last], b[last])
	for i := 1; i < last; i++ {
		relax(next[i], b[i-1], b[i], b[i+1])
		end := len(b[i]) - 1
		next[i][0], next[i][end] = b[i][0], b[i][end]
	}
}
