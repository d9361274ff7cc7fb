package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// The tags of the queues workload.
const (
	tagPing = iota + 1
	tagPong
	tagControl
	tagPosted = 1000 // and more: one for each posted receive
)

// runQueues measures what receives that wait cost a message that is for none of
// them, and how long it takes to empty them from the back: the preposted latency
// benchmark of Underwood and Brightwell (ICPP 2004). c/queues.c is the same.
func runQueues(ctx context.Context, c *mpi.Comm, steps []step, out io.Writer) error {
	q := queues{pair{ctx: ctx, comm: c}}
	for _, s := range steps {
		do := q.far
		if c.Rank() == 0 {
			do = q.near
		}
		p, err := do(s)
		if err != nil {
			return fmt.Errorf("depth %d: %w", s.n, err)
		}
		if c.Rank() == 0 {
			p.write(out)
		}
	}
	if c.Rank() == 0 {
		fmt.Fprintf(out, verifiedFormat, q.verified)
	}
	return nil
}

type queues struct{ pair }

// near is rank 0, which measures.
func (q *queues) near(s step) (point, error) {
	if _, err := q.recv(tagControl); err != nil { // the receives are posted
		return point{}, err
	}
	half := make([]time.Duration, 0, s.iterations)
	for i := -warmup; i < s.iterations; i++ {
		start := time.Now()
		if err := q.send(int32(i), tagPing); err != nil {
			return point{}, err
		}
		pong, err := q.recv(tagPong)
		if err != nil {
			return point{}, err
		}
		if i >= 0 {
			half = append(half, time.Since(start)/2)
		}
		if err := q.expect("a pong", pong, ^int32(i)); err != nil {
			return point{}, err
		}
	}
	start := time.Now()
	for i := s.n - 1; i >= 0; i-- {
		if err := q.send(int32(i), tagPosted+i); err != nil {
			return point{}, err
		}
	}
	if _, err := q.recv(tagControl); err != nil { // all have arrived
		return point{}, err
	}
	unload := time.Since(start)
	far, err := q.recv(tagControl)
	q.verified += int(far)
	return newPoint(s, half, unload), err
}

// far is rank 1, which has the queue.
func (q *queues) far(s step) (point, error) {
	values := make([]int32, s.n)
	posted := make([]*mpi.Request, s.n)
	q.verified = 0
	for i := range posted {
		var err error
		if posted[i], err = mpi.Irecv(q.comm, values[i:i+1], 0, tagPosted+i); err != nil {
			return point{}, err
		}
	}
	if err := q.send(0, tagControl); err != nil {
		return point{}, err
	}
	for i := -warmup; i < s.iterations; i++ {
		ping, err := q.recv(tagPing)
		if err != nil {
			return point{}, err
		}
		if err := q.send(^int32(i), tagPong); err != nil {
			return point{}, err
		}
		if err := q.expect("a ping", ping, int32(i)); err != nil {
			return point{}, err
		}
	}
	if err := mpi.Waitall(q.ctx, posted, nil); err != nil {
		return point{}, err
	}
	if err := q.send(0, tagControl); err != nil {
		return point{}, err
	}
	for i, v := range values {
		if err := q.expect("a posted receive", v, int32(i)); err != nil {
			return point{}, err
		}
	}
	return point{}, q.send(int32(q.verified), tagControl)
}

// pair sends and receives single numbers between two ranks.
type pair struct {
	ctx      context.Context
	comm     *mpi.Comm
	verified int
	out, in  [1]int32
}

func (p *pair) send(value int32, tag int) error {
	p.out[0] = value
	return mpi.Send(p.ctx, p.comm, p.out[:], 1-p.comm.Rank(), tag)
}

func (p *pair) recv(tag int) (int32, error) {
	_, err := mpi.Recv(p.ctx, p.comm, p.in[:], 1-p.comm.Rank(), tag)
	return p.in[0], err
}

// expect verifies a message.
func (p *pair) expect(what string, got, want int32) error {
	if got != want {
		return fmt.Errorf("%s holds %d instead of %d", what, got, want)
	}
	p.verified++
	return nil
}
