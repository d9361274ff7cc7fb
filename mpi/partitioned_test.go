package mpi_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// onTwo runs a program on two ranks, each in a goroutine. An error in one of them ends both.
func onTwo(t *testing.T, program func(ctx context.Context, c *mpi.Comm, me int) error) {
	t.Helper()
	err := job.Run(t.Context(), 2,
		func(ctx context.Context, world *mpi.Comm) error { return program(ctx, world, world.Rank()) })
	if err != nil {
		t.Error(err)
	}
}

// ints returns a buffer of all elements of a slice.
func ints(list []int32) mpi.Buffer { return mpi.Typed(list, len(list), mpi.TypeOf[int32]()) }

// TestPartitioned checks that a message arrives when all partitions are ready, in any order, each time it is started.
func TestPartitioned(t *testing.T) {
	const parts, each = 5, 3
	onTwo(t, func(ctx context.Context, c *mpi.Comm, me int) error {
		buf := make([]int32, parts*each)
		if me == 0 {
			p, err := c.PsendInit(ints(buf), parts, 1, 7)
			if err != nil {
				return err
			}
			for round := range int32(3) {
				r, err := p.Start()
				if err != nil {
					return err
				}
				order := []int{3, 0, 4, 2}
				for _, part := range order {
					buf[part*each] = 100*round + int32(part)
					if err := p.Pready(part, part); err != nil {
						return err
					}
				}
				// Nothing arrives without the last partition: the other rank confirms that first.
				if err := mpi.Barrier(ctx, c); err != nil {
					return err
				}
				if _, done, err := r.Test(); done || err != nil || !r.Active() {
					return errors.Join(errors.New("the send ends before all is ready"), err)
				}
				if err := mpi.Barrier(ctx, c); err != nil {
					return err
				}
				buf[each] = 100*round + 1
				if err := p.Pready(1, 1); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
				if r.Active() {
					return errors.New("the send is active after its end")
				}
			}
			return p.Free()
		}
		p, err := c.PrecvInit(ints(buf), parts, 0, 7)
		if err != nil {
			return err
		}
		for round := range int32(3) {
			r, err := p.Start()
			if err != nil {
				return err
			}
			if err := mpi.Barrier(ctx, c); err != nil {
				return err
			}
			if done, err := p.Parrived(3); done || err != nil {
				return errors.Join(errors.New("a partition arrives before all are ready"), err)
			}
			if err := mpi.Barrier(ctx, c); err != nil {
				return err
			}
			for part := range parts {
				for done := false; !done; {
					if done, err = p.Parrived(part); err != nil {
						return err
					}
				}
				if buf[part*each] != 100*round+int32(part) {
					return errors.New("another message")
				}
			}
			st, err := r.Wait(ctx)
			if err != nil || st.Source != 0 || st.Tag != 7 || st.Bytes != 4*parts*each {
				return errors.Join(errors.New("another status"), err)
			}
			if done, err := p.Parrived(0); !done || err != nil {
				return errors.Join(errors.New("it has not arrived after its end"), err)
			}
		}
		return p.Free()
	})
}

// TestPartitionedMatch checks that partitioned sends and receives match in the order in which they were initialized,
// not started, and never match other messages with the same tag.
func TestPartitionedMatch(t *testing.T) {
	onTwo(t, func(ctx context.Context, c *mpi.Comm, me int) error {
		const tag = mpi.TagUB
		a, b, plain := []int32{1}, []int32{2}, []int32{3}
		if me == 0 {
			first, err := c.PsendInit(ints(a), 1, 1, tag)
			if err != nil {
				return err
			}
			second, err := c.PsendInit(ints(b), 1, 1, tag)
			if err != nil {
				return err
			}
			for _, p := range []*mpi.Partitioned{second, first} { // in reverse order
				r, err := p.Start()
				if err != nil {
					return err
				}
				if err := p.Pready(0, 0); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
			}
			return mpi.Send(ctx, c, plain, 1, tag)
		}
		a, b, plain = []int32{0}, []int32{0}, []int32{0}
		if _, err := mpi.Recv(ctx, c, plain, mpi.AnySource, mpi.AnyTag); err != nil {
			return err
		}
		first, err := c.PrecvInit(ints(a), 1, 0, tag)
		if err != nil {
			return err
		}
		second, err := c.PrecvInit(ints(b), 1, 0, tag)
		if err != nil {
			return err
		}
		for _, p := range []*mpi.Partitioned{first, second} {
			r, err := p.Start()
			if err != nil {
				return err
			}
			if i, _, err := mpi.Waitany(ctx, []mpi.Request{{}, r}); i != 1 || err != nil {
				return errors.Join(errors.New("any"), err)
			}
		}
		if a[0] != 1 || b[0] != 2 || plain[0] != 3 {
			return errors.New("another order")
		}
		return nil
	})
}

// TestPartitionedWaits waits for a receive before the send exists. Other goroutines then mark the partitions ready. The
// datatype has gaps.
func TestPartitionedWaits(t *testing.T) {
	const parts = 8
	every, err := datatype.Resized(must(datatype.Vector(2, 1, 2, mpi.TypeOf[int32]())), 0, 16)
	if err != nil {
		t.Fatal(err)
	}
	for _, big := range []int{1, 10000} { // several times the eager limit
		onTwo(t, func(ctx context.Context, c *mpi.Comm, me int) error {
			buf := make([]int32, 4*parts*big)
			b := mpi.Typed(buf, parts*big, every)
			if me == 1 {
				p, err := c.PrecvInit(b, parts, 0, 1)
				if err != nil {
					return err
				}
				r, err := p.Start()
				if err != nil {
					return err
				}
				if err := mpi.Send(ctx, c, []int32{0}, 0, 2); err != nil {
					return err
				}
				indices, err := mpi.Waitsome(ctx, []mpi.Request{r}, nil, nil)
				if err != nil || len(indices) != 1 {
					return errors.Join(errors.New("some"), err)
				}
				for i, v := range buf {
					if want := int32(i) * int32(1-i%2); v != want {
						return errors.New("another message")
					}
				}
				return p.Free()
			}
			if _, err := mpi.Recv(ctx, c, []int32{0}, 1, 2); err != nil {
				return err
			}
			p, err := c.PsendInit(b, parts, 1, 1)
			if err != nil {
				return err
			}
			r, err := p.Start()
			if err != nil {
				return err
			}
			var all sync.WaitGroup
			errs := make([]error, parts)
			for part := range parts {
				all.Go(func() {
					for i := range 4 * big {
						buf[4*big*part+i] = int32(4*big*part + i)
					}
					errs[part] = p.Pready(part, part)
				})
			}
			_, err = r.Wait(ctx)
			all.Wait()
			return errors.Join(append(errs, err, p.Free())...)
		})
	}
}

// TestPartitionedErrors checks invalid calls, and the state after a wait that ends early.
func TestPartitionedErrors(t *testing.T) {
	onTwo(t, func(ctx context.Context, c *mpi.Comm, me int) error {
		var wrong []error
		is := func(err error, class mpi.Class) {
			if !errors.Is(err, class) {
				wrong = append(wrong, errors.Join(errors.New("not "+class.String()), err))
			}
		}
		buf := make([]int32, 4)
		init := func(peer, tag, parts int) error { _, err := c.PrecvInit(ints(buf), parts, peer, tag); return err }
		is(init(mpi.AnySource, 1, 2), mpi.ErrRank)
		is(init(1, mpi.AnyTag, 2), mpi.ErrTag)
		is(init(9, 1, 2), mpi.ErrRank)
		is(init(1, 1, -1), mpi.ErrArg)
		_, err := c.PsendInit(mpi.Typed(buf, 5, mpi.TypeOf[int32]()), 2, 1, 1)
		is(err, mpi.ErrBuffer)
		send, err := c.PsendInit(ints(buf), 2, 1-me, 1)
		if err != nil {
			return err
		}
		to := make([]int32, 4)
		recv, err := c.PrecvInit(ints(to), 2, 1-me, 1)
		if err != nil {
			return err
		}
		is(send.Pready(0, 0), mpi.ErrRequest)
		is(recv.Pready(0, 0), mpi.ErrRequest)
		_, err = send.Parrived(0)
		is(err, mpi.ErrRequest)
		_, err = recv.Parrived(2)
		is(err, mpi.ErrArg)
		r, err := send.Start()
		if err != nil {
			return err
		}
		_, err = send.Start()
		is(err, mpi.ErrRequest)
		is(send.Free(), mpi.ErrRequest)
		is(send.Pready(1, 2), mpi.ErrArg)
		is(send.Pready(-1, 0), mpi.ErrArg)
		is(send.Pready(1, 0), mpi.ErrArg)
		if err := send.Pready(1, 1); err != nil {
			return err
		}
		is(send.Pready(0, 1), mpi.ErrArg) // and partition 0 is not ready afterwards
		ended, end := context.WithCancel(ctx)
		end()
		if _, err = r.Wait(ended); !errors.Is(err, context.Canceled) {
			wrong = append(wrong, errors.Join(errors.New("not cancelled"), err))
		}
		// It can be started again. Cancel completes a request before all partitions are ready.
		if r, err = send.Start(); err != nil {
			return err
		}
		if err := r.Cancel(); err != nil {
			return err
		}
		if st, err := r.Wait(ctx); err != nil || !st.Cancelled {
			wrong = append(wrong, errors.Join(errors.New("not cancelled"), err))
		}
		if r, err = send.Start(); err != nil {
			return err
		}
		q, err := recv.Start()
		if err != nil {
			return err
		}
		if err := send.Pready(0, 1); err != nil {
			return err
		}
		if err := mpi.Waitall(ctx, []mpi.Request{q, r}, nil); err != nil {
			return err
		}
		// A message that is too long.
		long, err := c.PsendInit(ints(buf), 1, 1-me, 2)
		if err != nil {
			return err
		}
		short, err := c.PrecvInit(ints(to[:3]), 1, 1-me, 2)
		if err != nil {
			return err
		}
		if r, err = long.Start(); err != nil {
			return err
		}
		if q, err = short.Start(); err != nil {
			return err
		}
		if err := long.Pready(0, 0); err != nil {
			return err
		}
		_, err = q.Wait(ctx)
		is(err, mpi.ErrTruncate)
		if _, err = r.Wait(ctx); err != nil {
			return err
		}
		null, err := c.PsendInit(ints(buf), 2, mpi.ProcNull, 2)
		if err != nil {
			return err
		}
		if r, err = null.Start(); err != nil {
			return err
		}
		wrong = append(wrong, null.Pready(0, 1))
		_, err = r.Wait(ctx)
		return errors.Join(append(slices.Clone(wrong), err, send.Free(), recv.Free(), long.Free(), short.Free(),
			null.Free())...)
	})
}
