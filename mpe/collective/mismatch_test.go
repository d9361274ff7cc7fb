package collective

import (
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// TestCallWord checks the description of calls, including values that do not fit.
func TestCallWord(t *testing.T) {
	for want, c := range map[string]coll.Call{
		"Barrier":                       {Collective: coll.Barrier, Root: 3},
		"Bcast of 40 bytes with root 1": {Collective: coll.Bcast, Root: 1, Bytes: 40},
		"Gather of 4294967295 bytes with root 1048575": {Collective: coll.Gather, Root: 1 << 20, Bytes: 1 << 40},
		"Alltoall of 0 bytes":                          {Collective: coll.Alltoall, Root: 3},
	} {
		if got := newCallWord(&c, 0).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSharedAfterMismatch checks that the call after a mismatch succeeds, both on the ranks that noticed the
// mismatch and failed, and on the root of the Bcast, which did not notice it.
func TestSharedAfterMismatch(t *testing.T) {
	w := newWorld(3, nil).share(1)
	w.all(t, 1, func(int) Operation { return Operation{Call: coll.Call{Collective: coll.Barrier}} })
	for rank := range 3 {
		bytes := 4
		if rank == 0 {
			bytes = 8
		}
		c := coll.Call{Collective: coll.Bcast, Rank: rank, Ranks: 3, Bytes: bytes}
		_, end := w.start(t, rank, Operation{Call: c, Tag: 2, Recv: make([]byte, bytes), Algorithm: "shared"})
		w.run()
		if rank > 0 && (!end.ended || end.err == nil) {
			t.Errorf("rank %d: ended %v, %v", rank, end.ended, end.err)
		}
	}
	var ends []*outcome
	for rank := range 3 {
		o, _ := sumOf("shared", 3, rank, 0, 4)
		o.Call.Collective, o.Tag = coll.Allreduce, 3
		_, end := w.start(t, rank, o)
		ends = append(ends, end)
		w.run()
	}
	for rank, end := range ends {
		if !end.ended || end.err != nil {
			t.Errorf("the next call on rank %d: ended %v, %v", rank, end.ended, end.err)
		}
	}
}

// TestSharedRoots makes two ranks act as the root of the same Bcast. A root awaits no rank in a Bcast, so only the
// next call fails.
func TestSharedRoots(t *testing.T) {
	for _, next := range []coll.Collective{coll.Barrier, coll.Allreduce, coll.Gather} {
		w := newWorld(3, nil).share(1)
		w.all(t, 1, func(int) Operation { return Operation{Call: coll.Call{Collective: coll.Barrier}} })
		for rank := range 3 {
			root := 0
			if rank == 1 {
				root = 1
			}
			c := coll.Call{Collective: coll.Bcast, Rank: rank, Ranks: 3, Root: root, Bytes: 4}
			if _, end := w.start(t, rank,
				Operation{Call: c, Tag: 2, Recv: make([]byte, 4), Algorithm: "shared"}); end.ended && end.err != nil {
				t.Errorf("%v: rank %d: %v", next, rank, end.err)
			}
		}
		w.run()
		failed := 0
		var ends []*outcome
		for rank := range 3 {
			o, _ := sumOf("shared", 3, rank, 0, 4)
			o.Call.Collective, o.Tag = next, 3
			if next == coll.Gather {
				o.Call.Root, o.Recv, o.Op, o.Type = 0, make([]byte, 12), 0, 0
			}
			_, end := w.start(t, rank, o)
			ends = append(ends, end)
			w.run()
		}
		for _, end := range ends {
			if end.ended && errors.Is(end.err, ErrMismatch) {
				failed++
				if !strings.Contains(end.err.Error(), "Bcast of 4 bytes with root 1") ||
					!strings.Contains(end.err.Error(), "before") {
					t.Errorf("%v: %v", next, end.err)
				}
			}
		}
		if failed == 0 {
			t.Errorf("%v after it: the mismatch is not noticed", next)
		}
	}
}
