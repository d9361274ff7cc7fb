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

// queuesNear runs the part of rank 0, which measures the times.
func queuesNear(sess *session, st step) (Point, error) {
	if _, err := sess.recvNumber(1, tagControl); err != nil { // the receives are posted
		return Point{}, err
	}
	half := make([]time.Duration, 0, st.iterations)
	for i := -warmup; i < st.iterations; i++ {
		sess.printProgress(st.n, warmup+i, warmup+st.iterations)
		start := time.Now()
		if err := sess.sendNumber(int32(i), 1, tagPing); err != nil {
			return Point{}, err
		}
		pong, err := sess.recvNumber(1, tagPong)
		if err != nil {
			return Point{}, err
		}
		if i >= 0 {
			half = append(half, time.Since(start)/2)
		}
		if err := sess.verifyNumber("a pong", pong, ^int32(i)); err != nil {
			return Point{}, err
		}
	}
	start := time.Now()
	for i := st.n - 1; i >= 0; i-- {
		if err := sess.sendNumber(int32(i), 1, tagPosted+i); err != nil {
			return Point{}, err
		}
	}
	_, err := sess.recvNumber(1, tagControl) // all messages were received
	p := newPoint(st, half)
	p.Unload = micros(time.Since(start))
	return p, err
}

// queuesFar runs the part of rank 1, which posts the receives.
func queuesFar(sess *session, st step) error {
	values := make([]int32, st.n)
	posted := requests(mpi.Irecv[int32], st.n)
	for i := range posted {
		var err error
		if posted[i], err = mpi.Irecv(sess.comm, values[i:i+1], 0, tagPosted+i); err != nil {
			return err
		}
	}
	if err := sess.sendNumber(0, 0, tagControl); err != nil {
		return err
	}
	for i := -warmup; i < st.iterations; i++ {
		ping, err := sess.recvNumber(0, tagPing)
		if err != nil {
			return err
		}
		if err := sess.sendNumber(^int32(i), 0, tagPong); err != nil {
			return err
		}
		if err := sess.verifyNumber("a ping", ping, int32(i)); err != nil {
			return err
		}
	}
	if err := mpi.Waitall(sess.ctx, posted, nil); err != nil {
		return err
	}
	if err := sess.sendNumber(0, 0, tagControl); err != nil {
		return err
	}
	for i, v := range values {
		if err := sess.verifyNumber("a posted receive", v, int32(i)); err != nil {
			return err
		}
	}
	return nil
}
