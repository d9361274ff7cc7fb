package core

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// TestCallOnSimulatedTime tests a reduction by a user's function, which the driver calls.
func TestCallOnSimulatedTime(t *testing.T) {
	const n = 4
	w := newCores(t, 1, n, faults{loss: 0.05}, extendedPeer)
	var requests []*Request
	results := make([][]byte, n)
	for rank := range n {
		results[rank] = make([]byte, 8)
		requests = append(requests, w.call(t, rank, &collective.Operation{
			Call:    coll.Call{Collective: coll.Allreduce, Rank: rank, Ranks: n, Bytes: 8, Elem: 8},
			Members: []int{0, 1, 2, 3}, Comm: 1, Tag: 1, Type: op.Uint64,
			Send: binary.LittleEndian.AppendUint64(nil, uint64(rank+1)), Recv: results[rank],
			User: func(in, inout []byte) error {
				product := binary.LittleEndian.Uint64(in) * binary.LittleEndian.Uint64(inout)
				binary.LittleEndian.PutUint64(inout, product)
				return nil
			},
		}))
	}
	w.run(t, requests)
	for rank, b := range results {
		if got := binary.LittleEndian.Uint64(b); got != 24 {
			t.Errorf("rank %d has %d, not 24", rank, got)
		}
	}
}

// TestAbortPassedOn closes a rank before the members of a communicator have agreed. The closed rank cannot repeat
// its abort after the agreement, so the ranks whose calls it aborted must do so.
func TestAbortPassedOn(t *testing.T) {
	const n = 4
	w := newCores(t, 1, n, faults{}, extendedPeer)
	begin := func(rank int) *Request {
		o := newCall(coll.Call{Collective: coll.Bcast, Ranks: n, Root: 3, Elem: 8, Bytes: 320_000}, rank, 0, false)
		o.call.Members, o.call.Tag = members(n), 1
		return w.call(t, rank, o.call)
	}
	requests := []*Request{begin(2), begin(3), begin(0)}
	w.until(time.Second)
	w.event(2, (*Core).Drain)
	w.until(2 * time.Second)
	requests = append(requests, begin(1))
	w.until(time.Minute)
	for i, r := range requests {
		if !r.Done || i > 0 && !errors.Is(r.Err, collective.ErrCallFailed) {
			t.Errorf("rank %d: over %v, %v", []int{2, 3, 0, 1}[i], r.Done, r.Err)
		}
	}
	var failed *collective.CallFailedError
	if err := requests[3].Err; !errors.As(err, &failed) || failed.Rank != 2 || failed.Cause != collective.CauseClosing {
		t.Errorf("rank 1: %v does not say that it is because of rank 2, and why", err)
	}
}

// TestWaitsOfCalls checks that the wait of a call names the call, not the tag of its messages.
func TestWaitsOfCalls(t *testing.T) {
	const n = 2
	w := newCores(t, 1, n, faults{}, extendedPeer)
	begin := func(rank, number int) *Request {
		o := newCall(coll.Call{Collective: coll.Allreduce, Ranks: n, Elem: 8, Bytes: 8}, rank, 0, false)
		o.call.Members, o.call.Tag = members(n), number
		return w.call(t, rank, o.call)
	}
	ended := func(r *Request) string {
		w.until(w.now + time.Second)
		w.event(0, func(e *Core) { e.AbortWait(r, context.DeadlineExceeded, nil, false) })
		return r.Err.Error()
	}
	w.run(t, []*Request{begin(0, 5), begin(1, 5)})
	if text, want := ended(begin(0, 6)),
		"a message from rank 1 of call 6 in communicator 7: "; !strings.Contains(text, want) {
		t.Errorf("%s: not %q", text, want)
	}
	w.event(0, func(e *Core) { e.ProgramEnded(true) })
	if text, want := ended(begin(0, 1)), " which not all ranks have begun: rank 0 has waited 1s for rank 1 to post "+
		"the receive of 32 bytes with which it begins "; !strings.Contains(text, want) {
		t.Errorf("%s: not %q", text, want)
	}
}

// TestNextProgram checks that a program whose ranks were used by an earlier program, with the same numbers for
// communicators and calls, gets no messages that the earlier program left behind.
func TestNextProgram(t *testing.T) {
	for _, bytes := range []int{8, 320_000} {
		w := newCores(t, 1, 2, faults{}, extendedPeer)
		results := [2][]byte{make([]byte, bytes), make([]byte, bytes)}
		call := func(rank, number int, value uint64) *Request {
			operand := make([]byte, bytes)
			binary.LittleEndian.PutUint64(operand, value)
			return w.call(t, rank, &collective.Operation{
				Call:    coll.Call{Collective: coll.Allreduce, Rank: rank, Ranks: 2, Bytes: bytes, Elem: 8},
				Members: []int{0, 1}, Comm: 7, Tag: number, Type: op.Uint64, Op: op.Sum,
				Send: operand, Recv: results[rank], Algorithm: "recursive-doubling",
			})
		}
		end := func(rank int, r *Request) { // the program is gone
			w.event(rank, func(e *Core) { e.AbortWait(r, context.Canceled, nil, false) })
		}
		next := func() {
			for rank := range 2 {
				w.event(rank, func(e *Core) { e.ProgramEnded(true) })
			}
			w.until(w.now + time.Second)
		}
		// No other message is lost.
		const other = collective.Tags + 1
		w.start(t, 0, Operation{Kind: OpSend, Peer: 1, Comm: 7, Tag: other, Buf: make([]byte, 4)})
		// The first program ends during the agreement of its ranks, the second during its second call.
		r := call(0, 1, 1000)
		w.until(w.now + time.Second)
		end(0, r)
		next()
		w.run(t, []*Request{call(0, 1, 1), call(1, 1, 1)})
		r = call(0, 2, 1000)
		w.until(w.now + time.Second)
		end(0, r)
		next()
		w.run(t, []*Request{call(0, 1, 1), call(1, 1, 1)})
		w.run(t, []*Request{call(0, 2, 1), call(1, 2, 1)})
		for rank, b := range results {
			if sum := binary.LittleEndian.Uint64(b); sum != 2 {
				t.Errorf("%d bytes: rank %d has %d, not 2", bytes, rank, sum)
			}
		}
		if n := w.cores[1].peers.at(0).failed; n > 0 { // dropped messages were not for a receive of this program
			t.Errorf("%d bytes: %d receives of rank 1 have failed", bytes, n)
		}
		w.run(t, []*Request{w.start(t, 1, Operation{Kind: OpRecv, Peer: 0, Comm: 7, Tag: other, Buf: make([]byte, 4)})})
		w.until(w.now + time.Second)
		for rank, e := range w.cores {
			if s := e.Snapshot(); s.Unexpected+s.Posted > 0 || e.busy() {
				t.Errorf("%d bytes: rank %d: %d messages and %d receives are left", bytes, rank, s.Unexpected, s.Posted)
			}
		}
	}
}
