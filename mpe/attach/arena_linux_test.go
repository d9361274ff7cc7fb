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
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// TestHostilePlaces: what is not in the arena is a violation.
func TestHostilePlaces(t *testing.T) {
	noLeak(t)
	h := serve(t, newWorld(3, 0, 2), Options{})
	other := h.dial(t, 2)
	for _, tt := range []struct {
		name  string
		frame []byte
		text  string
	}{
		{"behind the end", startFrame(placedAt(sendStart(1, 4), arenaLen), nil), "START places 4 bytes at 16777216 of an arena that has 16777216"},
		{"across the end", startFrame(placedAt(recvStart(1, 5), arenaLen-4), nil), "START places 5 bytes at 16777212"},
		{"too long", startFrame(placedAt(sendStart(1, arenaLen+1), 0), nil), "of an arena that has"},
		{"around the end of numbers", startFrame(placedAt(recvStart(1, 16), math.MaxUint64-7), nil), "START places 16 bytes"},
		{"all ones", startFrame(placedAt(sendStart(1, math.MaxInt), math.MaxUint64), nil), "of an arena that has"},
		{"with payload", startFrame(placedAt(sendStart(1, 4), 0), []byte("abcd")), "START has 4 bytes too many"},
		{"without a place", startFrame(start{id: 1, Operation: mpe.Operation{Kind: mpe.OpRecv, Peer: 1}}, nil), ""},
		{"DATA behind it", append(startFrame(placedAt(recvStart(1, 4), 0), nil), dataFrame(1, []byte("ab"))...), "DATA has 2 bytes for operation 1"},
	} {
		c := h.attach(t, 0)
		if tt.name == "without a place" {
			tt.frame[frameHeaderLen+10] = flagPlaced
			tt.text = "START is 8 bytes too short"
		}
		_, _ = c.conn.Write(tt.frame) // the daemon may close the connection before it has read all
		if e := c.refusal(); e.Reason != Violation || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
	}
	wait(t, send(t, other, 1, 0, []byte("well")))
}

// TestNoArena: a program that has not asked for an arena has none, with rings or without, and its
// WELCOME is as before.
func TestNoArena(t *testing.T) {
	flags := dialFlags
	defer func() { dialFlags = flags }()
	h := serve(t, newWorld(2, 0), Options{})
	for _, dialFlags = range []uint32{0, flagRings, flagArena} {
		c := h.attach(t, 0)
		c.write(startFrame(placedAt(sendStart(1, 1), 0), nil))
		if e := c.refusal(); !strings.Contains(e.Text, "of an arena that has 0") {
			t.Errorf("flags %d: %q", dialFlags, e.Text)
		}
		until(t, "the rank is free", func() bool { return len(h.server.Attached()) == 0 })
	}
}

// TestPlaced: payload in the arena is sent from there and received there, wherever it is, and DONE
// has none. That receives overlap is the program's affair.
func TestPlaced(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	c, r := h.attachRings(t, 0)
	mem := r.arena()
	if len(mem) != arenaLen {
		t.Fatalf("the arena has %d bytes", len(mem))
	}
	other := h.dial(t, 1)
	for i, n := range []int{0, 1, 5000, arenaLen} {
		at, tag := uint64(arenaLen-n), i
		want := pattern(uint64(i), n)
		copy(mem[at:], want)
		s := placedAt(sendStart(1, n), at)
		s.Tag = tag
		c.write(startFrame(s, nil))
		if d := c.done(); d.err != nil || d.status.Bytes != int64(n) {
			t.Fatalf("%d bytes are sent: %+v", n, d)
		}
		got := make([]byte, n)
		wait(t, recv(t, other, 0, tag, got))
		same(t, "what is sent", got, want)

		clear(mem)
		for id, length := range []int{n, n / 2} {
			s := placedAt(recvStart(uint64(2+id), length), at)
			s.Tag = tag
			c.write(startFrame(s, nil))
		}
		wait(t, send(t, other, 0, tag, want))
		if d := c.done(); d.id != 2 || d.err != nil || d.stored != uint64(n) || c.in.left != 0 {
			t.Fatalf("%d bytes are received: %+v", n, d)
		}
		same(t, "what is received", mem[at:], want)
		wait(t, send(t, other, 0, tag, want[:n/2]))
		if d := c.done(); d.id != 3 || d.err != nil || d.stored != uint64(n/2) {
			t.Fatalf("%+v", d)
		}
		same(t, "what is received", mem[at:], want)
	}
}

// TestArenaIsFull: a client whose arena has no room sends and receives by frames.
func TestArenaIsFull(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	const n = arenaLen/4 + 1
	var data, bufs [6][]byte
	var ops []mpe.Op
	for i := range data {
		data[i], bufs[i] = pattern(uint64(i), n), make([]byte, n)
		ops = append(ops, recv(t, b, 0, i, bufs[i]))
	}
	for i := range data {
		ops = append(ops, send(t, a, 1, i, data[i]))
	}
	for _, op := range ops {
		wait(t, op)
	}
	for i := range data {
		same(t, "a message", bufs[i], data[i])
	}
	for _, c := range []*Client{a, b} {
		c.mu.Lock()
		if len(c.arena.free) != 1 || c.arena.free[0].n != arenaLen {
			t.Errorf("free: %v", c.arena.free)
		}
		c.mu.Unlock()
	}
}

// TestChangedPayload: a program that changes what is being sent, and takes its memory out of the
// arena, harms nobody: the message has its length, and other messages are as they were sent.
func TestChangedPayload(t *testing.T) {
	const n, times = 1 << 20, 8
	h := serveDevices(t, engines(t, 3, nil), Options{})
	c, r := h.attachRings(t, 0)
	one, two := h.dial(t, 1), h.dial(t, 2)
	mem := r.arena()[:n]
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
		got, want, intact := make([]byte, n), pattern(1, n), make([]byte, n)
		ops := []mpe.Op{recv(t, one, 0, 0, got), recv(t, one, 2, 0, intact)}
		c.write(startFrame(placedAt(sendStart(1, n), 0), nil))
		c.write(startFrame(func() start { s := placedAt(recvStart(2, n), 0); s.Peer = 2; return s }(), nil))
		ops = append(ops, send(t, two, 1, 0, want), send(t, two, 0, 0, want))
		for _, op := range ops {
			wait(t, op)
		}
		for range 2 {
			if d := c.done(); d.err != nil || d.status.Bytes != n {
				t.Fatalf("%+v", d)
			}
		}
		same(t, "another program's message", intact, want)
	}
	stop.Store(true)
	<-ended
}

// TestPlacedGoesOn: a send that is aborted while it is being transferred, or whose program goes, goes
// on with a copy of its payload, which counts until it is sent.
func TestPlacedGoesOn(t *testing.T) {
	const n = 4 << 20
	for _, gone := range []bool{false, true} {
		net := memnet.New(2)
		var sent atomic.Int64
		const most = 200 // of thousands of packets: the next ones are lost
		net.Hook(func(from, _ int, _ []byte) []time.Duration {
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
			return m.common
		}
		until(t, "the server has begun", func() bool { return common() > 0 })
		before := common()
		other := h.dial(t, 1)
		c, r := h.attachRings(t, 0)
		mem := r.arena()[:n]
		want := pattern(3, n)
		copy(mem, want)
		got := make([]byte, n)
		received := recv(t, other, 0, 0, got)
		until(t, "the receive is posted", func() bool {
			ops, _ := h.session(1).underWay()
			return ops == 1
		})
		c.write(startFrame(placedAt(start{id: 1, Operation: mpe.Operation{Kind: mpe.OpSendSync, Peer: 1}, length: n}, 0), nil))
		until(t, "it is being transferred", func() bool { return sent.Load() > most })
		c.write(abortFrame(1, errors.New("enough")))
		if d := c.done(); d.err == nil || !strings.Contains(d.err.Error(), "enough") {
			t.Fatalf("%+v", d)
		}
		if held := before - common(); held < n {
			t.Errorf("%d bytes are counted for what goes on", held)
		}
		for i := range mem {
			mem[i] = 0xee
		}
		if gone {
			c.conn.Close()
			until(t, "the rank is free", func() bool { return len(h.server.Attached()) == 1 })
		}
		sent.Store(math.MinInt64)
		wait(t, received)
		if !bytes.Equal(got, want) {
			t.Error("it goes on with what the program has written since")
		}
		until(t, "the copy is given back", func() bool { return before-common() < n })
	}
}

// TestMatchedGoesWithItsProgram: the message that a receive has matched, and that arrives when its program is gone, is no
// message of the next program.
func TestMatchedGoesWithItsProgram(t *testing.T) {
	const n = 4 << 20
	net := memnet.New(2)
	var sent atomic.Int64
	const most = 200 // of thousands of packets: the next ones are lost
	net.Hook(func(from, _ int, _ []byte) []time.Duration {
		if from == 0 && sent.Add(1) > most {
			return nil
		}
		return []time.Duration{0}
	})
	h := serveDevices(t, []mpe.Device{engine(t, net, 0, 2, nil), engine(t, net, 1, 2, nil)}, Options{})
	other := h.dial(t, 0)
	c := h.attach(t, 1)
	r := recvStart(1, n)
	r.Peer = 0
	c.write(startFrame(r, nil))
	until(t, "the receive is posted", func() bool {
		ops, _ := h.session(1).underWay()
		return ops == 1
	})
	first := send(t, other, 1, 0, pattern(1, n))
	until(t, "it is being transferred", func() bool { return sent.Load() > most })
	c.conn.Close()
	until(t, "the rank is free", func() bool { return len(h.server.Attached()) == 1 })
	sent.Store(math.MinInt64)
	wait(t, first)
	got, want := make([]byte, n), pattern(2, n)
	received := recv(t, h.dial(t, 1), 0, 0, got)
	wait(t, send(t, other, 1, 0, want))
	wait(t, received)
	same(t, "the message of the next program", got, want)
}
