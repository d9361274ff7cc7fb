package attach

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// TestHostilePlaces checks that a place outside the arena is a protocol violation.
func TestHostilePlaces(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(3, 0, 2), Options{})
	other := h.dial(t, 2)
	for _, tt := range []struct {
		name  string
		frame []byte
		text  string
	}{
		{"behind the end", attachtest.StartFrame(attachtest.InArenaAt(attachtest.SendStart(1, 4), wire.ArenaLen), nil),
			"START places 4 bytes at offset 16777216 of an arena of 16777216"},
		{"across the end", attachtest.StartFrame(attachtest.InArenaAt(attachtest.RecvStart(1, 5), wire.ArenaLen-4), nil),
			"START places 5 bytes at offset 16777212"},
		{"too long", attachtest.StartFrame(attachtest.InArenaAt(attachtest.SendStart(1, wire.ArenaLen+1), 0), nil),
			"of an arena of"},
		{"around the end of numbers",
			attachtest.StartFrame(attachtest.InArenaAt(attachtest.RecvStart(1, 16), math.MaxUint64-7),
				nil), "START places 16 bytes"},
		{"all ones", attachtest.StartFrame(attachtest.InArenaAt(attachtest.SendStart(1, math.MaxInt), math.MaxUint64), nil),
			"of an arena of"},
		{"with payload", attachtest.StartFrame(attachtest.InArenaAt(attachtest.SendStart(1, 4), 0), []byte("abcd")),
			"START has 4 bytes too many"},
		{"without a place", attachtest.StartFrame(wire.Start{ID: 1, Operation: mpe.Operation{Kind: mpe.OpRecv, Peer: 1}},
			nil), ""},
		{"DATA behind it", append(attachtest.StartFrame(attachtest.InArenaAt(attachtest.RecvStart(1, 4), 0), nil),
			attachtest.DataFrame(1, []byte("ab"))...), "DATA has 2 bytes for operation 1"},
	} {
		c := h.attach(t, 0)
		if tt.name == "without a place" {
			tt.frame[wire.FrameHeaderLen+10] = 2
			tt.text = "START is 8 bytes too short"
		}
		_, _ = c.Conn.Write(tt.frame) // the daemon may close the connection before it has read everything
		if e := c.ReadRefusal(); e.Reason != wire.Violation || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
	}
	attachtest.Wait(t, attachtest.Send(t, other, 1, 0, []byte("well")))
}

// TestNoArena checks that a program that has not requested an arena gets none, with or without rings, and that
// its WELCOME has no additional field.
func TestNoArena(t *testing.T) {
	flags := dialFlags
	defer func() { dialFlags = flags }()
	h := serve(t, newWorld(2, 0), Options{})
	for _, dialFlags = range []uint32{0, wire.FlagRings, wire.FlagArena} {
		c := h.attach(t, 0)
		c.Write(attachtest.StartFrame(attachtest.InArenaAt(attachtest.SendStart(1, 1), 0), nil))
		if e := c.ReadRefusal(); !strings.Contains(e.Text, "of an arena of 0") {
			t.Errorf("flags %d: %q", dialFlags, e.Text)
		}
		attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 0 })
	}
}

// TestPlaced checks that payload is sent from, and received at, any place in the arena, and that DONE then
// contains no payload. Receives may overlap.
func TestPlaced(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	c, r := h.attachRings(t, 0)
	mem := r.r.Arena()
	if len(mem) != wire.ArenaLen {
		t.Fatalf("the arena has %d bytes", len(mem))
	}
	other := h.dial(t, 1)
	for i, n := range []int{0, 1, 5000, wire.ArenaLen} {
		at, tag := uint64(wire.ArenaLen-n), i
		want := attachtest.Pattern(uint64(i), n)
		copy(mem[at:], want)
		s := attachtest.InArenaAt(attachtest.SendStart(1, n), at)
		s.Tag = tag
		c.Write(attachtest.StartFrame(s, nil))
		if d := c.ReadDone(); d.Err != nil || d.Status.Bytes != int64(n) {
			t.Fatalf("%d bytes are sent: %+v", n, d)
		}
		got := make([]byte, n)
		attachtest.Wait(t, attachtest.Recv(t, other, 0, tag, got))
		attachtest.CheckEqual(t, "the sent message", got, want)

		clear(mem)
		for id, length := range []int{n, n / 2} {
			s := attachtest.InArenaAt(attachtest.RecvStart(uint64(2+id), length), at)
			s.Tag = tag
			c.Write(attachtest.StartFrame(s, nil))
		}
		attachtest.Wait(t, attachtest.Send(t, other, 0, tag, want))
		if d := c.ReadDone(); d.ID != 2 || d.Err != nil || d.Stored != uint64(n) || c.In.Remaining != 0 {
			t.Fatalf("%d bytes are received: %+v", n, d)
		}
		attachtest.CheckEqual(t, "the received message", mem[at:], want)
		attachtest.Wait(t, attachtest.Send(t, other, 0, tag, want[:n/2]))
		if d := c.ReadDone(); d.ID != 3 || d.Err != nil || d.Stored != uint64(n/2) {
			t.Fatalf("%+v", d)
		}
		attachtest.CheckEqual(t, "the received message", mem[at:], want)
	}
}

// TestArenaIsFull checks that a client uses frames to send and receive when its arena is full.
func TestArenaIsFull(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	const n = wire.ArenaLen/4 + 1
	var data, bufs [6][]byte
	var ops []mpe.Op
	for i := range data {
		data[i], bufs[i] = attachtest.Pattern(uint64(i), n), make([]byte, n)
		ops = append(ops, attachtest.Recv(t, b, 0, i, bufs[i]))
	}
	for i := range data {
		ops = append(ops, attachtest.Send(t, a, 1, i, data[i]))
	}
	for _, op := range ops {
		attachtest.Wait(t, op)
	}
	for i := range data {
		attachtest.CheckEqual(t, "a message", bufs[i], data[i])
	}
	// The whole arena is free again.
	whole := attachtest.StartOp(t, a, mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Tag: 9,
		Buf: make([]byte, wire.ArenaLen)})
	attachtest.WaitUntil(t, "it is sent", func() bool { n, _ := h.session(0).pendingTotals(); return n == 1 })
	ses := h.session(0)
	ses.mu.Lock()
	for _, op := range ses.ops {
		if !op.InArena {
			t.Error("a message as long as the arena is not there")
		}
	}
	ses.mu.Unlock()
	attachtest.Wait(t, attachtest.Recv(t, b, 0, 9, make([]byte, wire.ArenaLen)))
	attachtest.Wait(t, whole)
}

// TestChangedPayload checks that a program that modifies payload while it is being sent, and then unmaps the
// arena, harms no other program: its message keeps its length, and other messages are unaffected.
func TestChangedPayload(t *testing.T) {
	const n, times = 1 << 20, 8
	h := serveDevices(t, engines(t, 3, nil), Options{})
	c, r := h.attachRings(t, 0)
	one, two := h.dial(t, 1), h.dial(t, 2)
	mem := r.r.Arena()[:n]
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for b := byte(0); !stop.Load(); b++ {
			for i := range mem {
				mem[i] = b
			}
			if err := unix.Madvise(mem, unix.MADV_REMOVE); err != nil {
				t.Error(os.NewSyscallError("madvise", err))
				return
			}
		}
	}()
	for range times {
		got, want, intact := make([]byte, n), attachtest.Pattern(1, n), make([]byte, n)
		ops := []mpe.Op{attachtest.Recv(t, one, 0, 0, got), attachtest.Recv(t, one, 2, 0, intact)}
		c.Write(attachtest.StartFrame(attachtest.InArenaAt(attachtest.SendStart(1, n), 0), nil))
		c.Write(attachtest.StartFrame(func() wire.Start {
			s := attachtest.InArenaAt(attachtest.RecvStart(2, n),
				0)
			s.Peer = 2
			return s
		}(), nil))
		ops = append(ops, attachtest.Send(t, two, 1, 0, want), attachtest.Send(t, two, 0, 0, want))
		for _, op := range ops {
			attachtest.Wait(t, op)
		}
		for range 2 {
			if d := c.ReadDone(); d.Err != nil || d.Status.Bytes != n {
				t.Fatalf("%+v", d)
			}
		}
		attachtest.CheckEqual(t, "another program's message", intact, want)
	}
	stop.Store(true)
	<-ended
}

// TestPlacedGoesOn checks that a send continues with a copy of its payload if the program aborts it during the
// transfer or is gone. The memory of the copy is charged until it has been sent.
func TestPlacedGoesOn(t *testing.T) {
	const n = 4 << 20
	for _, gone := range []bool{false, true} {
		net := memnet.New(2)
		var sent atomic.Int64
		const most = 200 // the rest of several thousand packets is lost
		net.SetHook(func(from, _ int, _ []byte) []time.Duration {
			if from == 0 && sent.Add(1) > most {
				return nil
			}
			return []time.Duration{0}
		})
		h := serveDevices(t, []mpe.Device{engine(t, net, 0, 2, nil), engine(t, net, 1, 2, nil)}, Options{})
		common := func() int64 {
			m := &h.server.memory
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.commonLeft
		}
		attachtest.WaitUntil(t, "the server has begun", func() bool { return common() > 0 })
		before := common()
		other := h.dial(t, 1)
		c, r := h.attachRings(t, 0)
		mem := r.r.Arena()[:n]
		want := attachtest.Pattern(3, n)
		copy(mem, want)
		got := make([]byte, n)
		received := attachtest.Recv(t, other, 0, 0, got)
		attachtest.WaitUntil(t, "the receive is posted", func() bool {
			ops, _ := h.session(1).pendingTotals()
			return ops == 1
		})
		c.Write(attachtest.StartFrame(attachtest.InArenaAt(wire.Start{ID: 1,
			Operation: mpe.Operation{Kind: mpe.OpSendSync, Peer: 1}, Length: n}, 0), nil))
		attachtest.WaitUntil(t, "it is being transferred", func() bool { return sent.Load() > most })
		c.Write(wire.AbortFrame(1, errors.New("enough")))
		if d := c.ReadDone(); d.Err == nil || !strings.Contains(d.Err.Error(), "enough") {
			t.Fatalf("%+v", d)
		}
		if held := before - common(); held < n {
			t.Errorf("%d bytes are charged for the continuing transfer", held)
		}
		for i := range mem {
			mem[i] = 0xee
		}
		if gone {
			c.Conn.Close()
			attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 1 })
		}
		sent.Store(math.MinInt64)
		attachtest.Wait(t, received)
		if !bytes.Equal(got, want) {
			t.Error("the transfer continues with later data of the program")
		}
		attachtest.WaitUntil(t, "the copy is given back", func() bool { return before-common() < n })
	}
}

// TestMatchedGoesWithItsProgram checks that a message that was matched by a receive, and arrives after the
// receiving program is gone, is not delivered to the next program.
func TestMatchedGoesWithItsProgram(t *testing.T) {
	const n = 4 << 20
	net := memnet.New(2)
	var sent atomic.Int64
	const most = 200 // the rest of several thousand packets is lost
	net.SetHook(func(from, _ int, _ []byte) []time.Duration {
		if from == 0 && sent.Add(1) > most {
			return nil
		}
		return []time.Duration{0}
	})
	h := serveDevices(t, []mpe.Device{engine(t, net, 0, 2, nil), engine(t, net, 1, 2, nil)}, Options{})
	other := h.dial(t, 0)
	c := h.attach(t, 1)
	r := attachtest.RecvStart(1, n)
	r.Peer = 0
	c.Write(attachtest.StartFrame(r, nil))
	attachtest.WaitUntil(t, "the receive is posted", func() bool {
		ops, _ := h.session(1).pendingTotals()
		return ops == 1
	})
	first := attachtest.Send(t, other, 1, 0, attachtest.Pattern(1, n))
	attachtest.WaitUntil(t, "it is being transferred", func() bool { return sent.Load() > most })
	c.Conn.Close()
	attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 1 })
	sent.Store(math.MinInt64)
	attachtest.Wait(t, first)
	got, want := make([]byte, n), attachtest.Pattern(2, n)
	received := attachtest.Recv(t, h.dial(t, 1), 0, 0, got)
	attachtest.Wait(t, attachtest.Send(t, other, 1, 0, want))
	attachtest.Wait(t, received)
	attachtest.CheckEqual(t, "the message of the next program", got, want)
}
