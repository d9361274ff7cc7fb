package bench

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// restTime is the initial idle time, which is not measured. It exceeds a rank's spin budget.
const restTime = time.Second

// idleStep measures the processor usage of an idle rank, and of a rank that waits for a message. c/idle.c is its
// counterpart.
func idleStep(sess *session, st step) (Point, error) {
	share := []float64{0}
	if sess.comm.Rank() == 0 {
		m := sess.markAfterRest()
		time.Sleep(time.Duration(st.n) * time.Millisecond)
		point := Point{N: st.n, Resting: m.percent()}
		if err := sess.sendNumber(int32(st.n), 1, 0); err != nil {
			return point, err
		}
		_, err := mpi.Recv(sess.ctx, sess.comm, share, 1, 0)
		point.Waiting = share[0]
		return point, err
	}
	marked := make(chan mark, 1)
	go func() { marked <- sess.markAfterRest() }()
	if err := sess.receiveNumber("the number that ends the wait", 0, 0, int32(st.n)); err != nil {
		return Point{}, err
	}
	share[0] = (<-marked).percent()
	return Point{}, mpi.Send(sess.ctx, sess.comm, share, 0, 0)
}

// mark holds a point in time, and the processor time that had been used by then.
type mark struct {
	at   time.Time
	used time.Duration
	now  func() time.Duration
}

// markAfterRest sleeps for restTime, which is not measured, and returns a mark at the end of that time.
func (s *session) markAfterRest() mark {
	time.Sleep(restTime)
	return mark{time.Now(), s.used(), s.used}
}

// percent returns the processor usage since the mark, in percent.
func (m mark) percent() float64 {
	return 100 * float64(m.now()-m.used) / float64(time.Since(m.at))
}
