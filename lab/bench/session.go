package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// session is a rank's part in a workload.
type session struct {
	ctx  context.Context
	comm *mpi.Comm
	out  io.Writer
	// methods are those by which broadcasts are carried out, in turn: one at least.
	methods []method
	// costs are what the methods have cost in a step. A workload without methods
	// has all in the first.
	costs []cost
	// order is that of broadcasts by methods; nil where there are none.
	order *orderer
	// verified is how many messages this rank has verified.
	verified int
	// used returns the processor time of this rank's processes, and memory the
	// most that one of them has had, in KiB.
	used    func() time.Duration
	memory  func() int
	numbers struct{ out, in [1]int32 }
}

// cost is processor time, and how many messages were verified for it.
type cost struct {
	used     time.Duration
	verified int
}

// account counts what a method costs from now on until the returned function is
// called.
func (s *session) account(method int) (end func()) {
	used, verified := s.used(), s.verified
	return func() {
		c := &s.costs[method]
		c.used += s.used() - used
		c.verified += s.verified - verified
	}
}

// run does the steps. Afterwards rank 0 collects what all ranks have counted, and
// prints it with its points, by methods; c/bench.h does the same.
func (s *session) run(w *workload, steps []step) error {
	points := make([][]Point, len(steps))
	// For each method and step the processor time in ns and the messages; then the
	// memory.
	mine := make([]int64, 2*len(s.methods)*len(steps)+1)
	for i, st := range steps {
		s.costs = make([]cost, len(s.methods))
		var err error
		if points[i], err = w.run(s, st); err != nil {
			return fmt.Errorf("%s %d: %w", w.unit, st.n, err)
		}
		for m, c := range s.costs {
			at := 2 * (m*len(steps) + i)
			mine[at], mine[at+1] = int64(c.used), int64(c.verified)
		}
	}
	last := len(mine) - 1
	mine[last] = int64(s.memory())
	if s.comm.Rank() > 0 {
		return mpi.Send(s.ctx, s.comm, mine, 0, 0)
	}
	if err := s.collect(mine); err != nil {
		return err
	}
	var verified int64
	for m := range s.methods {
		for i := range steps {
			at := 2 * (m*len(steps) + i)
			p := &points[i][m]
			p.CPU = micros(time.Duration(mine[at])) / float64(max(mine[at+1], 1))
			p.write(s.out)
			verified += mine[at+1]
		}
	}
	_, err := fmt.Fprintf(s.out, "memory %d\nverified %d\n", mine[last], verified)
	return err
}

// collect adds up what all ranks have counted; of the memory, the last number, the
// most counts.
func (s *session) collect(mine []int64) error {
	last := len(mine) - 1
	theirs := make([]int64, len(mine))
	for r := 1; r < s.comm.Size(); r++ {
		if _, err := mpi.Recv(s.ctx, s.comm, theirs, r, 0); err != nil {
			return err
		}
		for i := range last {
			mine[i] += theirs[i]
		}
		mine[last] = max(mine[last], theirs[last])
	}
	return nil
}

// plain is a workload without methods.
func plain(run func(*session, step) (Point, error)) func(*session, step) ([]Point, error) {
	return func(s *session, st step) ([]Point, error) {
		defer s.account(0)()
		p, err := run(s, st)
		return []Point{p}, err
	}
}

// send sends one number.
func (s *session) send(value int32, to, tag int) error {
	s.numbers.out[0] = value
	return mpi.Send(s.ctx, s.comm, s.numbers.out[:], to, tag)
}

// recv receives one number.
func (s *session) recv(from, tag int) (int32, error) {
	_, err := mpi.Recv(s.ctx, s.comm, s.numbers.in[:], from, tag)
	return s.numbers.in[0], err
}

// expect verifies a message of one number.
func (s *session) expect(what string, got, want int32) error {
	if got != want {
		return fmt.Errorf("%s holds %d instead of %d", what, got, want)
	}
	s.verified++
	return nil
}

// receive receives a number that must be the one that is wanted.
func (s *session) receive(what string, from, tag int, want int32) error {
	got, err := s.recv(from, tag)
	if err != nil {
		return err
	}
	return s.expect(what, got, want)
}
