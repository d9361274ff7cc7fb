package mpi_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// TestSelf checks the communicator of only this rank, and that Finalize deletes its attributes.
func TestSelf(t *testing.T) {
	deleted := make([]bool, 2)
	err := job.Run(t.Context(), 2, func(ctx context.Context, world *mpi.Comm) error {
		self := world.Self()
		if self.Size() != 1 || self.Rank() != 0 || self != self.Self() || self.Compare(world) != mpi.Unequal ||
			self.Name() != "self" {
			t.Errorf("%v of %d ranks", self, self.Size())
		}
		r := world.Rank()
		key := mpi.NewKeyval(nil, func(*mpi.Comm, *mpi.Keyval, any) error { deleted[r] = true; return nil })
		if err := self.SetAttr(key, 1); err != nil {
			return err
		}
		if err := self.Free(); mpi.ClassOf(err) != mpi.ErrComm {
			t.Errorf("Free: %v", err)
		}
		twin, err := self.Dup(ctx)
		if err != nil {
			return err
		}
		for _, c := range []*mpi.Comm{self, twin} {
			sum, got := []int32{0}, []int32{0}
			_, err := mpi.Sendrecv(ctx, c, []int32{5}, 0, 1, got, 0, 1)
			if err = errors.Join(err, mpi.Allreduce(ctx, c, []int32{7}, sum, mpi.Sum)); err != nil || sum[0] != 7 ||
				got[0] != 5 {
				t.Errorf("%v: %v, %v, %v", c, sum, got, err)
			}
		}
		return nil
	})
	if err != nil || !deleted[0] || !deleted[1] {
		t.Error(err, deleted)
	}
	if (*mpi.Comm)(nil).Self() != nil {
		t.Error("nobody has a communicator")
	}
}

func TestCreateAll(t *testing.T) {
	err := job.Run(t.Context(), 5, func(ctx context.Context, world *mpi.Comm) error {
		incl := func(ranks ...int) *mpi.Group {
			g, err := world.Group().Incl(ranks...)
			if err != nil {
				t.Error(err)
			}
			return g
		}
		// Two groups simultaneously, and a rank in neither.
		group := []*mpi.Group{incl(3, 0), incl(2, 1), incl(2, 1), incl(3, 0), incl()}[world.Rank()]
		part, err := world.CreateAll(ctx, group)
		if err != nil {
			return err
		}
		if part.Rank() != group.Rank() || part.Group().Compare(group) != mpi.Ident {
			t.Errorf("rank %d is %d of %d", world.Rank(), part.Rank(), part.Size())
		}
		if part != nil {
			got := []int32{0}
			if err := mpi.Allreduce(ctx, part, []int32{int32(world.Rank())}, got, mpi.Sum); err != nil || got[0] != 3 {
				t.Errorf("%v, %v", got, err)
			}
		}
		// One group, passed by all ranks.
		if part, err = world.CreateAll(ctx, incl(4, 1)); err != nil ||
			(part != nil) != (world.Rank() == 1 || world.Rank() == 4) {
			t.Errorf("%v, %v", part, err)
		}
		// The groups overlap.
		group = []*mpi.Group{incl(0, 1), incl(1, 0), incl(2, 3, 4), incl(2, 3), incl()}[world.Rank()]
		_, err = world.CreateAll(ctx, group)
		if want := []mpi.Class{mpi.ErrGroup, mpi.ErrGroup, mpi.ErrGroup, mpi.Success,
			mpi.Success}[world.Rank()]; mpi.ClassOf(err) != want {
			t.Errorf("rank %d: %v", world.Rank(), err)
		}
		few, err := world.Create(ctx, incl(0, 1), 0)
		if err != nil || few == nil {
			return err
		}
		if _, err := few.CreateAll(ctx, incl(1, 2)); mpi.ClassOf(err) != mpi.ErrGroup {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSplitType(t *testing.T) {
	err := job.Run(t.Context(), 4, func(ctx context.Context, world *mpi.Comm) error {
		kind := mpi.SharedMemory
		if world.Rank() == 2 {
			kind = mpi.Undefined
		}
		host, err := world.SplitType(ctx, kind, -world.Rank())
		if err != nil {
			return err
		}
		ranks, err := host.Group().Translate([]int{0, 1, 2}[:host.Size()], world.Group())
		if want := []int{3, 1, 0}[:host.Size()]; err != nil || !slices.Equal(ranks, want) ||
			(host == nil) != (world.Rank() == 2) {
			t.Errorf("rank %d: %v, %v", world.Rank(), ranks, err)
		}
		if _, err := world.SplitType(ctx, 7, 0); mpi.ClassOf(err) != mpi.ErrArg {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestIdup makes several duplicates simultaneously, and while other communicators are created.
func TestIdup(t *testing.T) {
	const n, rounds = 3, 5
	err := job.Run(t.Context(), n, func(ctx context.Context, world *mpi.Comm) error {
		var comms []*mpi.Comm
		var requests []mpi.Request
		key := mpi.NewKeyval(func(_ *mpi.Comm, _ *mpi.Keyval, v any) (any, bool, error) { return v, true, nil }, nil)
		if err := world.SetAttr(key, "value"); err != nil {
			return err
		}
		for range rounds {
			c, r, err := world.Idup()
			if err != nil {
				return err
			}
			if err := mpi.Barrier(ctx, c); err != nil && mpi.ClassOf(err) != mpi.ErrComm {
				t.Errorf("before its end: %v", err)
			}
			comms, requests = append(comms, c), append(requests, r)
		}
		twin, err := world.Dup(ctx)
		if err = errors.Join(err, mpi.Waitall(ctx, requests, nil)); err != nil {
			return err
		}
		third, r, err := comms[0].Idup()
		if err = errors.Join(err, wait(ctx, r)); err != nil {
			return err
		}
		comms = append(comms, twin, third)
		// Messages with one tag, received in reverse order.
		to, from := (world.Rank()+1)%n, (world.Rank()+n-1)%n
		for i, c := range comms {
			if requests[min(i, rounds-1)], err = mpi.Isend(c, []int32{int32(i)}, to, 0); err != nil {
				return err
			}
		}
		for i, c := range slices.Backward(comms) {
			got := []int32{-1}
			if _, err := mpi.Recv(ctx, c, got, from, 0); err != nil || got[0] != int32(i) {
				t.Errorf("communicator %d got %v, %v", i, got, err)
			}
			if v, _, _ := c.Attr(key); v != "value" || c.Compare(world) != mpi.Congruent {
				t.Errorf("communicator %d has %v", i, v)
			}
			if err := mpi.Barrier(ctx, c); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
