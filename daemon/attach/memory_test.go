package attach

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/anonmem"
	"github.com/zrlmpi/zrlmpid/mpe"
	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// common returns the amount of common memory that is left.
func (h *harness) common() int64 {
	m := &h.server.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commonLeft
}

// large returns a buffer whose memory is allocated only when it is written to.
func large(t *testing.T, n int) []byte {
	t.Helper()
	b, err := anonmem.Get(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { anonmem.Put(b) })
	return b
}

// TestPostedReceivesTakeNoMemory checks that receives that have been posted or closed use no memory of Go's
// heap, regardless of their length, and that their charges are released.
func TestPostedReceivesTakeNoMemory(t *testing.T) {
	const length, limit = 256 << 20, 1 << 30
	h := serve(t, newWorld(4, 0, 1, 2), Options{Memory: limit})
	h.dial(t, 0).Close(attachtest.TestContext(t))
	idle := h.common()
	buf := large(t, length)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 100 {
		c := h.dial(t, i%3)
		attachtest.Recv(t, c, 3, 0, buf)
		// the receive was posted before the probe was answered
		if _, _, err := c.Probe(attachtest.TestContext(t), mpe.Match{Source: 3}, false); err != nil {
			t.Fatal(err)
		}
		at := h.server.AttachedPrograms()
		if len(at) != 1 || at[0].Bytes != length {
			t.Fatalf("%+v", at)
		}
		if taken := idle - h.common(); taken > length || taken < length-maxShare {
			t.Errorf("a receive of %d bytes is charged with %d beyond its program's share", length, taken)
		}
		if err := c.Close(attachtest.TestContext(t)); err != nil {
			t.Fatal(err)
		}
		if got := h.common(); got != idle {
			t.Fatalf("%d bytes are common after a session, and were %d before", got, idle)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > length/2 {
		t.Errorf("100 receives have taken %d bytes of the heap", grown)
	}
}

// TestMemoryOfAllPrograms checks that the memory of all programs together is limited. Operations beyond the
// limit are rejected immediately. They do not block operations that fit, and small operations always fit.
func TestMemoryOfAllPrograms(t *testing.T) {
	const limit = 16 << 20
	h := serve(t, newWorld(4, 0, 1, 2), Options{Memory: limit})
	a, b, c := h.dial(t, 0), h.dial(t, 1), h.dial(t, 2)
	most := int(a.Limits().Bytes)
	if most > limit || most < limit/2 {
		t.Fatalf("a program may have %d bytes", most)
	}
	first := attachtest.Recv(t, a, 3, 0, large(t, most-1<<20))
	if _, _, err := a.Probe(attachtest.TestContext(t), mpe.Match{Source: 3}, false); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]mpe.Device{"another program": b, "the next": c} {
		for _, kind := range []mpe.OpKind{mpe.OpRecv, mpe.OpSend} {
			op := attachtest.StartOp(t, d, mpe.Operation{Kind: kind, Peer: 3, Tag: 1, Buf: make([]byte, 4<<20)})
			if _, err := op.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrFull) ||
				!strings.Contains(err.Error(), "limits.attached_bytes") {
				t.Errorf("%s: %v", name, err)
			}
		}
		attachtest.Wait(t, attachtest.Send(t, d, d.Rank(), 2, make([]byte, 100<<10)))
		attachtest.Wait(t, attachtest.Recv(t, d, d.Rank(), 2, make([]byte, 100<<10)))
	}
	first.Cancel()
	if _, err := first.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrCancelled) {
		t.Error(err)
	}
	data := attachtest.Pattern(3, 4<<20)
	r := attachtest.Recv(t, b, 2, 3, make([]byte, len(data)))
	attachtest.Wait(t, attachtest.Send(t, c, 1, 3, data))
	attachtest.Wait(t, r)
	a.Close(attachtest.TestContext(t))
	b.Close(attachtest.TestContext(t))
	c.Close(attachtest.TestContext(t))
	attachtest.WaitUntil(t, "everything is common",
		func() bool { return h.common() == limit-3*h.server.memory.perProgram })
}

// TestEndedSendsHoldNoMemory checks that a program that does not read the answers to its sends does not make
// the daemon keep their payload.
func TestEndedSendsHoldNoMemory(t *testing.T) {
	const length, sends = 1 << 20, 8
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	send := func(id uint64, to int, n int) {
		st := attachtest.SendStart(id, n)
		st.Peer = to
		c.Write(attachtest.StartFrame(st, nil))
		for range n / wire.ChunkLen {
			c.Write(attachtest.DataFrame(id, make([]byte, wire.ChunkLen)))
		}
	}
	// A message that the program does not read blocks all answers that follow.
	r := attachtest.RecvStart(1000, 8*length)
	r.Peer = 0
	c.Write(attachtest.StartFrame(r, nil))
	send(1001, 0, 8*length)
	ses := h.session(0)
	attachtest.WaitUntil(t, "the message is received", func() bool {
		ses.mu.Lock()
		defer ses.mu.Unlock()
		op := ses.ops[1000]
		return op != nil && op.ended
	})
	for id := range uint64(sends) {
		send(id, 1, length)
	}
	held := func() (ended int, bytes int64, buffers int) {
		ses.mu.Lock()
		defer ses.mu.Unlock()
		for id := range uint64(sends) {
			if op := ses.ops[id]; op != nil && op.ended {
				ended++
				if op.memory != nil {
					buffers++
				}
			}
		}
		return ended, ses.bytes, buffers
	}
	attachtest.WaitUntil(t, "all sends are done", func() bool { ended, _, _ := held(); return ended == sends })
	if _, bytes, buffers := held(); bytes != 8*length || buffers != 0 {
		t.Errorf("%d bytes and %d buffers are held", bytes, buffers)
	}
}

// TestUnreadMessagesAreReturned checks that the memory of a message that is being written is released if the
// program stops reading and is then gone.
func TestUnreadMessagesAreReturned(t *testing.T) {
	const length = 2 * maxShare // one half is drawn from common memory
	for name, end := range map[string]func(c *attachtest.RawClient){
		"it closes the connection": func(c *attachtest.RawClient) { c.Conn.Close() },
		"it sends BYE":             func(c *attachtest.RawClient) { c.Write(wire.AppendHeader(nil, wire.FrameBye, 0)) },
		"it breaks a rule": func(c *attachtest.RawClient) {
			c.Write(wire.AppendHeader(nil, wire.FrameWelcome,
				0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, newWorld(2, 0), Options{})
			h.dial(t, 0).Close(attachtest.TestContext(t))
			idle := h.common()
			c := h.attach(t, 0)
			r := attachtest.RecvStart(1000, length)
			r.Peer = 0
			c.Write(attachtest.StartFrame(r, nil))
			s := attachtest.SendStart(1001, length)
			s.Peer = 0
			c.Write(attachtest.StartFrame(s, nil))
			for range length / wire.ChunkLen {
				c.Write(attachtest.DataFrame(1001, make([]byte, wire.ChunkLen)))
			}
			ses := h.session(0)
			attachtest.WaitUntil(t, "the message is received", func() bool {
				ses.mu.Lock()
				defer ses.mu.Unlock()
				op := ses.ops[1000]
				return op != nil && op.ended
			})
			if h.common() == idle {
				t.Fatal("the message uses no common memory")
			}
			end(c)
			attachtest.WaitUntil(t, "its memory is common", func() bool { return h.common() == idle })
		})
	}
}

// TestKeptMemoryIsReturned checks that buffers kept for later operations are released when another program
// needs the memory.
func TestKeptMemoryIsReturned(t *testing.T) {
	flags := dialFlags
	dialFlags &^= wire.FlagArena // a message in the arena needs no buffer
	defer func() { dialFlags = flags }()
	h := serve(t, newWorld(3, 0, 1), Options{Memory: 32 << 20})
	a, b := h.dial(t, 0), h.dial(t, 1)
	data, back := attachtest.Pattern(1, 8<<20), make([]byte, 8<<20)
	r := attachtest.Recv(t, a, 0, 1, back)
	attachtest.Wait(t, attachtest.Send(t, a, 0, 1, data))
	attachtest.Wait(t, r)
	attachtest.CheckEqual(t, "the message", back, data)
	ses := h.session(0)
	kept := func() int64 {
		ses.mu.Lock()
		defer ses.mu.Unlock()
		return ses.spareBytes
	}
	attachtest.WaitUntil(t, "buffers are kept", func() bool { // and not only charged during the write of an answer
		ses.mu.Lock()
		defer ses.mu.Unlock()
		return len(ses.spareBuffers) == 2
	})
	op := attachtest.Recv(t, b, 2, 1, large(t, int(b.Limits().Bytes)-1<<20))
	if _, _, err := b.Probe(attachtest.TestContext(t), mpe.Match{Source: 2}, false); err != nil {
		t.Fatal(err)
	}
	if _, ended, err := op.Test(); ended {
		t.Errorf("a receive of all there is: %v", err)
	}
	if kept() != 0 {
		t.Errorf("%d bytes are kept", kept())
	}
}

// TestSilentConnections checks that at most maxUnassigned connections can be without a rank at the same time.
// Others wait until one of them gets a rank or is closed.
func TestSilentConnections(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(2, 0), Options{HelloTimeout: attachtest.Deadline})
	var silent []*attachtest.RawClient
	for range maxUnassigned {
		silent = append(silent, h.connect(t))
	}
	attachtest.WaitUntil(t, "all are being greeted", func() bool { return len(h.server.greetSlots) == maxUnassigned })
	attached := make(chan error)
	go func() {
		c, err := client.Dial(attachtest.TestContext(t), h.socket, 0)
		if err == nil {
			err = c.Close(attachtest.TestContext(t))
		}
		attached <- err
	}()
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case err := <-attached:
		t.Errorf("one more was served: %v", err)
	default:
	}
	silent[0].Conn.Close()
	if err := <-attached; err != nil {
		t.Error(err)
	}
	for _, c := range silent {
		c.Conn.Close()
	}
}
