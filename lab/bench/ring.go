package bench

import (
	"fmt"
	"time"
)

// ringStep measures how long a token takes from rank to rank. The token travels around all ranks, and each of them
// increments it. c/ring.c is its counterpart.
func ringStep(sess *session, st step) (Point, error) {
	rank, ranks := sess.comm.Rank(), sess.comm.Size()
	if ranks != st.n {
		return Point{}, fmt.Errorf("there are %d ranks for a step of %d", ranks, st.n)
	}
	next, before := (rank+1)%ranks, (rank+ranks-1)%ranks
	hops := make([]time.Duration, 0, st.iterations)
	for i := -warmup; i < st.iterations; i++ {
		sess.printProgress(st.n, warmup+i, warmup+st.iterations)
		start, first := time.Now(), int32(i*ranks)
		if rank == 0 {
			if err := sess.sendNumber(first, next, 0); err != nil {
				return Point{}, err
			}
		}
		token, err := sess.recvNumber(before, 0)
		if err != nil {
			return Point{}, err
		}
		if i >= 0 {
			hops = append(hops, time.Since(start)/time.Duration(ranks))
		}
		if rank > 0 {
			if err := sess.sendNumber(token+1, next, 0); err != nil {
				return Point{}, err
			}
		}
		if err := sess.verifyNumber("the token", token, first+int32(before)); err != nil {
			return Point{}, err
		}
	}
	return newPoint(st, hops), nil
}
