package steps_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/check"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/coll/steps"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// watched is a device that keeps what is posted.
type watched struct {
	mpe.Device
	mu     sync.Mutex
	posted []mpe.Operation
	// fail is the error of posting a message.
	fail func(o *mpe.Operation) error
}

func (w *watched) Start(o mpe.Operation) (mpe.Op, error) {
	w.mu.Lock()
	w.posted = append(w.posted, o)
	w.mu.Unlock()
	if w.fail != nil {
		if err := w.fail(&o); err != nil {
			return nil, err
		}
	}
	return w.Device.Start(o)
}

func watch(devices []mpe.Device) (list []*watched, all []mpe.Device) {
	for _, d := range devices {
		w := &watched{Device: d}
		list, all = append(list, w), append(all, w)
	}
	return list, all
}

var (
	cloudfpga = mpe.PeerInfo{Profile: "cloudfpga", Words: true, NoTags: true, NoComms: true, NoLength: true}
	v09       = mpe.PeerInfo{Profile: "v0.9", Words: true, SmallTags: true, NoComms: true, NoLength: true}
)

// limited is a world whose ranks above 1 are FPGAs: to them, the wire is p. Only the
// others know that they take no empty messages.
func limited(t *testing.T, n int, p mpe.PeerInfo) []mpe.Device {
	return world(t, n, mpitest.Options{Eager: -1, Between: func(a, b int) mpe.PeerInfo {
		if a < 2 && b < 2 {
			return mpe.PeerInfo{Profile: "extended"}
		}
		q := p
		q.NoEmpty = b >= 2 && p.NoTags
		return q
	}})
}

// What goes to peers without communicators has none, and no tag; what goes to others
// has both. Every collective works in such a world.
func TestLimits(t *testing.T) {
	for _, p := range []mpe.PeerInfo{cloudfpga, v09} {
		t.Run(p.Profile, func(t *testing.T) {
			for collective := coll.Barrier; collective <= coll.Exscan; collective++ {
				const n = 4
				calls := eachRank(coll.Call{Collective: collective, Ranks: n, Elem: 2, Bytes: 8})
				list := make([]*mpe.Collective, n)
				for r := range calls {
					send, recv := check.Buffers(&calls[r])
					list[r] = collectiveOf(calls[r], make([]byte, send), make([]byte, recv))
				}
				all, devices := watch(limited(t, n, p))
				for r, err := range run(within(t), devices, list) {
					if err != nil {
						t.Fatalf("%v, rank %d: %v", collective, r, err)
					}
				}
				for rank, w := range all {
					for _, o := range w.posted {
						tag, comm := 1000, uint32(7)
						if rank >= 2 || o.Peer >= 2 {
							tag, comm = 0, 0
						}
						if o.Tag != tag || o.Comm != comm {
							t.Errorf("%v: rank %d posts a message for rank %d with tag %d and communicator %d", collective, rank, o.Peer, o.Tag, o.Comm)
						}
					}
				}
			}
		})
	}
}

func collectiveOf(c coll.Call, send, recv []byte) *mpe.Collective {
	return collective(c, check.Data{Send: send, Recv: recv})
}

// With peers whose messages meet by order, what upstream's compiler makes is chosen.
func TestFlatForFPGAs(t *testing.T) {
	for _, w := range []struct {
		peers    mpe.PeerInfo
		messages int // of the root
	}{{cloudfpga, 4}, {mpe.PeerInfo{}, 3}} {
		all, devices := watch(limited(t, 5, w.peers))
		list := make([]*mpe.Collective, 5)
		for r, c := range eachRank(coll.Call{Collective: coll.Bcast, Ranks: 5, Root: 4, Bytes: 4}) {
			list[r] = collectiveOf(c, nil, make([]byte, 4))
		}
		if err := errors.Join(run(within(t), devices, list)...); err != nil {
			t.Fatal(err)
		}
		if got := len(all[0].posted); got != w.messages { // rank 4 of the call is rank 0 of the world
			t.Errorf("profile %q: the root sends %d messages, not %d", w.peers.Profile, got, w.messages)
		}
	}
}

// What cannot be is refused, and nothing is sent.
func TestRefused(t *testing.T) {
	const n = 4
	buf := make([]byte, 64)
	for name, c := range map[string]struct {
		call   mpe.Collective
		target error
		says   string
	}{
		"words": {mpe.Collective{Call: coll.Call{Collective: coll.Bcast, Ranks: n, Bytes: 6}}, mpe.ErrLength, "6 bytes between rank 1 and rank 2 of the world"},
		"segments": {mpe.Collective{Call: coll.Call{Collective: coll.Bcast, Ranks: n, Rank: 1, Bytes: 8, Elem: 2, Segment: 6}, Algorithm: "chain"},
			mpe.ErrLength, "Bcast by chain has a message of 6 bytes"},
		"no algorithm": {mpe.Collective{Call: coll.Call{Collective: coll.Bcast, Ranks: n}, Algorithm: "telepathy"}, coll.ErrCall, "telepathy"},
		"flows":        {mpe.Collective{Call: coll.Call{Collective: coll.Bcast, Ranks: n, Bytes: 8}, Algorithm: "atomic"}, coll.ErrCall, "atomic"},
		"does not fit": {mpe.Collective{Call: coll.Call{Collective: coll.Allreduce, Ranks: n, Bytes: 8, Elem: 2, Ordered: true}, Algorithm: "ring", User: compose},
			coll.ErrCall, "commutative"},
		"root":       {mpe.Collective{Call: coll.Call{Collective: coll.Gather, Ranks: n, Bytes: 4, Root: 4}}, coll.ErrCall, "root 4"},
		"collective": {mpe.Collective{Call: coll.Call{Collective: 99, Ranks: n}}, coll.ErrCall, "99"},
		"operation":  {mpe.Collective{Call: coll.Call{Collective: coll.Scan, Ranks: n, Bytes: 4, Elem: 4}, Op: op.BAnd, Type: op.Float32}, op.ErrUndefined, "BAND"},
		"type":       {mpe.Collective{Call: coll.Call{Collective: coll.Scan, Ranks: n, Bytes: 8, Elem: 8}, Op: op.Sum, Type: op.Int32}, coll.ErrCall, "8 bytes are not of type int32"},
		"members":    {mpe.Collective{Call: coll.Call{Collective: coll.Barrier, Ranks: 3}}, coll.ErrCall, "rank 2 of the world, which is not number 0 of 3"},
		"rank":       {mpe.Collective{Call: coll.Call{Collective: coll.Barrier, Ranks: n, Rank: 9}}, coll.ErrCall, "number 9 of 4"},
		"stranger":   {mpe.Collective{Call: coll.Call{Collective: coll.Barrier, Ranks: n}, Members: []int{2, 1, 0, 17}}, mpe.ErrRank, "17"},
		"token":      {mpe.Collective{Call: coll.Call{Collective: coll.Barrier, Ranks: n, Token: 8}}, coll.ErrCall, "tokens of 8 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			all, devices := watch(limited(t, n, cloudfpga))
			x := c.call
			if x.Members == nil {
				x.Members = []int{2, 1, 0, 3}
			}
			x.Send, x.Recv = buf, buf[32:]
			rank := 2
			if x.Call.Rank == 1 || name == "words" {
				x.Call.Rank, rank = 1, 1
			}
			op, err := steps.Start(devices[rank], &x)
			if !errors.Is(err, c.target) || op != nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Start gives an operation: %v, and %v", op != nil, err)
			}
			if sent := len(all[rank].posted); sent > 0 {
				t.Errorf("%d messages have been posted", sent)
			}
		})
	}
}

// Words that are whole by themselves may be cut anywhere between elements of less.
func TestWholeWords(t *testing.T) {
	list := make([]*mpe.Collective, 4)
	for r, c := range eachRank(coll.Call{Collective: coll.Allgather, Ranks: 4, Bytes: 12}) {
		list[r] = collectiveOf(c, make([]byte, 12), make([]byte, 48))
	}
	if err := errors.Join(run(within(t), limited(t, 4, v09), list)...); err != nil {
		t.Error(err)
	}
}
