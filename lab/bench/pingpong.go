package bench

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// pingPong measures how long messages of one size take. c/pingpong.c is its counterpart. The first and the last word of
// every message contain its number. In the first and the last round, all words are compared.
func pingPong(sess *session, st step) (Point, error) {
	words, err := wordsOf(st.n)
	if err != nil {
		return Point{}, err
	}
	rank, peer := sess.comm.Rank(), 1-sess.comm.Rank()
	out, in := make([]int32, words), make([]int32, words)
	fill(out, rank)
	half := make([]time.Duration, 0, st.iterations)
	for i := -warmup; i < st.iterations; i++ {
		sess.printProgress(st.n, warmup+i, warmup+st.iterations)
		writeStamp(out, stampWord(i, rank))
		start := time.Now()
		if err := sess.exchange(out, in, peer); err != nil {
			return Point{}, err
		}
		if i >= 0 {
			half = append(half, time.Since(start)/2)
		}
		if err := verify(in, stampWord(i, peer), peer, i == -warmup || i == st.iterations-1); err != nil {
			return Point{}, fmt.Errorf("round %d: %w", i, err)
		}
		sess.verified++
	}
	return newPoint(st, half), nil
}

// exchange sends a message from rank 0 to rank 1, and a message back.
func (s *session) exchange(out, in []int32, peer int) error {
	if peer == 1 {
		if err := mpi.Send(s.ctx, s.comm, out, peer, 0); err != nil {
			return err
		}
	}
	if _, err := mpi.Recv(s.ctx, s.comm, in, peer, 0); err != nil {
		return err
	}
	if peer == 0 {
		return mpi.Send(s.ctx, s.comm, out, peer, 0)
	}
	return nil
}
