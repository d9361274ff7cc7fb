package bench

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// restTime is the initial idle time that is not measured. After it, a rank has used up its spin budget.
const restTime = time.Second

// idleStep measures the processor usage of an idle rank, and of a rank that waits for a message. c/idle.c is its
// counterpart.
func idleStep(s *session, st step) (Point, error) {
	share := []float64{0}
	if s.comm.Rank() == 0 {
		m := s.markAfterRest()
		time.Sleep(time.Duration(st.n) * time.Millisecond)
		p := Point{N: st.n, Resting: m.percent()}
		if err := s.sendNumber(int32(st.n), 1, 0); err != nil {
			return p, err
		}
		_, err := mpi.Recv(s.ctx, s.comm, share, 1, 0)
		p.Waiting = share[0]
		return p, err
	}
	marked := make(chan mark, 1)
	go func() { marked <- s.markAfterRest() }()
	if err := s.receiveNumber("what ends the wait", 0, 0, int32(st.n)); err != nil {
		return Point{}, err
	}
	share[0] = (<-marked).percent()
	return Point{}, mpi.Send(s.ctx, s.comm, share, 0, 0)
}

// mark is a point in time, and the processor time used until then.
type mark struct {
	at   time.Time
	used time.Duration
	now  func() time.Duration
}

// markAfterRest sleeps for restTime, and then returns a mark.
func (s *session) markAfterRest() mark {
	time.Sleep(restTime)
	return mark{time.Now(), s.used(), s.used}
}

// percent returns the processor usage since the mark, in percent.
func (m mark) percent() float64 {
	return 100 * float64(m.now()-m.used) / float64(time.Since(m.at))
}
