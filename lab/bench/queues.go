package bench

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Tags of the queues workload.
const (
	tagPing = iota + 1
	tagPong
	tagControl
	tagPosted = 1000 // the tag of the first posted receive; the others follow
)

// queuesStep measures the time of a message that matches none of the posted receives, and the time to match these in
// reverse order, like the preposted latency benchmark of Underwood and Brightwell (ICPP 2004). c/queues.c is its
// counterpart.
func queuesStep(s *session, st step) (Point, error) {
	if s.comm.Rank() == 0 {
		return queuesNear(s, st)
	}
	return Point{}, queuesFar(s, st)
}

// queuesNear runs rank 0, which takes the times.
func queuesNear(s *session, st step) (Point, error) {
	if _, err := s.recvNumber(1, tagControl); err != nil { // the receives are posted
		return Point{}, err
	}
	half := make([]time.Duration, 0, st.iterations)
	for i := -warmup; i < st.iterations; i++ {
		s.printProgress(st.n, warmup+i, warmup+st.iterations)
		start := time.Now()
		if err := s.sendNumber(int32(i), 1, tagPing); err != nil {
			return Point{}, err
		}
		pong, err := s.recvNumber(1, tagPong)
		if err != nil {
			return Point{}, err
		}
		if i >= 0 {
			half = append(half, time.Since(start)/2)
		}
		if err := s.verifyNumber("a pong", pong, ^int32(i)); err != nil {
			return Point{}, err
		}
	}
	start := time.Now()
	for i := st.n - 1; i >= 0; i-- {
		if err := s.sendNumber(int32(i), 1, tagPosted+i); err != nil {
			return Point{}, err
		}
	}
	_, err := s.recvNumber(1, tagControl) // all messages were received
	p := newPoint(st, half)
	p.Unload = micros(time.Since(start))
	return p, err
}

// queuesFar runs rank 1, which has the queue.
func queuesFar(s *session, st step) error {
	values := make([]int32, st.n)
	posted := requests(mpi.Irecv[int32], st.n)
	for i := range posted {
		var err error
		if posted[i], err = mpi.Irecv(s.comm, values[i:i+1], 0, tagPosted+i); err != nil {
			return err
		}
	}
	if err := s.sendNumber(0, 0, tagControl); err != nil {
		return err
	}
	for i := -warmup; i < st.iterations; i++ {
		ping, err := s.recvNumber(0, tagPing)
		if err != nil {
			return err
		}
		if err := s.sendNumber(^int32(i), 0, tagPong); err != nil {
			return err
		}
		if err := s.verifyNumber("a ping", ping, int32(i)); err != nil {
			return err
		}
	}
	if err := mpi.Waitall(s.ctx, posted, nil); err != nil {
		return err
	}
	if err := s.sendNumber(0, 0, tagControl); err != nil {
		return err
	}
	for i, v := range values {
		if err := s.verifyNumber("a posted receive", v, int32(i)); err != nil {
			return err
		}
	}
	return nil
}
