package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// polls ensures that the process's poller, which is never destroyed, exists.
var polls sync.Once

// fakeDaemon returns a client that is attached to rank 0 of 2, and the daemon's side of the connection, which
// the test plays.
func fakeDaemon(t *testing.T) (c *Client, daemon *attachtest.RawClient) {
	t.Helper()
	socket := attachtest.SocketPath(t)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan *attachtest.RawClient, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		conn.SetDeadline(time.Now().Add(attachtest.Deadline))
		d := &attachtest.RawClient{T: t, Conn: conn.(*net.UnixConn), In: wire.NewReader(conn)}
		if _, err := d.In.ReadHello(); err == nil {
			b := wire.AppendWelcome(nil,
				wire.Welcome{Version: wire.Version, Flags: wire.FlagOversubscribed, Size: 2, Chunk: wire.ChunkLen,
					Limits: wire.Limits{Operations: 100, Bytes: 1 << 30}})
			conn.Write(wire.AppendPeer(wire.AppendPeer(b, 0, mpe.PeerInfo{}), 1, mpe.PeerInfo{}))
		}
		accepted <- d
	}()
	if c, err = Dial(attachtest.TestContext(t), socket, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(attachtest.TestContext(t)) })
	if c.welcome.Flags&wire.FlagOversubscribed == 0 {
		t.Error("the host is oversubscribed, as WELCOME says")
	}
	daemon = <-accepted
	t.Cleanup(func() { daemon.Conn.Close() })
	return c, daemon
}

// TestHostileDaemon checks that the client's operations end, no matter what the daemon sends.
func TestHostileDaemon(t *testing.T) {
	polls.Do(func() { fakeDaemon(t) })
	attachtest.CheckGoroutines(t)
	for _, tt := range []struct {
		name string
		// frame is sent while a receive of 8 bytes with the given id is in progress.
		frame func(id uint64) []byte
		text  string
	}{
		{"unknown frame", func(uint64) []byte { return wire.AppendHeader(nil, 99, 0) },
			"frame(99) is not a frame that a daemon sends"},
		{"program's frame", func(id uint64) []byte { return wire.AppendID(nil, wire.FrameCancel, id, 0) },
			"CANCEL is not"},
		{"unknown id", func(id uint64) []byte { return attachtest.DoneFrame(wire.Done{ID: id + 1}, "") },
			"which is not in progress"},
		{"old id", func(id uint64) []byte { return attachtest.DoneFrame(wire.Done{ID: id - 1<<32}, "") },
			"which is not in progress"},
		{"too much payload", func(id uint64) []byte {
			return attachtest.DoneFrame(wire.Done{ID: id, Stored: 9},
				"123456789")
		}, "exceeds its buffer"},
		{"too much payload in pieces", func(id uint64) []byte {
			return append(attachtest.DataFrame(id, []byte("1234567")), attachtest.DataFrame(id, []byte("89"))...)
		}, "exceeds its buffer"},
		{"less than it says", func(id uint64) []byte {
			return attachtest.DoneFrame(wire.Done{ID: id, Stored: 5},
				"1234")
		}, "5 bytes stored, but 4 were received"},
		{"error too long", func(id uint64) []byte {
			b := attachtest.DoneFrame(wire.Done{ID: id, Err: mpe.ErrFull}, "")
			wire.Order.PutUint32(b[wire.FrameHeaderLen+12:], 1<<31)
			return b
		}, "too short"},
		{"broken details", func(id uint64) []byte {
			b := attachtest.DoneFrame(wire.Done{ID: id, Err: mpe.ErrFull}, "{{{{")
			wire.Order.PutUint32(b[wire.FrameHeaderLen+12:], uint32(len(b)-wire.FrameHeaderLen-wire.DoneLen))
			return b
		}, "the details of an error"},
		{"huge frame", func(uint64) []byte { return wire.AppendHeader(nil, wire.FrameData, 1<<30) }, "a frame has"},
		{"disconnected", func(uint64) []byte { return wire.RefusedFrame(wire.NewRefusal(wire.Violation, "go away")) },
			"go away"},
		{"half a frame", func(id uint64) []byte { return attachtest.DoneFrame(wire.Done{ID: id}, "")[:20] },
			"it went away"},
		{"silence", func(uint64) []byte { return nil }, "it went away"},
	} {
		c, daemon := fakeDaemon(t)
		op := attachtest.Recv(t, c, 1, 0, make([]byte, 8))
		daemon.Expect(wire.FrameStart)
		s, err := daemon.In.ReadStart()
		if err != nil {
			t.Fatal(err)
		}
		daemon.Write(tt.frame(s.ID))
		daemon.Conn.CloseWrite()
		_, err = op.Await(attachtest.TestContext(t))
		if !errors.Is(err, mpe.ErrClosed) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
		daemon.Conn.Close()
	}
}

// TestHostileAnswers is like TestHostileDaemon, but for a call with 100 bytes of payload and a result of 8
// bytes.
func TestHostileAnswers(t *testing.T) {
	polls.Do(func() { fakeDaemon(t) })
	attachtest.CheckGoroutines(t)
	for _, tt := range []struct {
		name  string
		frame func(id uint64) []byte
		text  string
	}{
		{"too much", func(id uint64) []byte { return attachtest.DoneFrame(wire.Done{ID: id, Stored: 9}, "123456789") },
			"exceeds its buffer"},
		{"too much in pieces", func(id uint64) []byte {
			return append(attachtest.DataFrame(id, []byte("1234567")), attachtest.DataFrame(id, []byte("89"))...)
		}, "exceeds its buffer"},
		{"too little", func(id uint64) []byte { return attachtest.DoneFrame(wire.Done{ID: id, Stored: 4}, "1234") },
			"a result of 4 bytes instead of 8"},
		{"nothing", func(id uint64) []byte { return attachtest.DoneFrame(wire.Done{ID: id}, "") },
			"a result of 0 bytes instead of 8"},
		{"less than it says", func(id uint64) []byte {
			return attachtest.DoneFrame(wire.Done{ID: id, Stored: 8},
				"1234")
		}, "8 bytes stored, but 4 were received"},
		{"half of it", func(id uint64) []byte { return attachtest.DataFrame(id, []byte("1234")) }, "it went away"},
	} {
		c, daemon := fakeDaemon(t)
		recv := make([]byte, 24)
		op, err := c.StartCollective(&collective.Operation{
			Call: coll.Call{Collective: coll.Scatter, Ranks: 2, Vector: true,
				Send: coll.Layout{Sizes: []int{8, 92}}},
			Members: []int{0, 1}, Comm: 1, Tag: 1, Send: make([]byte, 100), Recv: recv[8:16],
		})
		if err != nil {
			t.Fatal(err)
		}
		op.Cancel() // sends nothing
		daemon.Expect(wire.FrameCall)
		called, err := daemon.In.ReadCall()
		if err == nil {
			err = daemon.In.Skip()
		}
		if err != nil {
			t.Fatal(err)
		}
		daemon.Write(tt.frame(called.ID))
		daemon.Conn.CloseWrite()
		if _, err = op.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrClosed) ||
			!strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !bytes.Equal(recv[:8], make([]byte, 8)) || !bytes.Equal(recv[16:], make([]byte, 8)) {
			t.Errorf("%s: bytes outside the buffer were written: %x", tt.name, recv)
		}
		if err := daemon.In.Next(); err == nil {
			t.Errorf("%s: then %v", tt.name, daemon.In.Type)
		}
		daemon.Conn.Close()
	}
}

// TestResultBeforePayload checks that a daemon that answers a call before it has received the whole payload
// violates the protocol.
func TestResultBeforePayload(t *testing.T) {
	c, daemon := fakeDaemon(t)
	data := make([]byte, 100*wire.ChunkLen)
	op, err := c.StartCollective(&collective.Operation{
		Call:    coll.Call{Collective: coll.Alltoall, Ranks: 2, Bytes: len(data) / 2, InPlace: true},
		Members: []int{0, 1}, Comm: 1, Tag: 1, Recv: data,
	})
	if err != nil {
		t.Fatal(err)
	}
	daemon.Expect(wire.FrameCall)
	called, err := daemon.In.ReadCall()
	if err != nil {
		t.Fatal(err)
	}
	daemon.Write(attachtest.DataFrame(called.ID, []byte("early")))
	if _, err := op.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrClosed) ||
		!strings.Contains(err.Error(), "whose payload has not been sent") {
		t.Errorf("%v", err)
	}
}

// TestHungDaemon checks that a caller whose context ends gets its buffer back even if the daemon does not
// answer.
func TestHungDaemon(t *testing.T) {
	c, _ := fakeDaemon(t)
	c.abortTimeout = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	large := attachtest.Send(t, c, 1, 0, make([]byte, 100*wire.ChunkLen))
	if _, err := attachtest.Recv(t, c, 1, 0, make([]byte, 8)).Await(ctx); !errors.Is(err, mpe.ErrClosed) ||
		!strings.Contains(err.Error(), "has not answered for 10ms") {
		t.Errorf("%v", err)
	}
	if _, err := large.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestCloseHungDaemon(t *testing.T) {
	c, _ := fakeDaemon(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSmallPassesLarge checks that a large operation does not block small frames to the daemon.
func TestSmallPassesLarge(t *testing.T) {
	c, daemon := fakeDaemon(t)
	large := attachtest.Send(t, c, 1, 0, make([]byte, 40*wire.ChunkLen))
	small := attachtest.Send(t, c, 1, 0, []byte("small"))
	small.Cancel()
	var seen []string
	for len(seen) < 12 {
		if err := daemon.In.Next(); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint(daemon.In.Type)
		if daemon.In.Type == wire.FrameStart {
			s, err := daemon.In.ReadStart()
			if err != nil {
				t.Fatal(err)
			}
			name += fmt.Sprint(s.Length)
		}
		seen = append(seen, name)
		if err := daemon.In.Skip(); err != nil {
			t.Fatal(err)
		}
	}
	order := strings.Join(seen, " ")
	at, cancelled := strings.Index(order, "START5"), strings.Index(order, "CANCEL")
	if at < 0 || at > len("START10485760 DATA DATA DATA ") || cancelled < at {
		t.Errorf("a small send waits behind a large one: %s", order)
	}
	daemon.Conn.Close()
	for _, op := range []mpe.Op{large, small} {
		if _, err := op.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestEarlyEnd checks that a send stops when the daemon rejects it early, and that the caller then owns its
// buffer again.
func TestEarlyEnd(t *testing.T) {
	c, daemon := fakeDaemon(t)
	data := make([]byte, 100*wire.ChunkLen)
	op := attachtest.Send(t, c, 1, 0, data)
	daemon.Expect(wire.FrameStart)
	s, err := daemon.In.ReadStart()
	if err != nil {
		t.Fatal(err)
	}
	daemon.In.Skip()
	daemon.Write(attachtest.DoneFrame(wire.Done{ID: s.ID, Err: mpe.ErrRank}, ""))
	pieces := make(chan int)
	go func() {
		n := 0
		for daemon.In.Next() == nil && daemon.In.Type == wire.FrameData {
			daemon.In.Skip()
			n++
		}
		pieces <- n
	}()
	if _, err := op.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrRank) {
		t.Error(err)
	}
	clear(data) // a data race if the buffer is still being read
	op = attachtest.Send(t, c, 1, 0, nil)
	if n := <-pieces; n > 98 {
		t.Errorf("%d pieces were sent", n)
	}
	daemon.Conn.Close()
	op.Await(attachtest.TestContext(t))
}
