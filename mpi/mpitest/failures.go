package mpitest

import (
	"context"
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// truncation checks that a receive stores the beginning of a message that is too long.
func truncation(r *rank) {
	for i, n := range sizes[1:] {
		for _, early := range []bool{true, false} { // whether the receive is posted before the message is sent
			if r.Rank() == 0 {
				if early {
					r.await(1)
				}
				q := must(mpi.Isend(r.Comm, pattern(n, i), 1, i))(r)
				if !early {
					r.notify(1, 0)
				}
				must(q.Wait(r.ctx))(r)
				continue
			}
			b := make([]int32, n)
			b[n-1] = -7
			if !early {
				r.await(0)
			}
			q := must(mpi.Irecv(r.Comm, b[:n-1], 0, i))(r)
			if early {
				r.notify(0, 0)
			}
			st, err := q.Wait(r.ctx)
			r.checkClass(err, mpi.ErrTruncate)
			checkEqual(r, "source", st.Source, 0)
			checkEqual(r, "tag", st.Tag, i)
			checkEqual(r, "count", mpi.Count[int32](st), n-1)
			r.checkPattern(b, n-1, i)
			checkEqual(r, "number behind the buffer", b[n-1], -7)
		}
	}
	// Later messages are complete.
	if r.Rank() == 0 {
		r.notify(1, 77)
	} else {
		checkEqual(r, "number", r.await(0), 77)
	}
}

// shortContext returns a context with a deadline that expires while a test is running.
func (r *rank) shortContext() (context.Context, context.CancelFunc) {
	return r.withTimeout(r.ctx, 20*time.Millisecond)
}

// checkDeadline checks the error of a call whose context has reached its deadline.
func (r *rank) checkDeadline(err error) {
	r.t.Helper()
	r.checkClass(err, mpi.ErrOther)
	if !errors.Is(err, context.DeadlineExceeded) {
		r.fatalf("%v is not a passed deadline", err)
	}
	var wait *mpe.WaitError
	if !errors.As(err, &wait) {
		r.fatalf("%v does not say who waits for whom", err)
	}
	checkEqual(r, "the waiting rank", int(wait.Local), r.Rank())
}

// deadline checks that a call whose context is done cancels its operation.
func deadline(r *rank) {
	const tag = 3
	other := 1 - r.Rank()
	ctx, stop := r.shortContext()
	defer stop()
	b := []int32{-1}
	_, err := mpi.Recv(ctx, r.Comm, b, other, tag)
	r.checkDeadline(err)
	_, err = mpi.Recv(ctx, r.Comm, b, mpi.AnySource, tag)
	r.checkDeadline(err)
	if _, err = mpi.Probe(ctx, r.Comm, other, tag); !errors.Is(err, context.DeadlineExceeded) {
		r.fatalf("Probe says %v", err)
	}
	r.checkDeadline(mpi.Ssend(ctx, r.Comm, []int32{5}, other, tag+1))
	_, err = mpi.Sendrecv(ctx, r.Comm, []int32{5}, mpi.ProcNull, tag, b, other, tag)
	r.checkDeadline(err)
	r.syncWith(other)
	// No cancelled receive may get this message, and both ranks must be able to continue.
	q := must(mpi.Isend(r.Comm, []int32{6}, other, tag))(r)
	must(mpi.Recv(r.ctx, r.Comm, b, other, tag))(r)
	checkEqual(r, "number", b[0], 6)
	must(q.Wait(r.ctx))(r)
}

// cause tests a call whose context is cancelled. The call's error must match both context.Canceled and the cause given
// by the caller.
func cause(r *rank) {
	const tag = 4
	other := 1 - r.Rank()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(r.ctx)
	cancel(enough)
	b := []int32{-1}
	_, recv := mpi.Recv(ctx, r.Comm, b, other, tag)
	_, probe := mpi.Probe(ctx, r.Comm, other, tag)
	q := must(mpi.Irecv(r.Comm, b, other, tag))(r)
	all := mpi.Waitall(ctx, []mpi.Request{q}, nil)
	q = must(mpi.Irecv(r.Comm, b, other, tag))(r)
	_, _, any := mpi.Waitany(ctx, []mpi.Request{q})
	r.syncWith(other) // no receive of the other rank remains that could match the next message
	for i, err := range []error{recv, probe, mpi.Ssend(ctx, r.Comm, b, other, tag), all, any} {
		if !errors.Is(err, context.Canceled) || !errors.Is(err, enough) {
			r.fatalf("call %d: %v", i, err)
		}
	}
	r.syncWith(other)
}

// cancel checks that no receive gets the message of a cancelled send.
func cancel(r *rank) {
	const tag = 5
	other := 1 - r.Rank()
	lost := []int32{-1}
	request := must(mpi.Irecv(r.Comm, lost, other, tag))(r)
	r.must(request.Cancel())
	st := must(request.Wait(r.ctx))(r)
	checkEqual(r, "cancelled", st.Cancelled, true)
	r.checkClass(request.Cancel(), mpi.ErrRequest)
	r.syncWith(other) // both have cancelled

	for i, n := range sizes[1:] {
		if r.Rank() == 1 {
			b := make([]int32, n)
			cancelled := r.await(0) == 1
			must(mpi.Recv(r.ctx, r.Comm, b, 0, tag))(r)
			if cancelled {
				r.checkPattern(b, n, i+10)
			} else {
				r.checkPattern(b, n, i)
				must(mpi.Recv(r.ctx, r.Comm, b, 0, tag))(r)
				r.checkPattern(b, n, i+10)
			}
			continue
		}
		q := must(mpi.Issend(r.Comm, pattern(n, i), 1, tag))(r)
		r.must(q.Cancel())
		// No receive has been posted, so it cannot be too late to cancel.
		st := must(q.Wait(r.ctx))(r)
		checkEqual(r, "cancelled", st.Cancelled, true)
		r.notify(1, 1)
		r.must(mpi.Send(r.ctx, r.Comm, pattern(n, i+10), 1, tag))
	}
	checkEqual(r, "buffer of the cancelled receive", lost[0], -1)

	// A completed receive cannot be cancelled.
	b := []int32{0}
	request = must(mpi.Irecv(r.Comm, b, other, tag))(r)
	must(mpi.Sendrecv(r.ctx, r.Comm, []int32{8}, other, tag, []int32{}, mpi.ProcNull, 0))(r)
	r.syncWith(other)
	// The other rank sent its message before its notification, so by now the message has matched.
	r.must(request.Cancel())
	st = must(request.Wait(r.ctx))(r)
	checkEqual(r, "cancelled", st.Cancelled, false)
	checkEqual(r, "number", b[0], 8)
}

// arguments checks which error class each invalid argument causes.
func arguments(r *rank) {
	b := []int32{1}
	comm := r.Comm
	other := 1 - r.Rank()
	for _, to := range []int{-1, -3, 2, mpi.Undefined} {
		r.checkClass(mpi.Send(r.ctx, comm, b, to, 0), mpi.ErrRank)
		r.checkClass(mpi.Bsend(comm, b, to, 0), mpi.ErrRank)
		_, err := mpi.Isend(comm, b, to, 0)
		r.checkClass(err, mpi.ErrRank)
		_, err = mpi.SendInit(comm, b, to, 0)
		r.checkClass(err, mpi.ErrRank)
		if to != mpi.AnySource {
			_, err = mpi.Recv(r.ctx, comm, b, to, 0)
			r.checkClass(err, mpi.ErrRank)
			_, err = mpi.RecvInit(comm, b, to, 0)
			r.checkClass(err, mpi.ErrRank)
			_, _, err = mpi.Iprobe(comm, to, 0)
			r.checkClass(err, mpi.ErrRank)
		}
	}
	beyond := mpi.TagUB
	beyond++ // negative if an int has 32 bits
	for _, tag := range []int{-1, -2, beyond} {
		r.checkClass(mpi.Send(r.ctx, comm, b, other, tag), mpi.ErrTag)
		if tag != mpi.AnyTag {
			_, err := mpi.Irecv(comm, b, other, tag)
			r.checkClass(err, mpi.ErrTag)
			_, err = mpi.Probe(r.ctx, comm, other, tag)
			r.checkClass(err, mpi.ErrTag)
		}
	}
	r.checkClass(mpi.Send(r.ctx, nil, b, 0, 0), mpi.ErrComm)
	r.checkClass(mpi.Send(r.ctx, nil, b, mpi.ProcNull, 0), mpi.ErrComm)
	_, err := mpi.Irecv(nil, b, 0, 0)
	r.checkClass(err, mpi.ErrComm)
	_, err = (*mpi.Comm)(nil).Dup(r.ctx)
	r.checkClass(err, mpi.ErrComm)
	_, err = r.Split(r.ctx, -5, 0)
	r.checkClass(err, mpi.ErrArg)
	_, err = r.Create(r.ctx, r.Group(), -1)
	r.checkClass(err, mpi.ErrTag)
}
