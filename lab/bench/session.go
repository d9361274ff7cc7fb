package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// session holds the state of one rank while it runs a workload.
type session struct {
	ctx  context.Context
	comm *mpi.Comm
	out  io.Writer
	// methods lists the broadcast methods to use in turn. It has at least one element.
	methods []method
	// costs holds what each broadcast method has cost in a step. Workloads without methods use only the first element.
	costs []cost
	// warm is the time for which the first step is repeated before measurements begin.
	warm time.Duration
	// order changes the order of the ranks in a broadcast, as the method requires. It may be nil.
	order *orderer
	// verified is the number of messages that this rank has verified.
	verified int
	// used returns the processor time used by the processes of this rank, and memory their largest peak memory in KiB.
	used   func() time.Duration
	memory func() int
	// countPath begins to count the datagrams of a step, and end reports whether they used the configured path. It is
	// nil for a rank without a path.
	countPath func() (end func(step) (note string, err error))
	numbers   struct{ out, in [1]int32 }
	// paced holds the start time of the step, and when its progress was last printed.
	paced struct{ began, last time.Time }
}

// cost holds an amount of processor time, and the number of messages that were verified in that time.
type cost struct {
	used     time.Duration
	verified int
}

// account charges a broadcast method for the processor time used, and for the messages verified, until the returned
// function end is called.
func (s *session) account(method int) (end func()) {
	used, verified := s.used(), s.verified
	return func() {
		c := &s.costs[method]
		c.used += s.used() - used
		c.verified += s.verified - verified
	}
}

// run runs the steps. After each step, rank 0 collects the counts from all ranks, and prints them with the points of
// all methods. c/bench.h is its counterpart.
func (s *session) run(w *workload, steps []step) error {
	if len(steps) > 0 && s.warm > 0 {
		if err := s.warmUp(w, steps[0]); err != nil {
			return fmt.Errorf("%s %d, before it is measured: %w", w.unit, steps[0].n, err)
		}
	}
	for _, st := range steps {
		s.costs = make([]cost, len(s.methods))
		points, err := s.runStep(w, st)
		if err == nil {
			err = s.report(points)
		}
		if err != nil {
			return fmt.Errorf("%s %d: %w", w.unit, st.n, err)
		}
	}
	return nil
}

// runStep runs a step. If the datagrams did not use the path of the rank as intended, it returns an error. If the
// transport had another intention, rank 0 prints a note.
func (s *session) runStep(w *workload, st step) ([]Point, error) {
	if s.countPath == nil {
		return w.run(s, st)
	}
	end := s.countPath()
	points, err := w.run(s, st)
	if err != nil {
		return nil, err
	}
	note, err := end(st)
	if err == nil && note != "" && s.comm.Rank() == 0 {
		_, err = fmt.Fprintf(s.out, "%s %s\n", notePrefix, note)
	}
	return points, err
}

// warmUp runs a step repeatedly until rank 0 has done so for the warm-up time. It discards the results.
func (s *session) warmUp(w *workload, st step) error {
	for began, more := time.Now(), true; more; {
		s.costs = make([]cost, len(s.methods))
		if _, err := w.run(s, st); err != nil {
			return err
		}
		var err error
		if more, err = s.broadcastBool(time.Since(began) < s.warm); err != nil {
			return err
		}
	}
	return nil
}

// broadcastBool broadcasts a value from rank 0, and returns that value on all ranks.
func (s *session) broadcastBool(yes bool) (bool, error) {
	if s.comm.Rank() > 0 {
		got, err := s.recvNumber(0, 0)
		return got != 0, err
	}
	var value int32
	if yes {
		value = 1
	}
	for r := 1; r < s.comm.Size(); r++ {
		if err := s.sendNumber(value, r, 0); err != nil {
			return false, err
		}
	}
	return yes, nil
}

// report collects the counts from all ranks after a step. Rank 0 prints them.
func (s *session) report(points []Point) error {
	// Each rank sends the processor time in ns and the number of verified messages for each method, followed by its
	// peak memory.
	mine := make([]int64, 2*len(s.costs)+1)
	for m, c := range s.costs {
		mine[2*m], mine[2*m+1] = int64(c.used), int64(c.verified)
	}
	last := len(mine) - 1
	mine[last] = int64(s.memory())
	if s.comm.Rank() > 0 {
		return mpi.Send(s.ctx, s.comm, mine, 0, 0)
	}
	if err := s.collect(mine); err != nil {
		return err
	}
	var text bytes.Buffer
	var verified int64
	for m := range s.costs {
		p := &points[m]
		p.CPU = micros(time.Duration(mine[2*m])) / float64(max(mine[2*m+1], 1))
		p.write(&text)
		verified += mine[2*m+1]
	}
	fmt.Fprintf(&text, "memory %d\nverified %d\n", mine[last], verified)
	_, err := s.out.Write(text.Bytes())
	return err
}

// collect adds the counts received from all other ranks to the slice mine. The last number is the peak memory, of which
// it takes the maximum instead.
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

// printProgress prints on rank 0 the number of completed rounds of step n: before the first round, and later once per
// interval, so that a fast step prints a single line.
func (s *session) printProgress(n, done, all int) {
	now := time.Now()
	switch {
	case s.comm.Rank() > 0:
		return
	case done == 0:
		s.paced.began = now
	case now.Sub(s.paced.last) < paceEvery:
		return
	}
	s.paced.last = now
	fmt.Fprintln(s.out, stepProgress{n, done, all, now.Sub(s.paced.began)})
}

// withoutMethods adapts a step function that knows no broadcast methods to the form in which workloads are run.
func withoutMethods(run func(*session, step) (Point, error)) func(*session, step) ([]Point, error) {
	return func(s *session, st step) ([]Point, error) {
		defer s.account(0)()
		p, err := run(s, st)
		return []Point{p}, err
	}
}

// sendNumber sends one number.
func (s *session) sendNumber(value int32, to, tag int) error {
	s.numbers.out[0] = value
	return mpi.Send(s.ctx, s.comm, s.numbers.out[:], to, tag)
}

// recvNumber receives one number.
func (s *session) recvNumber(from, tag int) (int32, error) {
	_, err := mpi.Recv(s.ctx, s.comm, s.numbers.in[:], from, tag)
	return s.numbers.in[0], err
}

// verifyNumber verifies a message of one number.
func (s *session) verifyNumber(what string, got, want int32) error {
	if got != want {
		return fmt.Errorf("%s holds %d instead of %d", what, got, want)
	}
	s.verified++
	return nil
}

// receiveNumber receives one number and verifies it.
func (s *session) receiveNumber(what string, from, tag int, want int32) error {
	got, err := s.recvNumber(from, tag)
	if err != nil {
		return err
	}
	return s.verifyNumber(what, got, want)
}
