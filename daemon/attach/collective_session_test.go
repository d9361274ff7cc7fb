package attach

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// callFrame returns a CALL frame that contains some or all of the data after its fields.
func callFrame(c wire.Call, follows string) []byte {
	return append(wire.AppendCall(nil, &c, len(follows)), follows...)
}

// barrier returns a Barrier of both ranks of a world. reduce returns an Allreduce of 4 bytes. root returns a
// Bcast of n bytes from rank 0, which does not wait for any other rank.
func barrier(id uint64) wire.Call {
	return wire.Call{ID: id, Collective: coll.Barrier, Comm: 3, Tag: 1, Ranks: 2}
}

func reduce(id uint64) wire.Call {
	return wire.Call{ID: id, Collective: coll.Allreduce, Comm: 3, Tag: 1, Ranks: 2, Op: op.Sum, Type: op.Int32, Elem: 4,
		Bytes: 4, Length: 4, Result: 4}
}

func root(id uint64, n int) wire.Call {
	return wire.Call{ID: id, Collective: coll.Bcast, Comm: 3, Tag: 1, Ranks: 2, Bytes: uint64(n), Length: uint64(n)}
}

func TestHostileCalls(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(2, 0), Options{})
	change := func(c wire.Call, f func(*wire.Call)) wire.Call { f(&c); return c }
	at := func(i int, b byte) []byte { f := callFrame(barrier(1), ""); f[wire.FrameHeaderLen+i] = b; return f }
	for _, tt := range []struct {
		name  string
		bytes []byte
		text  string
	}{
		{"short", append(wire.AppendHeader(nil, wire.FrameCall, 5), "12345"...), "CALL is 67 bytes too short"},
		{"datatype", at(9, 2), "CALL with datatype 2"},
		{"flag", at(10, 0x40), "CALL with flags 0x0040"},
		{"zero", at(35, 1), "byte 35 0x01"},
		{"description missing", callFrame(change(barrier(1), func(c *wire.Call) { c.Name = 1 }), ""),
			"followed by 0 bytes, but its description has 16"},
		{"huge description", callFrame(change(barrier(1),
			func(c *wire.Call) { c.Flags, c.Ranks, c.Length = wire.FlagListed, math.MaxUint32, 1<<34-32 }), ""),
			"description has 17179869184"},
		{"payload too long", callFrame(reduce(1), "12345"), "CALL with 4 bytes after its fields is followed by 5"},
		{"DATA too long", append(callFrame(reduce(1), "12"), attachtest.DataFrame(1, []byte("345"))...),
			"DATA has 3 bytes for operation 1"},
		{"id in use", append(callFrame(reduce(1), ""), callFrame(barrier(1), "")...),
			"id 1, which is in use by another operation"},
	} {
		c := h.attach(t, 0)
		_, _ = c.Conn.Write(tt.bytes)
		if e := c.ReadRefusal(); e.Reason != wire.Violation || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
	}
}

// TestInvalidCalls checks that an invalid call is answered with an error and is not started.
func TestInvalidCalls(t *testing.T) {
	h := serve(t, newWorld(3, 0), Options{})
	c := h.attach(t, 0)
	all := func(f func(*wire.Call)) wire.Call {
		c := reduce(7)
		c.Ranks = 3
		f(&c)
		return c
	}
	pad := func(s string, payload int) string {
		return s + strings.Repeat("\x00", (wire.AlignLen-len(s)%wire.AlignLen)%wire.AlignLen+payload)
	}
	sizes := func(n ...uint64) (s string) {
		for _, size := range n {
			s += string(wire.Order.AppendUint64(nil, size))
		}
		return s
	}
	list := func(f func(*wire.Call)) wire.Call {
		return all(func(c *wire.Call) { c.Flags, c.Length = wire.FlagListed, 16+4; f(c) })
	}
	gather := wire.Call{ID: 7, Collective: coll.Allgather, Comm: 3, Tag: 1, Ranks: 3, Elem: 1, Flags: wire.FlagVector,
		Length: 32 + 1, Result: 3}
	sound := root(1, 4) // makes the communicator known to the daemon
	sound.Ranks = 3
	c.Write(callFrame(sound, "abcd"))
	if d := c.ReadDone(); d.ID != 1 || d.Err != nil {
		t.Fatalf("%+v", d)
	}
	for _, tt := range []struct {
		name    string
		call    wire.Call
		follows string
		is      error
		text    string
	}{
		{"communicator 0", all(func(c *wire.Call) { c.Comm = 0 }), "abcd", coll.ErrCall, "it is in communicator 0"},
		{"tag 0", all(func(c *wire.Call) { c.Tag = 0 }), "abcd", coll.ErrCall,
			"its tag is 0: number the calls of a communicator from 1"},
		{"negative tag", all(func(c *wire.Call) { c.Tag = -1 }), "abcd", coll.ErrCall, "its tag is -1"},
		{"tag beyond the last", all(func(c *wire.Call) { c.Tag = collective.Tags + 1 }), "abcd", coll.ErrCall,
			"its tag is 536870912"},
		{"no ranks", all(func(c *wire.Call) { c.Ranks = 0 }), "abcd", coll.ErrCall,
			"the world has 3 ranks, and the communicator 0"},
		{"too many ranks", all(func(c *wire.Call) { c.Ranks = 4 }), "abcd", coll.ErrCall,
			"the world has 3 ranks, and the communicator 4"},
		{"a part of the world", all(func(c *wire.Call) { c.Ranks = 2 }), "abcd", coll.ErrCall, "list them"},
		{"far too many ranks", all(func(c *wire.Call) { c.Ranks = math.MaxUint32 }), "abcd", coll.ErrCall,
			"4294967295"},
		{"rank", all(func(c *wire.Call) { c.Rank = 3 }), "abcd", coll.ErrCall, "rank 3 is not one of 3"},
		{"another's rank", all(func(c *wire.Call) { c.Rank = 1 }), "abcd", coll.ErrCall,
			"it is rank 0 of the world, which is not number 1"},
		{"root", all(func(c *wire.Call) { c.Collective, c.Root = coll.Bcast, 3 }), "abcd", coll.ErrCall,
			"root 3 is not one of 3"},
		{"root of a named one", all(func(c *wire.Call) {
			c.Collective, c.Root, c.Name, c.Length = coll.Bcast,
				math.MaxUint32, 6, 16
		}), pad("atomic", 0), coll.ErrCall, "is not one of 3"},
		{"collective 0", all(func(c *wire.Call) { c.Collective = 0 }), "abcd", coll.ErrCall,
			"collective 0 is not known"},
		{"collective 12", all(func(c *wire.Call) { c.Collective = 12 }), "abcd", coll.ErrCall,
			"collective 12 is not known"},
		{"collective 255", all(func(c *wire.Call) { c.Collective = 255 }), "abcd", coll.ErrCall,
			"collective 255 is not known"},
		{"bytes", all(func(c *wire.Call) { c.Bytes = math.MaxUint64 }), "abcd", coll.ErrCall, "is not a valid length"},
		{"elements", all(func(c *wire.Call) { c.Elem = 3 }), "abcd", coll.ErrCall, "whole number of elements"},
		{"segment", all(func(c *wire.Call) { c.Segment = 6 }), "abcd", coll.ErrCall, "segments of 6 bytes"},
		{"less payload", all(func(c *wire.Call) { c.Bytes = 8 }), "abcd", coll.ErrCall,
			"its payload has 4 bytes and its result 4, but rank 0 gives 8 and gets 8"},
		{"less payload alone", all(func(c *wire.Call) {
			c.Collective, c.Root, c.Bytes, c.Result = coll.Reduce, 1, 8,
				0
		}), "abcd", coll.ErrCall, "its payload has 4 bytes and its result 0, but rank 0 gives 8 and gets 0"},
		{"more result", all(func(c *wire.Call) { c.Result = 8 }), "abcd", coll.ErrCall,
			"its payload has 4 bytes and its result 8"},
		{"operation", all(func(c *wire.Call) { c.Op = 99 }), "abcd", op.ErrUndefined, ""},
		{"operation of a type", all(func(c *wire.Call) { c.Op, c.Type = op.BAnd, op.Float32 }), "abcd", op.ErrUndefined,
			""},
		{"type", all(func(c *wire.Call) { c.Type = 99 }), "abcd", coll.ErrCall, "elements of 4 bytes are not of type"},
		{"algorithm", all(func(c *wire.Call) { c.Name, c.Length = 3, 16+4 }), pad("abc", 4), coll.ErrCall,
			"there is no such algorithm"},
		{"padding", all(func(c *wire.Call) { c.Name, c.Length = 4, 16+4 }),
			"ring" + strings.Repeat("\x00", 11) + "xabcd", coll.ErrCall, "end of its description is not zero"},
		{"one listed twice", list(func(*wire.Call) {}), pad("\x00\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00", 4),
			coll.ErrCall, "rank 2 of the world is listed twice in the communicator"},
		{"invalid rank listed", list(func(*wire.Call) {}),
			pad("\x00\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00", 4), mpe.ErrRank, "the cluster has ranks 0 to 2"},
		{"listed without the rank", list(func(c *wire.Call) { c.Ranks = 1 }), pad("\x01\x00\x00\x00", 4), coll.ErrCall,
			"it is rank 0 of the world"},
		{"a large block", gather, pad(sizes(1, math.MaxUint64, 1), 1), coll.ErrCall, "block 1 has"},
		{"large blocks", gather, pad(sizes(1, 1<<61, 1<<61), 1), coll.ErrCall, "block 1 has"},
		{"other blocks", gather, pad(sizes(1, 2, 1), 1), coll.ErrCall,
			"its payload has 1 bytes and its result 3, but rank 0 gives 1 and gets 4"},
		{"blocks without layouts", all(func(c *wire.Call) { c.Flags = wire.FlagVector }), "abcd", coll.ErrCall,
			"it has no layouts"},
	} {
		c.Write(callFrame(tt.call, tt.follows))
		d := c.ReadDone()
		if d.ID != 7 || !errors.Is(d.Err, tt.is) || !strings.Contains(d.Err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, d.Err)
		}
		if e, ok := errors.AsType[*coll.CallError](d.Err); tt.is == coll.ErrCall &&
			(!ok || !strings.HasSuffix(d.Err.Error(), e.Problem)) {
			t.Errorf("%s: %#v", tt.name, e)
		}
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if n := len(h.w.ranks[1].sent) + len(h.w.ranks[2].sent); n != 2 {
		t.Errorf("%d messages were sent", n)
	}
}

// TestCallClaims checks that no memory is allocated for bytes that do not arrive.
func TestCallClaims(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	large := func(id uint64) wire.Call {
		c := root(id, 1<<20)
		c.Name = 200
		c.Length += 208
		return c
	}
	c.Write(callFrame(large(9), ""))
	ses := h.session(0)
	underWay := func(n int) func() bool {
		return func() bool { have, _ := ses.pendingTotals(); return have == n }
	}
	attachtest.WaitUntil(t, "a call is in progress", underWay(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for id := range uint64(100) {
		c.Write(callFrame(large(10+id), "abcd"))
	}
	attachtest.WaitUntil(t, "they are in progress", underWay(101))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

func TestBudgetOfCalls(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{Limits: wire.Limits{Operations: 40000, Bytes: 1 << 20}})
	c := h.attach(t, 0)
	for _, tt := range []struct {
		name string
		call wire.Call
		is   error
		text string
	}{
		{"payload", root(2, 1<<20+1), handshake.ErrTooLong, "a program may have 1048576 bytes in progress"},
		{"result", wire.Call{ID: 2, Collective: coll.Bcast, Comm: 3, Tag: 1, Ranks: 2, Root: 1, Bytes: 1<<20 + 1,
			Result: 1<<20 + 1}, handshake.ErrTooLong, "a program may have"},
		{"both", wire.Call{ID: 2, Collective: coll.Scan, Comm: 3, Tag: 1, Ranks: 2, Bytes: 1 << 19, Length: 1<<19 + 1,
			Result: 1 << 19}, handshake.ErrTooLong, "a program may have"},
		{"more than can be counted",
			wire.Call{ID: 2, Collective: coll.Scan, Comm: 3, Tag: 1, Ranks: 2, Bytes: 1, Length: math.MaxUint64,
				Result: math.MaxUint64}, handshake.ErrTooLong, "a program may have"},
		{"work", wire.Call{ID: 2, Collective: coll.Scatter, Comm: 3, Tag: 1, Rank: 1, Ranks: 2, Bytes: 1<<19 + 1,
			Result: 1<<19 + 1}, handshake.ErrTooLong, "of working memory may be needed"},
	} {
		c.Write(callFrame(tt.call, ""))
		if d := c.ReadDone(); d.ID != 2 || !errors.Is(d.Err, tt.is) || !strings.Contains(d.Err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, d.Err)
		}
	}
	// Calls that exceed the rest of the budget are rejected.
	c.Write(callFrame(root(1, 1<<20-4), "")) // waits for its payload
	c.Write(callFrame(root(2, 5), "abcde"))
	if d := c.ReadDone(); d.ID != 2 || !errors.Is(d.Err, mpe.ErrFull) ||
		!strings.Contains(d.Err.Error(), "5 bytes would be more than the 1048576") {
		t.Errorf("%v", d.Err)
	}
	c.Write(callFrame(wire.Call{ID: 2, Collective: coll.Scatter, Comm: 3, Tag: 1, Rank: 1, Ranks: 2, Bytes: 4,
		Result: 4}, ""))
	if d := c.ReadDone(); d.ID != 2 || !errors.Is(d.Err, mpe.ErrFull) ||
		!strings.Contains(d.Err.Error(), "8 bytes of working memory") {
		t.Errorf("%v", d.Err)
	}
	c.Write(wire.AbortFrame(1, context.Canceled))
	if d := c.ReadDone(); d.ID != 1 || !errors.Is(d.Err, context.Canceled) ||
		!strings.Contains(d.Err.Error(),
			"rank 0 has not begun Bcast: 0 of 1048572 bytes of payload received from the program") {
		t.Errorf("%v", d.Err)
	}
	c.Write(callFrame(root(2, 5), "abcde"))
	if d := c.ReadDone(); d.ID != 2 || d.Err != nil {
		t.Errorf("%v", d.Err)
	}
	if at := h.server.AttachedPrograms()[0]; at.Operations != 0 || at.Bytes != 0 {
		t.Errorf("%+v", at)
	}
	// Communicators are cached.
	const most = maxCommBytes / (commCost + commMemberCost)
	go func() {
		alone := wire.Call{Collective: coll.Barrier, Tag: 1, Ranks: 1, Flags: wire.FlagListed, Length: 16}
		for i := range uint64(most + 1) {
			alone.ID, alone.Comm = i, uint32(i)*2+1
			c.Conn.Write(callFrame(alone, strings.Repeat("\x00", 16)))
		}
	}()
	for range most + 1 {
		if d := c.ReadDone(); d.ID < most-1 && d.Err != nil || d.ID == most && !errors.Is(d.Err, mpe.ErrFull) {
			t.Fatalf("communicator %d: %v", d.ID, d.Err)
		}
	}
}

// TestCallsAreNotCancelled checks that CANCEL does not end a call, for which the other ranks would wait forever.
func TestCallsAreNotCancelled(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	c.Write(callFrame(reduce(1), "\x01\x00"))
	c.Write(wire.AppendID(nil, wire.FrameCancel, 1, 0))
	c.Write(attachtest.DataFrame(1, []byte("\x00\x00")))
	c.Write(callFrame(barrier(2), ""))
	c.Write(wire.AppendID(nil, wire.FrameCancel, 1, 0))
	c.Write(wire.AppendID(nil, wire.FrameCancel, 2, 0))
	other := h.w.ranks[1]
	for id, m := range []collective.Operation{
		{Call: coll.Call{Collective: coll.Allreduce, Bytes: 4, Elem: 4}, Send: []byte{2, 0, 0, 0},
			Recv: make([]byte, 4), Op: op.Sum, Type: op.Int32},
		{Call: coll.Call{Collective: coll.Barrier}},
	} {
		m.Call.Rank, m.Call.Ranks, m.Members, m.Comm, m.Tag = 1, 2, []int{0, 1}, 3, 1
		o, err := other.StartCollective(&m)
		if err != nil {
			t.Fatal(err)
		}
		attachtest.Wait(t, o)
		o.Free()
		d := c.ReadDone()
		if d.ID != uint64(id+1) || d.Err != nil {
			t.Errorf("%d: %+v", id+1, d)
		}
		if b, _ := c.In.NextBytes(c.In.Remaining); id == 0 && string(b) != "\x03\x00\x00\x00" {
			t.Errorf("the sum is %x", b)
		}
	}
}

// TestOtherVersions checks that a program that uses another version of the protocol is refused.
func TestOtherVersions(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	for _, version := range []uint32{0, 1, wire.Version - 1, wire.Version + 1, math.MaxUint32} {
		c := h.connect(t)
		c.Write(wire.HelloFrame(wire.Hello{Version: version, Rank: 0}))
		if e := c.ReadRefusal(); e.Reason != wire.WrongVersion {
			t.Errorf("version %d: %+v", version, e)
		}
	}
}
