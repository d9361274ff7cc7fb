package jacobi

import (
	"context"
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// sendLine sends a line of cells in messages of at most words words.
func sendLine[T Cell](ctx context.Context, c *mpi.Comm, line []T, words, to int) error {
	for part := range slices.Chunk(line, words) {
		if err := mpi.Send(ctx, c, part, to, tag); err != nil {
			return err
		}
	}
	return nil
}

// recvLine receives a line that sendLine has sent.
func recvLine[T Cell](ctx context.Context, c *mpi.Comm, line []T, words, from int) error {
	for part := range slices.Chunk(line, words) {
		st, err := mpi.Recv(ctx, c, part, from, tag)
		if err != nil {
			return err
		}
		if n := mpi.Count[T](st); n != len(part) {
			return fmt.Errorf("%w: %d words from rank %d, where a line of %d columns has %d: both sides need the "+
				"same columns and words",
				ErrMessage, n, from, len(line), len(part))
		}
	}
	return nil
}
