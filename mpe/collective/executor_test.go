package collective

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// TestComputes checks that a user's function runs between events, with the same result as the built-in operation.
func TestComputes(t *testing.T) {
	sum := func(in, inout []byte) error {
		for i := range in {
			inout[i] += in[i]
		}
		return nil
	}
	for _, a := range coll.Algorithms(coll.Allreduce) {
		for _, user := range []func(in, inout []byte) error{nil, sum} {
			if a.Shares && user != nil {
				continue
			}
			w := newWorld(5, nil).share(1)
			recv := make([][]byte, len(*w))
			w.all(t, 1, func(rank int) Operation {
				recv[rank] = make([]byte, 3)
				return Operation{
					Call: coll.Call{Collective: coll.Allreduce, Bytes: 3, Elem: 1}, Send: []byte{1, byte(rank), 9},
					Recv: recv[rank],
					Op:   op.Sum, Type: op.Uint8, User: user, Algorithm: a.Name,
				}
			})
			for rank, b := range recv {
				if !bytes.Equal(b, []byte{5, 10, 45}) {
					t.Errorf("%s: rank %d has %v", a.Name, rank, b)
				}
			}
		}
	}
}

// TestRefuse checks that a call that one rank rejects ends on all other ranks, even if they make it later, whether or
// not the members have agreed before. All ranks make the next call.
func TestRefuse(t *testing.T) {
	for _, first := range []int{1, 2} {
		w := newWorld(3, nil)
		barrier := Operation{Call: coll.Call{Collective: coll.Barrier}, Tag: first}
		for tag := 1; tag < first; tag++ {
			w.all(t, tag, func(int) Operation { return Operation{Call: coll.Call{Collective: coll.Barrier}} })
		}
		_, before := w.start(t, 0, barrier)
		refused := barrier
		refused.Comm, refused.Members, refused.Call.Rank, refused.Call.Ranks = 1, []int{0, 1, 2}, 1, 3
		(*w)[1].calls.Refuse(&refused, CauseCount)
		w.run()
		_, later := w.start(t, 2, barrier)
		w.run()
		for rank, o := range map[int]*outcome{0: before, 2: later} {
			failed, ok := errors.AsType[*CallFailedError](o.err)
			if !ok || *failed != (CallFailedError{Rank: 1, Collective: coll.Barrier, Comm: 1, Number: first,
				Cause: CauseCount}) {
				t.Errorf("call %d, rank %d: %+v", first, rank, o)
			}
		}
		w.all(t, first+1, func(int) Operation { return Operation{Call: coll.Call{Collective: coll.Barrier}} })
	}
}

// TestRankMissing checks that, when the first call in a communicator ends because a rank is missing, the errors on
// all other ranks name the missing rank, even on ranks that waited for a different rank.
func TestRankMissing(t *testing.T) {
	w := newWorld(4, nil)
	for _, f := range *w {
		f.silent = 3
	}
	barrier := Operation{Call: coll.Call{Collective: coll.Barrier}, Tag: 1}
	executions, ends := make([]*Execution, 3), make([]*outcome, 3)
	for rank := range 3 {
		executions[rank], ends[rank] = w.start(t, rank, barrier)
	}
	w.run()
	s := (*w)[0].calls.Calls()[0]
	if s.Describe(); s.Text != "Barrier that not all ranks have begun, begun 0s ago, waits for rank 2; no packet was "+
		"ever received from rank 3" {
		t.Error(s.Text)
	}
	executions[0].Abort(errors.New("enough"))
	w.run()
	for rank, end := range ends {
		if !end.ended {
			executions[rank].Abort(errors.New("enough"))
		}
		if end.err == nil || !strings.HasSuffix(end.err.Error(), "; no packet was ever received from rank 3") {
			t.Errorf("rank %d: %v", rank, end.err)
		}
	}
	if got, want := ends[0].err.Error(),
		"Barrier, which not all ranks have begun: it waits: enough; no packet was ever received from rank 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAbandoned checks that a call that its caller abandons ends on all ranks, even if they make it later, and that
// later calls are not affected.
func TestAbandoned(t *testing.T) {
	w := newWorld(3, nil)
	barrier := Operation{Call: coll.Call{Collective: coll.Barrier}, Tag: 1}
	w.all(t, 1, func(int) Operation { return barrier })
	barrier.Tag = 2
	x, first := w.start(t, 0, barrier)
	_, second := w.start(t, 1, barrier)
	w.run()
	if first.ended || second.ended {
		t.Fatal("a barrier is done that rank 2 has not called")
	}
	enough := errors.New("enough")
	x.Abort(enough)
	w.run()
	if _, ok := errors.AsType[*StepError](first.err); !ok || !errors.Is(first.err, enough) {
		t.Errorf("rank 0: %v", first.err)
	}
	_, third := w.start(t, 2, barrier)
	w.run()
	for _, end := range []*outcome{second, third} {
		failed, ok := errors.AsType[*CallFailedError](end.err)
		if !ok || *failed != (CallFailedError{Rank: 0, Collective: coll.Barrier, Comm: 1, Number: 2,
			Cause: CauseCancelled}) {
			t.Errorf("%v", end.err)
		}
	}
	for _, f := range *w {
		if len(f.calls.calls) > 0 || f.calls.Pending() {
			t.Error("a call is in progress")
		}
	}
}
