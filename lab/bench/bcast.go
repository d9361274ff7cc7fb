package bench

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

const (
	// bcastRanks is how many ranks a broadcast has.
	bcastRanks = 8
	// busyBytes is what rank 1 has to send to rank 2 when a broadcast begins.
	// It takes longer than a broadcast of short data.
	busyBytes = 1 << 20
	// bcastParts is the number of parts of a step. Each part runs all methods, one after another.
	bcastParts = 10
)

// The tags of a broadcast's other messages.
const (
	tagReady = iota + 1
	tagBusy
	tagTimes
)

var (
	bcastSteps = []step{
		{4, 600}, {16, 600}, {64, 600}, {256, 600}, {1 << 10, 600}, {4 << 10, 600}, {16 << 10, 500},
		{64 << 10, 300}, {256 << 10, 120}, {1 << 20, 50}, {4 << 20, 20},
	}
	bcastBusySteps = []step{
		{4, 300}, {16, 300}, {64, 300}, {256, 300}, {1 << 10, 300}, {4 << 10, 300}, {16 << 10, 300},
		{64 << 10, 200}, {256 << 10, 100}, {1 << 20, 50}, {4 << 20, 20},
	}
	bcastQuick = []step{{4, 10}, {64 << 10, 3}}
)

func bcastSize(step) int { return bcastRanks }

// bcastStep measures broadcasts from rank 0, while rank 1 has so many bytes of its own
// to send, or none. c/bcast.c is the same, by one method.
//
// The time is that from rank 0's call until the last rank has the data, by the clock
// that all processes of a machine have in common. All others have said before that they
// are about to call, rank 1 last of all: nobody is late, and nobody but rank 1 has
// anything else to do.
func bcastStep(s *session, st step, busy int) ([]Point, error) {
	b, err := newBcast(s, st, busy)
	if err != nil {
		return nil, err
	}
	share := (st.iterations + bcastParts - 1) / bcastParts
	for from, to := -warmup, 0; from < st.iterations; from, to = to, min(to+share, st.iterations) {
		for m := range s.methods {
			if err := b.part(m, from, to); err != nil {
				return nil, fmt.Errorf("by %q: %w", s.methods[m].String(), err)
			}
		}
	}
	points := make([]Point, len(s.methods))
	for m := range points {
		if points[m], err = b.point(st, b.times[m]); err != nil {
			return nil, err
		}
	}
	return points, nil
}

// bcast is a rank's part in the broadcasts of a step.
type bcast struct {
	*session
	rank, iterations int
	// data is what is broadcast, and own what rank 1 sends to rank 2, or nothing.
	data, own []int32
	// times are when each broadcast by each method began, on rank 0, and ended, on the
	// others.
	times [][]int64
}

func newBcast(s *session, st step, busy int) (*bcast, error) {
	words, err := wordsOf(st.n)
	if err != nil {
		return nil, err
	}
	if ranks := s.comm.Size(); ranks != bcastRanks {
		return nil, fmt.Errorf("there are %d ranks instead of %d", ranks, bcastRanks)
	}
	b := &bcast{
		session: s, rank: s.comm.Rank(), iterations: st.iterations,
		data: make([]int32, words), own: make([]int32, busy/wordLen), times: make([][]int64, len(s.methods)),
	}
	if b.rank == 0 {
		fill(b.data, 0)
	}
	if b.rank == 1 {
		fill(b.own, 1)
	}
	return b, nil
}

// part makes some broadcasts by a method.
func (b *bcast) part(method, from, to int) error {
	defer b.account(method)()
	m := &b.methods[method]
	options := b.use(m)
	for i := from; i < to; i++ {
		// No two broadcasts have the same number.
		at, err := b.round(options, i*len(b.methods)+method, i == -warmup || i == b.iterations-1)
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		if i >= 0 {
			b.times[method] = append(b.times[method], int64(at))
		}
	}
	return nil
}

// use has the broadcasts from now on carried out by a method, with the options that are
// returned.
func (b *bcast) use(m *method) []mpi.Option {
	if b.order != nil {
		b.order.form = m.order.Form()
	}
	return m.options()
}

// round is a broadcast of a number. It returns when it began, on rank 0, or ended.
func (b *bcast) round(options []mpi.Option, i int, all bool) (time.Duration, error) {
	own, err := b.ready(i)
	if err != nil {
		return 0, err
	}
	start := sharedNow()
	if err := mpi.Bcast(b.ctx, b.comm, b.data, 0, options...); err != nil {
		return 0, err
	}
	end := sharedNow()
	if own != nil {
		if _, err := own.Wait(b.ctx); err != nil {
			return 0, err
		}
		if b.rank == 2 {
			if err := verify(b.own, number(i, 1), 1, all); err != nil {
				return 0, fmt.Errorf("what rank 1 sends: %w", err)
			}
			b.verified++
		}
	}
	if b.rank == 0 {
		return start, nil
	}
	b.verified++
	return end, verify(b.data, number(i, 0), 0, all)
}

// ready returns when this rank is to call. Rank 1 then has begun to send what it has,
// and rank 2 is ready to receive it.
func (b *bcast) ready(i int) (own *mpi.Request, err error) {
	switch {
	case b.rank == 0:
		stamp(b.data, number(i, 0))
		_, err := b.recv(1, tagReady)
		return nil, err
	case b.rank > 1:
		if b.rank == 2 && len(b.own) > 0 {
			r, err := mpi.Irecv(b.comm, b.own, 1, tagBusy)
			if err != nil {
				return nil, err
			}
			own = &r
		}
		return own, b.send(0, 1, tagReady)
	}
	for r := 2; r < bcastRanks; r++ {
		if _, err := b.recv(r, tagReady); err != nil {
			return nil, err
		}
	}
	if err := b.send(0, 0, tagReady); err != nil || len(b.own) == 0 {
		return nil, err
	}
	stamp(b.own, number(i, 1))
	r, err := mpi.Isend(b.comm, b.own, 2, tagBusy)
	return &r, err
}

// point has rank 0 collect when each rank had the data.
func (b *bcast) point(st step, times []int64) (Point, error) {
	if b.rank > 0 {
		return Point{}, mpi.Send(b.ctx, b.comm, times, 0, tagTimes)
	}
	ends, took := make([]int64, len(times)), make([]time.Duration, len(times))
	for r := 1; r < bcastRanks; r++ {
		if _, err := mpi.Recv(b.ctx, b.comm, ends, r, tagTimes); err != nil {
			return Point{}, err
		}
		for i, end := range ends {
			took[i] = max(took[i], time.Duration(end-times[i]))
		}
	}
	return newPoint(st, took), nil
}
