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
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// callFrame is CALL with all or the beginning of what follows its fields.
func callFrame(c call, follows string) []byte {
	return append(appendCall(nil, &c, len(follows)), follows...)
}

// barrier is one of both ranks of a world; reduce is an Allreduce of 4 bytes; root is
// Bcast from rank 0 of n bytes, which waits for no other rank.
func barrier(id uint64) call {
	return call{id: id, collective: coll.Barrier, comm: 3, tag: 1, ranks: 2}
}

func reduce(id uint64) call {
	return call{id: id, collective: coll.Allreduce, comm: 3, tag: 1, ranks: 2, op: op.Sum, typ: op.Int32, elem: 4, bytes: 4, length: 4, result: 4}
}

func root(id uint64, n int) call {
	return call{id: id, collective: coll.Bcast, comm: 3, tag: 1, ranks: 2, bytes: uint64(n), length: uint64(n)}
}

func TestHostileCalls(t *testing.T) {
	noLeak(t)
	h := serve(t, newWorld(2, 0), Options{})
	change := func(c call, f func(*call)) call { f(&c); return c }
	at := func(i int, b byte) []byte { f := callFrame(barrier(1), ""); f[frameHeaderLen+i] = b; return f }
	for _, tt := range []struct {
		name  string
		bytes []byte
		text  string
	}{
		{"short", append(appendHeader(nil, frameCall, 5), "12345"...), "CALL is 67 bytes too short"},
		{"datatype", at(9, 2), "CALL with datatype 2"},
		{"flag", at(10, 0x40), "CALL with flags 0x0040"},
		{"zero", at(35, 1), "byte 35 0x01"},
		{"no room for the description", callFrame(change(barrier(1), func(c *call) { c.name = 1 }), ""), "followed by 0 bytes, but its description has 16"},
		{"huge description", callFrame(change(barrier(1), func(c *call) { c.flags, c.ranks, c.length = flagListed, math.MaxUint32, 1<<34-32 }), ""), "description has 17179869184"},
		{"payload too long", callFrame(reduce(1), "12345"), "CALL with 4 bytes after its fields is followed by 5"},
		{"DATA too long", append(callFrame(reduce(1), "12"), dataFrame(1, []byte("345"))...), "DATA has 3 bytes for operation 1"},
		{"id in use", append(callFrame(reduce(1), ""), callFrame(barrier(1), "")...), "id 1, which another operation has"},
	} {
		c := h.attach(t, 0)
		_, _ = c.conn.Write(tt.bytes)
		if e := c.refusal(); e.Reason != Violation || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
	}
}

// TestInvalidCalls: an invalid call is answered with an error, and is not started.
func TestInvalidCalls(t *testing.T) {
	h := serve(t, newWorld(3, 0), Options{})
	c := h.attach(t, 0)
	all := func(f func(*call)) call {
		c := reduce(7)
		c.ranks = 3
		f(&c)
		return c
	}
	pad := func(s string, payload int) string {
		return s + strings.Repeat("\x00", (alignLen-len(s)%alignLen)%alignLen+payload)
	}
	sizes := func(n ...uint64) (s string) {
		for _, size := range n {
			s += string(order.AppendUint64(nil, size))
		}
		return s
	}
	list := func(f func(*call)) call {
		return all(func(c *call) { c.flags, c.length = flagListed, 16+4; f(c) })
	}
	gather := call{id: 7, collective: coll.Allgather, comm: 3, tag: 1, ranks: 3, elem: 1, flags: flagVector, length: 32 + 1, result: 3}
	sound := root(1, 4) // after which the communicator is known
	sound.ranks = 3
	c.write(callFrame(sound, "abcd"))
	if d := c.done(); d.id != 1 || d.err != nil {
		t.Fatalf("%+v", d)
	}
	for _, tt := range []struct {
		name    string
		call    call
		follows string
		is      error
		text    string
	}{
		{"communicator 0", all(func(c *call) { c.comm = 0 }), "abcd", coll.ErrCall, "it is in communicator 0"},
		{"tag 0", all(func(c *call) { c.tag = 0 }), "abcd", coll.ErrCall, "its tag is 0: number the calls of a communicator from 1"},
		{"negative tag", all(func(c *call) { c.tag = -1 }), "abcd", coll.ErrCall, "its tag is -1"},
		{"tag beyond the last", all(func(c *call) { c.tag = collective.Tags + 1 }), "abcd", coll.ErrCall, "its tag is 536870912"},
		{"no ranks", all(func(c *call) { c.ranks = 0 }), "abcd", coll.ErrCall, "there are 3 ranks in the world, and 0"},
		{"too many ranks", all(func(c *call) { c.ranks = 4 }), "abcd", coll.ErrCall, "there are 3 ranks in the world, and 4"},
		{"a part of the world", all(func(c *call) { c.ranks = 2 }), "abcd", coll.ErrCall, "list them"},
		{"far too many ranks", all(func(c *call) { c.ranks = math.MaxUint32 }), "abcd", coll.ErrCall, "4294967295"},
		{"rank", all(func(c *call) { c.rank = 3 }), "abcd", coll.ErrCall, "rank 3 is not one of 3"},
		{"another's rank", all(func(c *call) { c.rank = 1 }), "abcd", coll.ErrCall, "it is rank 0 of the world, which is not number 1"},
		{"root", all(func(c *call) { c.collective, c.root = coll.Bcast, 3 }), "abcd", coll.ErrCall, "root 3 is not one of 3"},
		{"root of a named one", all(func(c *call) { c.collective, c.root, c.name, c.length = coll.Bcast, math.MaxUint32, 6, 16 }), pad("atomic", 0), coll.ErrCall, "is not one of 3"},
		{"collective 0", all(func(c *call) { c.collective = 0 }), "abcd", coll.ErrCall, "collective 0 is not known"},
		{"collective 12", all(func(c *call) { c.collective = 12 }), "abcd", coll.ErrCall, "collective 12 is not known"},
		{"collective 255", all(func(c *call) { c.collective = 255 }), "abcd", coll.ErrCall, "collective 255 is not known"},
		{"bytes", all(func(c *call) { c.bytes = math.MaxUint64 }), "abcd", coll.ErrCall, "are no length"},
		{"elements", all(func(c *call) { c.elem = 3 }), "abcd", coll.ErrCall, "whole number of elements"},
		{"segment", all(func(c *call) { c.segment = 6 }), "abcd", coll.ErrCall, "segments of 6 bytes"},
		{"less payload", all(func(c *call) { c.bytes = 8 }), "abcd", coll.ErrCall, "its payload has 4 bytes and its result 4, but rank 0 gives 8 and gets 8"},
		{"less payload alone", all(func(c *call) { c.collective, c.root, c.bytes, c.result = coll.Reduce, 1, 8, 0 }), "abcd", coll.ErrCall, "its payload has 4 bytes and its result 0, but rank 0 gives 8 and gets 0"},
		{"more result", all(func(c *call) { c.result = 8 }), "abcd", coll.ErrCall, "its payload has 4 bytes and its result 8"},
		{"operation", all(func(c *call) { c.op = 99 }), "abcd", op.ErrUndefined, ""},
		{"operation of a type", all(func(c *call) { c.op, c.typ = op.BAnd, op.Float32 }), "abcd", op.ErrUndefined, ""},
		{"type", all(func(c *call) { c.typ = 99 }), "abcd", coll.ErrCall, "elements of 4 bytes are not of type"},
		{"algorithm", all(func(c *call) { c.name, c.length = 3, 16+4 }), pad("abc", 4), coll.ErrCall, "there is no such algorithm"},
		{"padding", all(func(c *call) { c.name, c.length = 4, 16+4 }), "ring" + strings.Repeat("\x00", 11) + "xabcd", coll.ErrCall, "does not end with zeros"},
		{"one listed twice", list(func(*call) {}), pad("\x00\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00", 4), coll.ErrCall, "rank 2 of the world is in the communicator twice"},
		{"one listed that is none", list(func(*call) {}), pad("\x00\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00", 4), mpe.ErrRank, "the cluster has ranks 0 to 2"},
		{"listed without the rank", list(func(c *call) { c.ranks = 1 }), pad("\x01\x00\x00\x00", 4), coll.ErrCall, "it is rank 0 of the world"},
		{"a large block", gather, pad(sizes(1, math.MaxUint64, 1), 1), coll.ErrCall, "block 1 has"},
		{"large blocks", gather, pad(sizes(1, 1<<61, 1<<61), 1), coll.ErrCall, "block 1 has"},
		{"other blocks", gather, pad(sizes(1, 2, 1), 1), coll.ErrCall, "its payload has 1 bytes and its result 3, but rank 0 gives 1 and gets 4"},
		{"blocks that there are none of", all(func(c *call) { c.flags = flagVector }), "abcd", coll.ErrCall, "it has no layouts"},
	} {
		c.write(callFrame(tt.call, tt.follows))
		d := c.done()
		if d.id != 7 || !errors.Is(d.err, tt.is) || !strings.Contains(d.err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, d.err)
		}
		if e, ok := errors.AsType[*coll.CallError](d.err); tt.is == coll.ErrCall && (!ok || !strings.HasSuffix(d.err.Error(), e.Problem)) {
			t.Errorf("%s: %#v", tt.name, e)
		}
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if n := len(h.w.ranks[1].sent) + len(h.w.ranks[2].sent); n != 2 {
		t.Errorf("%d messages were sent", n)
	}
}

// TestCallClaims: nothing is allocated for bytes that do not come.
func TestCallClaims(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	large := func(id uint64) call {
		c := root(id, 1<<20)
		c.name = 200
		c.length += 208
		return c
	}
	c.write(callFrame(large(9), ""))
	ses := h.session(0)
	underWay := func(n int) func() bool {
		return func() bool { have, _ := ses.underWay(); return have == n }
	}
	until(t, "a call is under way", underWay(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for id := range uint64(100) {
		c.write(callFrame(large(10+id), "abcd"))
	}
	until(t, "they are under way", underWay(101))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

func TestBudgetOfCalls(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{Limits: Limits{Operations: 40000, Bytes: 1 << 20}})
	c := h.attach(t, 0)
	for _, tt := range []struct {
		name string
		call call
		is   error
		text string
	}{
		{"payload", root(2, 1<<20+1), handshake.ErrTooLong, "a program may have 1048576 bytes under way"},
		{"result", call{id: 2, collective: coll.Bcast, comm: 3, tag: 1, ranks: 2, root: 1, bytes: 1<<20 + 1, result: 1<<20 + 1}, handshake.ErrTooLong, "a program may have"},
		{"both", call{id: 2, collective: coll.Scan, comm: 3, tag: 1, ranks: 2, bytes: 1 << 19, length: 1<<19 + 1, result: 1 << 19}, handshake.ErrTooLong, "a program may have"},
		{"more than can be counted", call{id: 2, collective: coll.Scan, comm: 3, tag: 1, ranks: 2, bytes: 1, length: math.MaxUint64, result: math.MaxUint64}, handshake.ErrTooLong, "a program may have"},
		{"work", call{id: 2, collective: coll.Scatter, comm: 3, tag: 1, rank: 1, ranks: 2, bytes: 1<<19 + 1, result: 1<<19 + 1}, handshake.ErrTooLong, "may be needed to work on it"},
	} {
		c.write(callFrame(tt.call, ""))
		if d := c.done(); d.id != 2 || !errors.Is(d.err, tt.is) || !strings.Contains(d.err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, d.err)
		}
	}
	// What is beyond what is left.
	c.write(callFrame(root(1, 1<<20-4), "")) // needs its payload
	c.write(callFrame(root(2, 5), "abcde"))
	if d := c.done(); d.id != 2 || !errors.Is(d.err, mpe.ErrFull) || !strings.Contains(d.err.Error(), "5 bytes would be more than the 1048576") {
		t.Errorf("%v", d.err)
	}
	c.write(callFrame(call{id: 2, collective: coll.Scatter, comm: 3, tag: 1, rank: 1, ranks: 2, bytes: 4, result: 4}, ""))
	if d := c.done(); d.id != 2 || !errors.Is(d.err, mpe.ErrFull) || !strings.Contains(d.err.Error(), "8 bytes to work on it") {
		t.Errorf("%v", d.err)
	}
	c.write(abortFrame(1, context.Canceled))
	if d := c.done(); d.id != 1 || !errors.Is(d.err, context.Canceled) ||
		!strings.Contains(d.err.Error(), "rank 0 has not begun Bcast: 0 of 1048572 bytes of payload have come from the program") {
		t.Errorf("%v", d.err)
	}
	c.write(callFrame(root(2, 5), "abcde"))
	if d := c.done(); d.id != 2 || d.err != nil {
		t.Errorf("%v", d.err)
	}
	if at := h.server.Attached()[0]; at.Operations != 0 || at.Bytes != 0 {
		t.Errorf("%+v", at)
	}
	// Communicators are remembered.
	const most = groupsLen / (groupLen + groupMemberLen)
	go func() {
		alone := call{collective: coll.Barrier, tag: 1, ranks: 1, flags: flagListed, length: 16}
		for i := range uint64(most + 1) {
			alone.id, alone.comm = i, uint32(i)*2+1
			c.conn.Write(callFrame(alone, strings.Repeat("\x00", 16)))
		}
	}()
	for range most + 1 {
		if d := c.done(); d.id < most-1 && d.err != nil || d.id == most && !errors.Is(d.err, mpe.ErrFull) {
			t.Fatalf("communicator %d: %v", d.id, d.err)
		}
	}
}

// TestCallsAreNotCancelled: CANCEL does not end a call. The other ranks would wait forever.
func TestCallsAreNotCancelled(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	c.write(callFrame(reduce(1), "\x01\x00"))
	c.write(cancelFrame(1))
	c.write(dataFrame(1, []byte("\x00\x00")))
	c.write(callFrame(barrier(2), ""))
	c.write(cancelFrame(1))
	c.write(cancelFrame(2))
	other := h.w.ranks[1]
	for id, m := range []collective.Operation{
		{Call: coll.Call{Collective: coll.Allreduce, Bytes: 4, Elem: 4}, Send: []byte{2, 0, 0, 0}, Recv: make([]byte, 4), Op: op.Sum, Type: op.Int32},
		{Call: coll.Call{Collective: coll.Barrier}},
	} {
		m.Call.Rank, m.Call.Ranks, m.Members, m.Comm, m.Tag = 1, 2, []int{0, 1}, 3, 1
		o, err := other.StartCollective(&m)
		if err != nil {
			t.Fatal(err)
		}
		wait(t, o)
		o.Free()
		d := c.done()
		if d.id != uint64(id+1) || d.err != nil {
			t.Errorf("%d: %+v", id+1, d)
		}
		if b, _ := c.in.take(c.in.left); id == 0 && string(b) != "\x03\x00\x00\x00" {
			t.Errorf("the sum is %x", b)
		}
	}
}

// TestOtherVersions: a program of another version is refused.
func TestOtherVersions(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	for _, version := range []uint32{0, 1, Version - 1, Version + 1, math.MaxUint32} {
		c := h.connect(t)
		c.write(helloFrame(hello{version: version, rank: 0}))
		if e := c.refusal(); e.Reason != WrongVersion {
			t.Errorf("version %d: %+v", version, e)
		}
	}
}
