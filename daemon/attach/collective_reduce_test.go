package attach

import (
	"bytes"
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
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// ranges is an operation on ranges of ranks, each of 2 bytes. It combines two adjacent ranges into one. The
// result for other ranges is invalid.
func ranges(in, inout []byte) error {
	for i := 0; i < len(in); i += 2 {
		if in[i+1]+1 != inout[i] {
			inout[i], inout[i+1] = 0xff, 0xff
			continue
		}
		inout[i] = in[i]
	}
	return nil
}

// userCall returns an Allreduce call by rank r with the given reduction function.
func userCall(r, n, tag, bytes int, user func(in, inout []byte) error) *collective.Operation {
	own := make([]byte, bytes)
	for i := range own {
		own[i] = byte(r)
	}
	m := callOf(coll.Allreduce, r, n, tag, own, make([]byte, bytes))
	m.Call.Elem, m.Call.Ordered, m.User, m.Op, m.Type = 2, true, user, 0, 0
	return m
}

// TestUserFunction checks calls that the daemon executes with a function of the program, for every algorithm
// and for vectors of one element and of several REDUCE frames.
func TestUserFunction(t *testing.T) {
	const ranks = 5
	mixed := attachSome(t, engines(t, ranks, nil), 0, 2, 3)
	tag := 0
	for _, a := range append([]*coll.Algorithm{{}}, coll.Algorithms(coll.Allreduce)...) {
		for _, n := range []int{2, 4000, 2*wire.OperandLen + 10} {
			tag++
			var ops []mpe.Op
			var recv [ranks][]byte
			for r, d := range mixed {
				m := userCall(r, ranks, tag, n, ranges)
				if m.Algorithm = a.Name; a.Name != "" && a.CheckSupport(m.Call) != nil {
					break
				}
				recv[r] = m.Recv
				ops = append(ops, call1(t, d, m))
			}
			for r, o := range ops {
				attachtest.Wait(t, o)
				o.Free()
				if want := bytes.Repeat([]byte{0, ranks - 1}, n/2); !bytes.Equal(recv[r], want) {
					t.Errorf("%d bytes by %q: rank %d has a wrong result", n, a.Name, r)
				}
			}
		}
	}
}

// TestUserFunctionGoesOn checks that the function is called even if the program is not waiting for anything.
func TestUserFunctionGoesOn(t *testing.T) {
	mixed := attachSome(t, engines(t, 3, nil), 0)
	first := call1(t, mixed[0], userCall(0, 3, 1, 2, ranges))
	var others []mpe.Op
	for r := 1; r < 3; r++ {
		others = append(others, call1(t, mixed[r], userCall(r, 3, 1, 2, ranges)))
	}
	for _, o := range append(others, first) {
		attachtest.Wait(t, o)
		o.Free()
	}
}

// TestUserFunctionFails checks that a function that fails, panics or does not return ends the call on this rank
// and on all other ranks, but nothing else.
func TestUserFunctionFails(t *testing.T) {
	for name, tt := range map[string]struct {
		user func(in, inout []byte) error
		text string
	}{
		"error": {func(_, _ []byte) error { return errEnough }, "the program's operation: enough"},
		"panic": {func(_, _ []byte) error { panic("no such element") },
			"the program's operation: panic: no such element"},
		"exit": {func(_, _ []byte) error { runtime.Goexit(); return nil },
			"the program's operation: it did not return"},
	} {
		t.Run(name, func(t *testing.T) {
			all := attachSome(t, engines(t, 2, nil), 0, 1)
			barriers(t, all, 1)
			// With flat, rank 0 combines the elements.
			m := userCall(0, 2, 2, 2, tt.user)
			m.Algorithm = "flat"
			failing := call1(t, all[0], m)
			m = userCall(1, 2, 2, 2, ranges)
			m.Algorithm = "flat"
			other := call1(t, all[1], m)
			_, err := failing.Await(attachtest.TestContext(t))
			step, ok := errors.AsType[*collective.StepError](err)
			if !ok || step.Peer != -1 || !strings.HasSuffix(err.Error(), tt.text) {
				t.Errorf("%v", err)
			}
			failing.Free()
			if _, err := other.Await(attachtest.TestContext(t)); !errors.Is(err, collective.ErrCallFailed) {
				t.Errorf("the other rank: %v", err)
			}
			other.Free()
			barriers(t, all, 3)
		})
	}
}

// TestUserFunctionBlocks checks a function that does not return. When the context of the caller ends, the
// caller gets its buffers back, the calls of the other ranks are aborted, and the rank keeps working.
func TestUserFunctionBlocks(t *testing.T) {
	devices := engines(t, 2, nil)
	h := serveDevices(t, devices, Options{})
	all := h.attachSome(t, devices, 0, 1)
	barriers(t, all, 1)
	called, goOn := make(chan struct{}), make(chan struct{})
	defer close(goOn)
	block := func(_, inout []byte) error {
		called <- struct{}{}
		<-goOn
		inout[0] = 0xee
		return nil
	}
	start := func(r, tag int, user func(_, _ []byte) error) (mpe.Op, []byte) {
		m := userCall(r, 2, tag, 2, user)
		m.Algorithm = "flat"
		return call1(t, all[r], m), m.Recv
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errEnough)
	blocked, recv := start(0, 2, block)
	other, _ := start(1, 2, ranges)
	<-called
	if _, err := blocked.Await(ctx); !errors.Is(err, errEnough) {
		t.Errorf("%v", err)
	}
	blocked.Free()
	_, err := other.Await(attachtest.TestContext(t))
	if failed, ok := errors.AsType[*collective.CallFailedError](err); !ok || failed.Cause != collective.CauseCancelled {
		t.Errorf("the other rank: %v", err)
	}
	other.Free()
	barriers(t, all, 3)
	// The call also ends if another rank fails.
	blocked, _ = start(0, 4, block)
	other, _ = start(1, 4, ranges)
	<-called
	if _, err := other.Await(ctx); !errors.Is(err, errEnough) {
		t.Errorf("%v", err)
	}
	other.Free()
	if _, err := blocked.Await(attachtest.TestContext(t)); !errors.Is(err, collective.ErrCallFailed) {
		t.Errorf("%v", err)
	}
	blocked.Free()
	barriers(t, all, 5)
	// The call also ends if the program does.
	start(0, 6, block)
	other, _ = start(1, 6, ranges)
	<-called
	h.session(0).stream.HangUp()
	if _, err := other.Await(attachtest.TestContext(t)); !errors.Is(err, collective.ErrCallFailed) {
		t.Errorf("%v", err)
	}
	other.Free()
	attachtest.WaitUntil(t, "the call is done", func() bool { return len(calls(devices[0])) == 0 })
	if recv[0] == 0xee {
		t.Error("a function that returned late has written to the buffer of its call")
	}
}

// userRoot returns a Reduce of 2 bytes by rank 0 of 2.
func userRoot(id uint64) wire.Call {
	return wire.Call{ID: id, Collective: coll.Reduce, Comm: 3, Tag: 1, Ranks: 2, Flags: wire.FlagUser, Elem: 2,
		Bytes: 2, Length: 2, Result: 2}
}

// TestHostileReduced checks that an unexpected or invalid REDUCED ends the connection.
func TestHostileReduced(t *testing.T) {
	reduced := func(id uint64, flags byte, result string) []byte {
		b := append(wire.AppendReduced(nil, id, false, len(result)), result...)
		b[wire.FrameHeaderLen+8] = flags
		return b
	}
	for _, tt := range []struct {
		name  string
		bytes []byte
		text  string
	}{
		{"short", append(wire.AppendHeader(nil, wire.FrameReduced, 8), "12345678"...), "REDUCED is 8 bytes too short"},
		{"flags", reduced(1, 2, "ab"), "REDUCED with flags 0x2"},
		{"result too long", reduced(1, 0, "abc"), "REDUCED for operation 1 has 3 bytes, and its operands 2 each"},
		{"result too short", reduced(1, 0, ""), "REDUCED for operation 1 has 0 bytes"},
		{"text too long", reduced(1, 1, strings.Repeat("x", wire.MaxText+1)), "REDUCED has a text of 4097 bytes"},
		{"no function", reduced(2, 0, "ab"),
			"REDUCED for operation 2, which is not a call with a user-defined operation"},
	} {
		h := serve(t, newWorld(2, 0), Options{})
		c := h.attach(t, 0)
		c.Write(callFrame(userRoot(1), "ab"))
		c.Write(attachtest.StartFrame(wire.Start{ID: 2, Operation: mpe.Operation{Kind: mpe.OpRecv, Peer: 1}, Length: 4},
			nil))
		send := attachtest.StartOp(t, h.w.ranks[1],
			mpe.Operation{Kind: mpe.OpSend, Peer: 0, Tag: 1, Comm: 3, Buf: []byte("cd")})
		c.Expect(wire.FrameReduce)
		if err := c.In.Skip(); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Conn.Write(tt.bytes)
		if e := c.ReadRefusal(); e.Reason != wire.Violation || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
		attachtest.Wait(t, send)
		send.Free()
	}
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	c.Write(reduced(7, 0, "ab")) // the call has already ended
	c.Write(callFrame(userRoot(1), "ab"))
	_, _ = c.Conn.Write(reduced(1, 0, "ab"))
	if e := c.ReadRefusal(); e.Reason != wire.Violation ||
		!strings.Contains(e.Text, "REDUCED for operation 1, which has no outstanding REDUCE") {
		t.Errorf("too early: %v: %q", e.Reason, e.Text)
	}
}

// TestReducedTwice checks that a REDUCED answers at most one REDUCE, which must belong to the same call.
func TestReducedTwice(t *testing.T) {
	for _, tt := range []struct {
		name string
		id   uint64
		text string
	}{
		{"twice", 1, "REDUCED for operation 1, which has no outstanding REDUCE"},
		{"another call", 2, "REDUCED for operation 2, which has no outstanding REDUCE"},
	} {
		h := serve(t, newWorld(3, 0), Options{})
		c := h.attach(t, 0)
		for id := range uint64(2) {
			x := userRoot(id + 1)
			x.Ranks, x.Tag = 3, int32(id+1)
			c.Write(callFrame(x, "ab"))
		}
		// Call 1 is still waiting for rank 2, and call 2 is waiting for both other ranks.
		send := attachtest.StartOp(t, h.w.ranks[1],
			mpe.Operation{Kind: mpe.OpSend, Peer: 0, Tag: 1, Comm: 3, Buf: []byte("cd")})
		c.Expect(wire.FrameReduce)
		if err := c.In.Skip(); err != nil {
			t.Fatal(err)
		}
		c.Write(append(wire.AppendReduced(nil, 1, false, 2), "ef"...))
		_, _ = c.Conn.Write(append(wire.AppendReduced(nil, tt.id, false, 2), "ef"...))
		if e := c.ReadRefusal(); e.Reason != wire.Violation || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
		attachtest.Wait(t, send)
		send.Free()
	}
}

// TestReduceUnanswered checks that no goroutine and no memory is left behind if a program does not answer a
// REDUCE, or does not finish a REDUCED, and then aborts the call or ends.
func TestReduceUnanswered(t *testing.T) {
	leaksNothing(t)
	const length = 1 << 20
	answer := append(wire.AppendReduced(nil, 1, false, wire.OperandLen), make([]byte, wire.OperandLen)...)
	for _, tt := range []struct {
		name   string
		leaves func(c *attachtest.RawClient)
	}{
		{"closes the connection", func(c *attachtest.RawClient) { c.Conn.Close() }},
		{"closes the connection in REDUCED",
			func(c *attachtest.RawClient) { c.Write(answer[:len(answer)/2]); c.Conn.Close() }},
		{"closes the connection behind the fields of REDUCED",
			func(c *attachtest.RawClient) { c.Write(answer[:wire.FrameHeaderLen+wire.ReducedLen]); c.Conn.Close() }},
		{"says BYE", func(c *attachtest.RawClient) {
			c.Write(wire.AppendHeader(nil, wire.FrameBye, 0))
			c.Expect(wire.FrameBye)
		}},
		{"aborts the call and answers late", func(c *attachtest.RawClient) {
			c.Write(wire.AbortFrame(1, errEnough))
			c.Expect(wire.FrameDone)
			var d wire.Done
			if err := c.In.ReadDone(&d); err != nil || d.ID != 1 || d.Err == nil ||
				!strings.HasSuffix(d.Err.Error(), "enough") {
				t.Errorf("%+v, %v", d, err)
			}
			c.Write(answer)
			c.Write(callFrame(root(2, 2), "ab")) // the session continues
			if d := c.ReadDone(); d.ID != 2 || d.Err != nil {
				t.Errorf("%+v", d)
			}
			c.Conn.Close()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := serve(t, newWorld(2, 0), Options{Memory: 16 * length})
			h.dial(t, 0).Close(attachtest.TestContext(t)) // makes the daemon divide its memory into shares
			idle := h.common()
			c := h.attach(t, 0)
			x := userRoot(1)
			x.Bytes, x.Length, x.Result = length, length, length
			c.Write(callFrame(x, ""))
			for range length / wire.ChunkLen {
				c.Write(attachtest.DataFrame(1, make([]byte, wire.ChunkLen)))
			}
			send := attachtest.StartOp(t, h.w.ranks[1],
				mpe.Operation{Kind: mpe.OpSend, Peer: 0, Tag: 1, Comm: 3, Buf: make([]byte, length)})
			c.Expect(wire.FrameReduce)
			if err := c.In.Skip(); err != nil {
				t.Fatal(err)
			}
			if h.common() >= idle {
				t.Errorf("the call is charged with nothing: %d, %d before", h.common(), idle)
			}
			tt.leaves(c)
			attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 0 })
			attachtest.WaitUntil(t, "the memory is returned", func() bool { return h.common() == idle })
			attachtest.Wait(t, send)
			send.Free()
		})
	}
}

// TestEndsInReduced makes another rank fail while the program is sending REDUCED. The call ends before the rest
// of REDUCED arrives, and the session continues.
func TestEndsInReduced(t *testing.T) {
	devices := engines(t, 2, nil)
	c := serveDevices(t, devices[:1], Options{}).attach(t, 0)
	both := func(tag int) {
		t.Helper()
		c.Write(callFrame(wire.Call{ID: uint64(tag), Collective: coll.Barrier, Comm: 1, Tag: int32(tag), Ranks: 2}, ""))
		o := call1(t, devices[1], callOf(coll.Barrier, 1, 2, tag, nil, nil))
		attachtest.Wait(t, o)
		o.Free()
		if d := c.ReadDone(); d.ID != uint64(tag) || d.Err != nil {
			t.Errorf("%+v", d)
		}
	}
	both(1)
	const description = "flat\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	c.Write(callFrame(wire.Call{
		ID: 2, Collective: coll.Allreduce, Comm: 1, Tag: 2, Ranks: 2, Flags: wire.FlagUser | wire.FlagOrdered, Name: 4,
		Elem: 2, Bytes: 2, Length: 18, Result: 2,
	}, description+"ab"))
	m := userCall(1, 2, 2, 2, ranges)
	m.Algorithm = "flat"
	other := call1(t, devices[1], m)
	c.Expect(wire.FrameReduce)
	if err := c.In.Skip(); err != nil {
		t.Fatal(err)
	}
	c.Write(append(wire.AppendReduced(nil, 2, false, 2), 'e'))
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errEnough)
	if _, err := other.Await(ctx); !errors.Is(err, errEnough) {
		t.Errorf("%v", err)
	}
	other.Free()
	if d := c.ReadDone(); d.ID != 2 || !errors.Is(d.Err, collective.ErrCallFailed) {
		t.Errorf("%+v", d)
	}
	c.Write([]byte("f"))
	both(3)
}

// TestUserCallsThatCannotBe checks which calls with a function of the program the daemon rejects.
func TestUserCallsThatCannotBe(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{Limits: wire.Limits{Operations: 10, Bytes: 1 << 20}})
	c := h.attach(t, 0)
	bcast := root(1, 2)
	bcast.Flags = wire.FlagUser
	large := userRoot(1)
	large.Elem, large.Bytes, large.Length, large.Result = wire.OperandLen+1, 0, 0, 0
	for _, x := range []struct {
		call    wire.Call
		payload string
		is      error
	}{{bcast, "ab", coll.ErrCall}, {large, "", coll.ErrCall}} {
		c.Write(callFrame(x.call, x.payload))
		if d := c.ReadDone(); !errors.Is(d.Err, x.is) || !strings.Contains(d.Err.Error(), "user-defined operation") {
			t.Errorf("%v", d.Err)
		}
	}
	// The memory for REDUCE is charged as well.
	full := userRoot(1)
	full.Bytes, full.Length, full.Result = 250_000, 250_000, 250_000
	c.Write(callFrame(full, ""))
	if d := c.ReadDone(); !errors.Is(d.Err, handshake.ErrTooLong) ||
		!strings.Contains(d.Err.Error(), "1143216 bytes of working memory may be needed") {
		t.Errorf("%v", d.Err)
	}
	if n := (&wire.Call{Flags: wire.FlagUser, Length: math.MaxUint64}).WorkBytes(); n != 3*wire.OperandLen {
		t.Errorf("%d bytes are counted", n)
	}
}
