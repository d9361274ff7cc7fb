package mpi_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// onRanks runs a program on the given devices.
func onRanks(t *testing.T, devices []mpe.Device, program func(ctx context.Context, world *mpi.Comm) error) {
	t.Helper()
	var ranks sync.WaitGroup
	for _, d := range devices {
		world, err := mpi.New(d)
		if err != nil {
			t.Fatal(err)
		}
		ranks.Go(func() {
			if err := program(t.Context(), world); err != nil {
				t.Errorf("rank %d: %v", world.Rank(), err)
			}
		})
	}
	ranks.Wait()
}

// TestMprobe checks that short and long messages can be received in a different order from their probes, and that other
// receives get the messages after them.
func TestMprobe(t *testing.T) {
	for name, devices := range map[string]mpitest.WorldFunc{
		"fabric": mpitest.World(mpitest.Options{Eager: 100}), "engines": engines(extendedPeer),
		"attached": attached(engines(extendedPeer), 1),
	} {
		t.Run(name, func(t *testing.T) {
			lengths := []int{1, 100000, 0, 3, 20000}
			onRanks(t, devices(t, 2), func(ctx context.Context, world *mpi.Comm) error {
				const tag = 5
				// To the other rank, and to this rank.
				for _, to := range []int{1 - world.Rank(), world.Rank()} {
					var sends []mpi.Request
					for i, n := range lengths {
						r, err := mpi.Isend(world, slices.Repeat([]int32{int32(i)}, n), to, tag)
						if err != nil {
							return err
						}
						sends = append(sends, r)
					}
					from := to
					var found []*mpi.Message
					for i := range 4 {
						m, st, err := mpi.Mprobe(ctx, world, []int{from, mpi.AnySource}[i%2], mpi.AnyTag)
						if err != nil {
							return err
						}
						if st.Source != from || st.Tag != tag || mpi.Count[int32](st) != lengths[i] {
							t.Errorf("message %d is %+v", i, st)
						}
						found = append(found, m)
					}
					// The last message has not been claimed.
					got := make([]int32, 100000)
					st, err := mpi.Recv(ctx, world, got, from, tag)
					if err != nil || mpi.Count[int32](st) != lengths[4] || got[0] != 4 {
						t.Errorf("the last: %+v, %v", st, err)
					}
					if m, _, ok, err := mpi.Improbe(world, from, mpi.AnyTag); m != nil || ok || err != nil {
						t.Errorf("there is another: %v, %v", ok, err)
					}
					receive := []func(m *mpi.Message) (mpi.Status, error){
						func(m *mpi.Message) (mpi.Status, error) { return mpi.Mrecv(ctx, m, got) },
						func(m *mpi.Message) (mpi.Status, error) {
							return m.Recv(ctx, mpi.Typed(got, len(got), mpi.TypeOf[int32]()))
						},
						func(m *mpi.Message) (mpi.Status, error) {
							r, err := mpi.Imrecv(m, got)
							if err != nil {
								return mpi.Status{}, err
							}
							return r.Wait(ctx)
						},
						func(m *mpi.Message) (mpi.Status, error) {
							r, err := m.Irecv(mpi.Typed(got, len(got), mpi.TypeOf[int32]()))
							if err != nil {
								return mpi.Status{}, err
							}
							return r.Wait(ctx)
						},
					}
					for i, m := range slices.Backward(found) {
						st, err := receive[i](m)
						if err != nil || st.Source != from || st.Tag != tag || mpi.Count[int32](st) != lengths[i] ||
							lengths[i] > 0 && got[lengths[i]-1] != int32(i) {
							t.Errorf("message %d: %+v, %v", i, st, err)
						}
						if _, err := mpi.Mrecv(ctx, m, got); mpi.ClassOf(err) != mpi.ErrRequest {
							t.Errorf("received twice: %v", err)
						}
					}
					if err := mpi.Waitall(ctx, sends, nil); err != nil {
						return err
					}
				}
				if err := mpi.Barrier(ctx, world); err != nil {
					return err
				}
				// A message that is too long.
				other := 1 - world.Rank()
				send, err := mpi.Isend(world, []int32{1, 2, 3}, other, tag)
				if err != nil {
					return err
				}
				var m *mpi.Message
				for ok := false; !ok; {
					if m, _, ok, err = mpi.Improbe(world, other, tag); err != nil {
						return err
					}
				}
				got := make([]int32, 2)
				if st, err := mpi.Mrecv(ctx, m, got); !errors.Is(err, mpi.ErrTruncate) || st.Tag != tag ||
					!slices.Equal(got, []int32{1, 2}) {
					t.Errorf("too long: %+v, %v, %v", st, got, err)
				}
				if _, err := send.Wait(ctx); err != nil {
					return err
				}
				m, st, err := mpi.Mprobe(ctx, world, mpi.ProcNull, 0)
				if err != nil || st.Source != mpi.ProcNull {
					t.Errorf("%+v, %v", st, err)
				}
				if st, err = mpi.Mrecv(ctx, m, got); err != nil || st.Source != mpi.ProcNull {
					t.Errorf("%+v, %v", st, err)
				}
				_, err = mpi.Imrecv[int32](nil, nil)
				_, _, rank := mpi.Mprobe(ctx, world, 2, 0)
				_, _, null := mpi.Mprobe(ctx, nil, mpi.ProcNull, 0)
				if mpi.ClassOf(err) != mpi.ErrRequest || mpi.ClassOf(rank) != mpi.ErrRank ||
					mpi.ClassOf(null) != mpi.ErrComm {
					t.Error(err, rank, null)
				}
				return mpi.Barrier(ctx, world)
			})
		})
	}
}

// TestMprobeLimited checks that Mprobe rejects sources whose wire carries no tags and no communicators.
func TestMprobeLimited(t *testing.T) {
	limited := mpe.PeerInfo{Words: true, NoTags: true, NoComms: true, NoLength: true, NoEmpty: true}
	devices := mpitest.World(mpitest.Options{Between: func(int, int) mpe.PeerInfo { return limited }})(t, 2)
	onRanks(t, devices[:1], func(ctx context.Context, world *mpi.Comm) error {
		for _, source := range []int{1, mpi.AnySource} {
			if _, _, err := mpi.Mprobe(ctx, world, source, mpi.AnyTag); mpi.ClassOf(err) != mpi.ErrComm {
				t.Errorf("Mprobe: %v", err)
			}
		}
		return nil
	})
}
