package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// interSides are the two groups: ranks 1, 4, 6 and ranks 5, 3, 2, 0 of the world.
var interSides = [2][]int{{1, 4, 6}, {5, 3, 2, 0}}

// inter runs a program on an intercommunicator of the two groups. side is 0 or 1.
func inter(t *testing.T, program func(ctx context.Context, c *mpi.Comm, side int) error) {
	t.Helper()
	err := job.Run(t.Context(), 7, func(ctx context.Context, world *mpi.Comm) error {
		side := 0
		if slices.Contains(interSides[1], world.Rank()) {
			side = 1
		}
		local, err := world.Split(ctx, side, slices.Index(interSides[side], world.Rank()))
		if err != nil {
			return err
		}
		// The leaders are the second ranks. Only they pass the peer communicator.
		var peer *mpi.Comm
		if local.Rank() == 1 {
			peer = world
		}
		c, err := local.IntercommCreate(ctx, 1, peer, interSides[1-side][1], 7)
		if err != nil {
			return fmt.Errorf("rank %d: %w", world.Rank(), err)
		}
		return program(ctx, c, side)
	})
	if err != nil {
		t.Error(err)
	}
}

// checkInter exchanges messages between all pairs of ranks.
func checkInter(ctx context.Context, t *testing.T, c *mpi.Comm) error {
	if !c.IsInter() || c.RemoteGroup().Size() != c.RemoteSize() || c.Rank() != c.Group().Rank() ||
		c.RemoteGroup().Rank() != mpi.Undefined {
		t.Errorf("rank %d of %d, %d are remote", c.Rank(), c.Size(), c.RemoteSize())
	}
	var sends []mpi.Request
	for i := range c.RemoteSize() {
		r, err := mpi.Isend(c, []int32{int32(c.Rank()), int32(i)}, i, 3)
		if err != nil {
			return err
		}
		sends = append(sends, r)
	}
	for range c.RemoteSize() {
		probed, err := mpi.Probe(ctx, c, mpi.AnySource, 3)
		if err != nil {
			return err
		}
		got := []int32{-1, -1}
		st, err := mpi.Recv(ctx, c, got, probed.Source, mpi.AnyTag)
		if err != nil || st.Source != int(got[0]) || st.Source != probed.Source || got[1] != int32(c.Rank()) {
			t.Errorf("%+v, %v, %v", st, got, err)
		}
	}
	return errors.Join(mpi.Waitall(ctx, sends, nil), mpi.Barrier(ctx, c))
}

func TestIntercomm(t *testing.T) {
	inter(t, func(ctx context.Context, c *mpi.Comm, side int) error {
		if c.Size() != len(interSides[side]) || c.RemoteSize() != len(interSides[1-side]) {
			t.Errorf("%d and %d ranks", c.Size(), c.RemoteSize())
		}
		if err := checkInter(ctx, t, c); err != nil {
			return err
		}
		twin, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if got := twin.Compare(c); got != mpi.Congruent || c.Compare(c) != mpi.Ident ||
			c.Compare(c.Self()) != mpi.Unequal {
			t.Errorf("compares as %v", got)
		}
		if err := errors.Join(checkInter(ctx, t, twin), twin.Free()); err != nil {
			return err
		}
		if err := mpi.Send(ctx, twin, []int32{1}, 0, 0); mpi.ClassOf(err) != mpi.ErrComm {
			t.Errorf("freed: %v", err)
		}
		// By parity of the rank, in reverse order; then with a color that only one side uses.
		part, err := c.Split(ctx, c.Rank()%2, -c.Rank())
		if err != nil {
			return err
		}
		if want := (c.Size() + 1 - c.Rank()%2) / 2; part.Size() != want || part.Rank() != want-1-c.Rank()/2 {
			t.Errorf("rank %d is %d of %d", c.Rank(), part.Rank(), part.Size())
		}
		if err := checkInter(ctx, t, part); err != nil {
			return err
		}
		if part, err = c.Split(ctx, side, 0); part != nil || err != nil {
			t.Errorf("%v, %v", part, err)
		}
		// The first and last rank of each side.
		group, err := c.Group().Incl(c.Size()-1, 0)
		if err != nil {
			return err
		}
		if part, err = c.CreateAll(ctx, group); err != nil || part.Rank() != group.Rank() {
			t.Errorf("rank %d: %v", part.Rank(), err)
		}
		if part != nil {
			if err := checkInter(ctx, t, part); err != nil {
				return err
			}
		}
		if side == 0 {
			group = group.Difference(group)
		}
		if part, err = c.CreateAll(ctx, group); part != nil || err != nil {
			t.Errorf("%v, %v", part, err)
		}
		return nil
	})
}

func TestMerge(t *testing.T) {
	inter(t, func(ctx context.Context, c *mpi.Comm, side int) error {
		for _, high := range []int{0, 1} {
			all, err := c.Merge(ctx, side == high)
			if err != nil {
				return err
			}
			want := c.Rank()
			if side == high {
				want += c.RemoteSize()
			}
			if all.Rank() != want || all.Size() != 7 || all.IsInter() || all.RemoteSize() != 0 ||
				all.RemoteGroup() != nil {
				t.Errorf("rank %d of %d, not %d", all.Rank(), all.Size(), want)
			}
			got := make([]int32, 7)
			if err := mpi.Allgather(ctx, all, []int32{int32(want)}, got); err != nil ||
				!slices.Equal(got, []int32{0, 1, 2, 3, 4, 5, 6}) {
				t.Errorf("%v, %v", got, err)
			}
		}
		for _, high := range []bool{false, true} {
			all, err := c.Merge(ctx, high)
			if err != nil || all.Size() != 7 {
				t.Errorf("%v, %v", all, err)
			}
		}
		_, err := c.Merge(ctx, side == 0 && c.Rank() == 2)
		if mpi.ClassOf(err) != mpi.ErrArg {
			t.Errorf("Merge: %v", err)
		}
		if _, err := c.Self().Merge(ctx, false); mpi.ClassOf(err) != mpi.ErrComm {
			t.Errorf("Merge: %v", err)
		}
		return nil
	})
}

// TestIntercommMistakes checks mismatched arguments, and calls that are not for intercommunicators.
func TestIntercommMistakes(t *testing.T) {
	inter(t, func(ctx context.Context, c *mpi.Comm, side int) error {
		one := mpi.Typed([]int32{0}, 1, mpi.TypeOf[int32]())
		_, cart := c.CartCreate(ctx, nil, nil, false)
		_, create := c.Create(ctx, c.Group(), 0)
		_, again := c.IntercommCreate(ctx, 0, nil, 0, 0)
		_, kind := c.SplitType(ctx, mpi.SharedMemory, 0)
		_, peer := c.PeerInfo(c.RemoteSize())
		_, started := c.Ibcast(one, 9)
		self := c.Self()
		_, leader := self.IntercommCreate(ctx, 1, self, 0, 0)
		_, remote := self.IntercommCreate(ctx, 0, self, 1, 0)
		_, tag := self.IntercommCreate(ctx, 0, self, 0, -1)
		_, none := self.IntercommCreate(ctx, 0, nil, 0, 0)
		_, same := self.IntercommCreate(ctx, 0, self, 0, 0)
		for i, x := range []struct {
			err   error
			class mpi.Class
		}{
			{mpi.Scan(ctx, c, []int32{1}, []int32{1}, mpi.Sum), mpi.ErrComm},
			{c.Scan(ctx, one, one, mpi.Sum), mpi.ErrComm},
			{cart, mpi.ErrComm}, {create, mpi.ErrComm}, {again, mpi.ErrComm}, {kind, mpi.ErrComm},
			{mpi.Send(ctx, c, []int32{1}, c.RemoteSize(), 0), mpi.ErrRank}, {peer, mpi.ErrRank},
			{started, mpi.ErrRoot}, {c.Gather(ctx, one, one, -9), mpi.ErrRoot},
			{c.Allgather(ctx, one, one), mpi.ErrCount},
			{c.Allreduce(ctx, one, mpi.Typed([]int32{}, 0, mpi.TypeOf[int32]()), mpi.Sum), mpi.ErrCount},
			{c.Allreduce(ctx, mpi.InPlace, one, mpi.Sum), mpi.ErrArg},
			{c.ReduceScatter(ctx, one, one, nil, mpi.Sum), mpi.ErrCount},
			{c.ReduceScatter(ctx, one, one, make([]int, c.Size()), mpi.Sum), mpi.ErrCount},
			{c.ReduceScatterBlock(ctx, one, one, mpi.Sum), mpi.ErrCount},
			{c.Reduce(ctx, one, one, mpi.Op{}, mpi.Root), mpi.ErrOp},
			{c.Bcast(ctx, mpi.Buffer{}, mpi.Root), mpi.ErrType},
			{(*mpi.Comm)(nil).Alltoall(ctx, one, one), mpi.ErrComm},
			{(*mpi.Comm)(nil).Scatter(ctx, one, one, mpi.Root), mpi.ErrComm},
			{leader, mpi.ErrRank}, {remote, mpi.ErrRank}, {tag, mpi.ErrTag}, {none, mpi.ErrComm}, {same, mpi.ErrGroup},
		} {
			if mpi.ClassOf(x.err) != x.class {
				t.Errorf("%d: %v, not %v", i, x.err, x.class)
			}
		}
		return checkInter(ctx, t, c)
	})
	if (*mpi.Comm)(nil).IsInter() || (*mpi.Comm)(nil).RemoteSize() != 0 {
		t.Error("nobody is remote")
	}
}

// TestIntercommLeader checks that an invalid argument of a leader is an error in its whole group.
func TestIntercommLeader(t *testing.T) {
	err := job.Run(t.Context(), 3, func(ctx context.Context, world *mpi.Comm) error {
		_, err := world.IntercommCreate(ctx, 1, world, 5, 0)
		want := mpi.ErrOther
		if world.Rank() == 1 {
			want = mpi.ErrRank
		}
		if mpi.ClassOf(err) != want {
			t.Errorf("rank %d: %v", world.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestInterDeadline checks that a call returns with its context if the other group does not make it.
func TestInterDeadline(t *testing.T) {
	inter(t, func(ctx context.Context, c *mpi.Comm, side int) error {
		soon, stop := context.WithTimeout(ctx, time.Millisecond)
		defer stop()
		if side == 0 {
			if err := mpi.Barrier(soon, c); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Barrier: %v", err)
			}
			r, err := mpi.Ibarrier(c)
			if err != nil {
				return err
			}
			if err := r.Cancel(); mpi.ClassOf(err) != mpi.ErrRequest {
				t.Errorf("Cancel: %v", err)
			}
			if _, err := r.Wait(soon); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait: %v", err)
			}
		}
		return nil
	})
}

// data returns the n numbers that a rank of a side passes to a call.
func data(side, rank, n int) []int64 {
	b := make([]int64, n)
	for i := range b {
		b[i] = int64(1000*side + 100*rank + i + 1)
	}
	return b
}

// TestInterCollectives compares each call with its definition, for contiguous buffers and buffers with gaps.
func TestInterCollectives(t *testing.T) {
	of := mpi.TypeOf[int64]()
	for name, gap := range map[string]int{"contiguous": 1, "with gaps": 2} {
		typ := of
		if gap > 1 {
			typ = must(datatype.Resized(of, 0, int64(gap)*8))
		}
		buffer := func(b []int64) mpi.Buffer { return mpi.Typed(b, len(b)/gap, typ) }
		room := func(n int) []int64 { return slices.Repeat([]int64{-1}, n*gap) }
		spaced := func(b []int64) []int64 {
			s := room(len(b))
			for i, v := range b {
				s[i*gap] = v
			}
			return s
		}
		t.Run(name, func(t *testing.T) {
			inter(t, func(ctx context.Context, c *mpi.Comm, side int) error {
				there, me := 1-side, c.Rank()
				n, m := c.Size(), c.RemoteSize()
				check := func(call string, err error, got, want []int64) {
					t.Helper()
					if err != nil || !slices.Equal(got, spaced(want)) {
						t.Errorf("%s on rank %d of side %d: %v, %v, not %v", call, me, side, got, err, spaced(want))
					}
				}
				done := func(r mpi.Request, err error) error {
					if err == nil {
						_, err = r.Wait(ctx)
					}
					return err
				}
				// sum returns the sums of elements at to at+k of the other side's vectors.
				sum := func(at, k, length int) []int64 {
					s := make([]int64, k)
					for r := range m {
						for i := range s {
							s[i] += data(there, r, length)[at+i]
						}
					}
					return s
				}
				for _, rootSide := range []int{0, 1} {
					for root := range len(interSides[rootSide]) {
						given := root
						if side == rootSide {
							given = mpi.ProcNull
							if root == me {
								given = mpi.Root
							}
						}
						k := root + 2
						b := room(k)
						want := data(rootSide, root, k)
						if given == mpi.Root {
							copy(b, spaced(want))
						} else if given == mpi.ProcNull {
							want = slices.Repeat([]int64{-1}, k)
						}
						check("Bcast", c.Bcast(ctx, buffer(b), given), b, want)
						check("Ibcast", done(c.Ibcast(buffer(b), given)), b, want)
						if gap == 1 {
							check("Bcast of a slice", mpi.Bcast(ctx, c, b, given), b, want)
						}

						// Gather, Scatter, Gatherv and Scatterv of k numbers, or rank+1 numbers.
						var all, some []int64
						var counts []int
						var total []int64
						for r := range m {
							all, some = append(all, data(there, r, k)...), append(some, data(there, r, r+1)...)
							counts = append(counts, r+1)
						}
						total = sum(0, k, k)
						if given != mpi.Root {
							all, some, total = nil, nil, nil
						}
						got := room(len(all))
						check("Gather", c.Gather(ctx, buffer(spaced(data(side, me, k))), buffer(got), given), got, all)
						got = room(len(all))
						check("Igather", done(c.Igather(buffer(spaced(data(side, me, k))), buffer(got), given)), got,
							all)
						got = room(len(some))
						if given != mpi.Root {
							counts = nil
						}
						blocks := mpi.TypedBlocks(got, counts, nil, typ)
						check("Gatherv", c.Gatherv(ctx, buffer(spaced(data(side, me, me+1))), blocks, given), got, some)
						check("Igatherv", done(c.Igatherv(buffer(spaced(data(side, me, me+1))), blocks, given)), got,
							some)
						got = room(len(total))
						check("Reduce", c.Reduce(ctx, buffer(spaced(data(side, me, k))), buffer(got), mpi.Sum, given),
							got, total)
						got = room(len(total))
						check("Ireduce", done(c.Ireduce(buffer(spaced(data(side, me, k))), buffer(got), mpi.Sum,
							given)), got, total)

						mine := data(rootSide, root, k*n)[k*me:][:k]
						one := data(rootSide, root, 100)[10*me:][:me+1]
						if side == rootSide {
							mine, one = nil, nil
						}
						vector := buffer(spaced(data(side, me, k*m)))
						got = room(len(mine))
						check("Scatter", c.Scatter(ctx, vector, buffer(got), given), got, mine)
						got = room(len(mine))
						check("Iscatter", done(c.Iscatter(vector, buffer(got), given)), got, mine)
						var sizes, displs []int
						for r := range m {
							sizes, displs = append(sizes, r+1), append(displs, 10*r)
						}
						out := mpi.TypedBlocks(spaced(data(side, me, 100)), sizes, displs, typ)
						got = room(len(one))
						check("Scatterv", c.Scatterv(ctx, out, buffer(got), given), got, one)
						got = room(len(one))
						check("Iscatterv", done(c.Iscatterv(out, buffer(got), given)), got, one)
					}
				}
				// Blocks of different lengths on each side.
				var all, some []int64
				var counts []int
				for r := range m {
					all, some = append(all, data(there, r, 2+there)...), append(some, data(there, r, r)...)
					counts = append(counts, r)
				}
				got := room(len(all))
				mine := buffer(spaced(data(side, me, 2+side)))
				check("Allgather", c.Allgather(ctx, mine, buffer(got)), got, all)
				got = room(len(all))
				check("Iallgather", done(c.Iallgather(mine, buffer(got))), got, all)
				got = room(len(some))
				mine = buffer(spaced(data(side, me, me)))
				check("Allgatherv", c.Allgatherv(ctx, mine, mpi.TypedBlocks(got, counts, nil, typ)), got, some)
				got = room(len(some))
				check("Iallgatherv", done(c.Iallgatherv(mine, mpi.TypedBlocks(got, counts, nil, typ))), got, some)

				// Only one side has data.
				if side == 0 {
					check("Allgather of one side", c.Allgather(ctx, buffer(spaced([]int64{int64(me)})), buffer(nil)),
						nil, nil)
				} else {
					got = room(m)
					check("Allgather of one side", c.Allgather(ctx, buffer(nil), buffer(got)), got, []int64{0, 1, 2})
				}

				var columns []int64
				for r := range m {
					columns = append(columns, data(there, r, 3*n)[3*me:][:3]...)
				}
				vector := buffer(spaced(data(side, me, 3*m)))
				got = room(len(columns))
				check("Alltoall", c.Alltoall(ctx, vector, buffer(got)), got, columns)
				got = room(len(columns))
				check("Ialltoall", done(c.Ialltoall(vector, buffer(got))), got, columns)

				// Rank i of one side sends i+2j numbers to rank j of the other side if it is on side 0, and receives as
				// many.
				length := func(side, from, to int) int {
					if side == 0 {
						return from + 2*to
					}
					return to + from
				}
				var sizes, displs, wanted []int
				columns = nil
				for r := range m {
					sizes, displs = append(sizes, length(side, me, r)), append(displs, 11*r)
					wanted = append(wanted, length(there, r, me))
					columns = append(columns, data(there, r, 100)[11*me:][:length(there, r, me)]...)
				}
				out := mpi.TypedBlocks(spaced(data(side, me, 100)), sizes, displs, typ)
				got = room(len(columns))
				check("Alltoallv", c.Alltoallv(ctx, out, mpi.TypedBlocks(got, wanted, nil, typ)), got, columns)
				got = room(len(columns))
				check("Ialltoallv", done(c.Ialltoallv(out, mpi.TypedBlocks(got, wanted, nil, typ))), got, columns)

				mine = buffer(spaced(data(side, me, 5)))
				got = room(5)
				check("Allreduce", c.Allreduce(ctx, mine, buffer(got), mpi.Sum), got, sum(0, 5, 5))
				got = room(5)
				check("Iallreduce", done(c.Iallreduce(mine, buffer(got), mpi.Sum)), got, sum(0, 5, 5))
				// 12 numbers: 4 for each of three ranks, or 3 for each of four.
				mine = buffer(spaced(data(side, me, 12)))
				got = room(12 / n)
				check("ReduceScatterBlock", c.ReduceScatterBlock(ctx, mine, buffer(got), mpi.Sum), got,
					sum(me*12/n, 12/n, 12))
				got = room(12 / n)
				check("IreduceScatterBlock", done(c.IreduceScatterBlock(mine, buffer(got), mpi.Sum)), got,
					sum(me*12/n, 12/n, 12))
				counts = make([]int, n)
				counts[0], counts[n-1] = 5, 7
				at := 0
				if me == n-1 {
					at = 5
				}
				got = room(counts[me])
				check("ReduceScatter", c.ReduceScatter(ctx, mine, buffer(got), counts, mpi.Sum), got,
					sum(at, counts[me], 12))
				got = room(counts[me])
				check("IreduceScatter", done(c.IreduceScatter(mine, buffer(got), counts, mpi.Sum)), got,
					sum(at, counts[me], 12))
				return nil
			})
		})
	}
}

// TestInterOrder checks that reductions with a non-commutative operation are evaluated in rank order.
func TestInterOrder(t *testing.T) {
	inter(t, func(ctx context.Context, c *mpi.Comm, side int) error {
		left := mpi.Foreign.OpOf(firstOf, false)
		got := []int32{-1}
		of := mpi.TypeOf[int32]()
		err := c.Allreduce(ctx, mpi.Typed([]int32{int32(10*side + c.Rank())}, 1, of), mpi.Typed(got, 1, of), left)
		if err != nil || got[0] != int32(10*(1-side)) {
			t.Errorf("%v, %v", got, err)
		}
		failing := mpi.Foreign.OpOf(fails, false)
		if err := c.Allreduce(ctx, mpi.Typed([]int32{1}, 1, of), mpi.Typed(got, 1, of), failing); !errors.Is(err,
			errFails) {
			t.Error(err)
		}
		return nil
	})
}

// firstOf is a reduction that returns the elements of the lowest rank.
func firstOf(in, inout unsafe.Pointer, count int, _ *datatype.Type) error {
	copy(unsafe.Slice((*int32)(inout), count), unsafe.Slice((*int32)(in), count))
	return nil
}

var errFails = errors.New("the operation fails")

func fails(_, _ unsafe.Pointer, _ int, _ *datatype.Type) error { return errFails }
