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
	// verified is how many messages this rank has verified.
	verified int
	// used returns the processor time of this rank's processes, and memory the
	// most that one of them has had, in KiB.
	used    func() time.Duration
	memory  func() int
	numbers struct{ out, in [1]int32 }
}

// run does the steps. Afterwards rank 0 collects what all ranks have counted, and
// prints it with its points; c/bench.h does the same.
func (s *session) run(w *workload, steps []step) error {
	points := make([]Point, len(steps))
	// For each step the processor time in ns and the messages; then the memory.
	mine := make([]int64, 2*len(steps)+1)
	for i, st := range steps {
		used, before := s.used(), s.verified
		var err error
		if points[i], err = w.run(s, st); err != nil {
			return fmt.Errorf("%s %d: %w", w.unit, st.n, err)
		}
		mine[2*i], mine[2*i+1] = int64(s.used()-used), int64(s.verified-before)
	}
	last := len(mine) - 1
	mine[last] = int64(s.memory())
	if s.comm.Rank() > 0 {
		return mpi.Send(s.ctx, s.comm, mine, 0, 0)
	}
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
	var verified int64
	for i := range points {
		points[i].CPU = micros(time.Duration(mine[2*i])) / float64(max(mine[2*i+1], 1))
		points[i].write(s.out)
		verified += mine[2*i+1]
	}
	_, err := fmt.Fprintf(s.out, "memory %d\nverified %d\n", mine[last], verified)
	return err
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
