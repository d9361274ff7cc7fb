package bench

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// restTime is the part of idleness that is not measured: after it, the spin budget of a
// rank that has polled since its last message is used up.
const restTime = time.Second

// idleStep measures what a rank uses of a processor that has nothing to do, and
// one that waits for a message. c/idle.c is the same.
func idleStep(s *session, st step) (Point, error) {
	share := []float64{0}
	if s.comm.Rank() == 0 {
		m := s.mark()
		time.Sleep(time.Duration(st.n) * time.Millisecond)
		p := Point{N: st.n, Resting: m.percent()}
		if err := s.send(int32(st.n), 1, 0); err != nil {
			return p, err
		}
		_, err := mpi.Recv(s.ctx, s.comm, share, 1, 0)
		p.Waiting = share[0]
		return p, err
	}
	marked := make(chan mark, 1)
	go func() { marked <- s.mark() }()
	if err := s.receive("what ends the wait", 0, 0, int32(st.n)); err != nil {
		return Point{}, err
	}
	share[0] = (<-marked).percent()
	return Point{}, mpi.Send(s.ctx, s.comm, share, 0, 0)
}

// mark is what had been used at a time.
type mark struct {
	at   time.Time
	used time.Duration
	now  func() time.Duration
}

// mark lets the first second pass.
func (s *session) mark() mark {
	time.Sleep(restTime)
	return mark{time.Now(), s.used(), s.used}
}

// percent is what was used of a processor since then.
func (m mark) percent() float64 {
	return 100 * float64(m.now()-m.used) / float64(time.Since(m.at))
}
