package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// fakeDaemon welcomes one client to rank 0 of 2 and follows the script.
func fakeDaemon(t *testing.T) (c *Client, daemon *rawClient) {
	t.Helper()
	h := &harness{socket: shortPath(t)}
	l, err := net.Listen("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan *rawClient, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		conn.SetDeadline(time.Now().Add(deadline))
		d := &rawClient{t: t, conn: conn.(*net.UnixConn), in: newFrameReader(conn)}
		if _, err := d.in.readHello(); err == nil {
			b := appendWelcome(nil, welcome{version: Version, size: 2, chunk: chunkLen, limits: Limits{Operations: 100, Bytes: 1 << 30}})
			conn.Write(appendPeer(appendPeer(b, 0, mpe.PeerInfo{}), 1, mpe.PeerInfo{}))
		}
		accepted <- d
	}()
	c = h.dial(t, 0)
	daemon = <-accepted
	t.Cleanup(func() { daemon.conn.Close() })
	return c, daemon
}

func doneFrame(d done, payload string) []byte {
	return append(appendDone(nil, &d, len(payload)), payload...)
}

// TestHostileDaemon: whatever the daemon says, the client's operations end.
func TestHostileDaemon(t *testing.T) {
	noLeak(t)
	for _, tt := range []struct {
		name string
		// frame is said when a receive of 8 bytes with the id is under way.
		frame func(id uint64) []byte
		text  string
	}{
		{"unknown frame", func(uint64) []byte { return appendHeader(nil, 99, 0) }, "frame(99) is not a frame that a daemon sends"},
		{"program's frame", func(id uint64) []byte { return cancelFrame(id) }, "CANCEL is not"},
		{"unknown id", func(id uint64) []byte { return doneFrame(done{id: id + 1}, "") }, "which is not under way"},
		{"old id", func(id uint64) []byte { return doneFrame(done{id: id - 1<<32}, "") }, "which is not under way"},
		{"too much payload", func(id uint64) []byte { return doneFrame(done{id: id, stored: 9}, "123456789") }, "no room"},
		{"too much payload in pieces", func(id uint64) []byte {
			return append(dataFrame(id, []byte("1234567")), dataFrame(id, []byte("89"))...)
		}, "no room"},
		{"less than it says", func(id uint64) []byte { return doneFrame(done{id: id, stored: 5}, "1234") }, "5 bytes were stored, but 4 have come"},
		{"error too long", func(id uint64) []byte {
			b := doneFrame(done{id: id, err: mpe.ErrFull}, "")
			order.PutUint32(b[frameHeaderLen+12:], 1<<31)
			return b
		}, "too short"},
		{"broken details", func(id uint64) []byte {
			b := doneFrame(done{id: id, err: mpe.ErrFull}, "{{{{")
			order.PutUint32(b[frameHeaderLen+12:], uint32(len(b)-frameHeaderLen-doneLen))
			return b
		}, "the details of an error"},
		{"huge frame", func(uint64) []byte { return appendHeader(nil, frameData, 1<<30) }, "a frame has"},
		{"disconnected", func(uint64) []byte { return refusedFrame(refused(Violation, "go away")) }, "go away"},
		{"half a frame", func(id uint64) []byte { return doneFrame(done{id: id}, "")[:20] }, "it went away"},
		{"silence", func(uint64) []byte { return nil }, "it went away"},
	} {
		c, daemon := fakeDaemon(t)
		op := recv(t, c, 1, 0, make([]byte, 8))
		daemon.expect(frameStart)
		s, err := daemon.in.readStart()
		if err != nil {
			t.Fatal(err)
		}
		daemon.write(tt.frame(s.id))
		daemon.conn.CloseWrite()
		_, err = op.Await(within(t))
		if !errors.Is(err, mpe.ErrClosed) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
		daemon.conn.Close()
	}
}

// TestHostileAnswers: to a call of which 100 bytes are given and 8 come back.
func TestHostileAnswers(t *testing.T) {
	noLeak(t)
	for _, tt := range []struct {
		name  string
		frame func(id uint64) []byte
		text  string
	}{
		{"too much", func(id uint64) []byte { return doneFrame(done{id: id, stored: 9}, "123456789") }, "no room"},
		{"too much in pieces", func(id uint64) []byte {
			return append(dataFrame(id, []byte("1234567")), dataFrame(id, []byte("89"))...)
		}, "no room"},
		{"too little", func(id uint64) []byte { return doneFrame(done{id: id, stored: 4}, "1234") }, "has 8 bytes, says that it has 4"},
		{"nothing", func(id uint64) []byte { return doneFrame(done{id: id}, "") }, "has 8 bytes, says that it has 0"},
		{"less than it says", func(id uint64) []byte { return doneFrame(done{id: id, stored: 8}, "1234") }, "8 bytes were stored, but 4 have come"},
		{"half of it", func(id uint64) []byte { return dataFrame(id, []byte("1234")) }, "it went away"},
	} {
		c, daemon := fakeDaemon(t)
		recv := make([]byte, 24)
		op, err := c.StartCollective(&collective.Operation{
			Call:    coll.Call{Collective: coll.Scatter, Ranks: 2, Vector: true, Send: coll.Layout{Sizes: []int{8, 92}}},
			Members: []int{0, 1}, Comm: 1, Tag: 1, Send: make([]byte, 100), Recv: recv[8:16],
		})
		if err != nil {
			t.Fatal(err)
		}
		op.Cancel() // says nothing
		daemon.expect(frameCall)
		called, err := daemon.in.readCall()
		if err == nil {
			err = daemon.in.skip()
		}
		if err != nil {
			t.Fatal(err)
		}
		daemon.write(tt.frame(called.id))
		daemon.conn.CloseWrite()
		if _, err = op.Await(within(t)); !errors.Is(err, mpe.ErrClosed) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !bytes.Equal(recv[:8], make([]byte, 8)) || !bytes.Equal(recv[16:], make([]byte, 8)) {
			t.Errorf("%s: bytes beside the buffer were written: %x", tt.name, recv)
		}
		if err := daemon.in.next(); err == nil {
			t.Errorf("%s: then %v", tt.name, daemon.in.typ)
		}
		daemon.conn.Close()
	}
}

// TestResultBeforePayload: a daemon cannot answer a call before it has all of its payload.
func TestResultBeforePayload(t *testing.T) {
	c, daemon := fakeDaemon(t)
	data := make([]byte, 100*chunkLen)
	op, err := c.StartCollective(&collective.Operation{
		Call:    coll.Call{Collective: coll.Alltoall, Ranks: 2, Bytes: len(data) / 2, InPlace: true},
		Members: []int{0, 1}, Comm: 1, Tag: 1, Recv: data,
	})
	if err != nil {
		t.Fatal(err)
	}
	daemon.expect(frameCall)
	called, err := daemon.in.readCall()
	if err != nil {
		t.Fatal(err)
	}
	daemon.write(dataFrame(called.id, []byte("early")))
	if _, err := op.Await(within(t)); !errors.Is(err, mpe.ErrClosed) || !strings.Contains(err.Error(), "whose payload has not been sent") {
		t.Errorf("%v", err)
	}
}

// TestHungDaemon: a caller whose context has ended gets its buffer back.
func TestHungDaemon(t *testing.T) {
	c, _ := fakeDaemon(t)
	c.spin = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	large := send(t, c, 1, 0, make([]byte, 100*chunkLen))
	if _, err := recv(t, c, 1, 0, make([]byte, 8)).Await(ctx); !errors.Is(err, mpe.ErrClosed) || !strings.Contains(err.Error(), "has not answered for 10ms") {
		t.Errorf("%v", err)
	}
	if _, err := large.Await(within(t)); !errors.Is(err, mpe.ErrClosed) {
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

// TestSmallPassesLarge: on the way to the daemon.
func TestSmallPassesLarge(t *testing.T) {
	c, daemon := fakeDaemon(t)
	large := send(t, c, 1, 0, make([]byte, 40*chunkLen))
	small := send(t, c, 1, 0, []byte("small"))
	small.Cancel()
	var seen []string
	for len(seen) < 12 {
		if err := daemon.in.next(); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint(daemon.in.typ)
		if daemon.in.typ == frameStart {
			s, err := daemon.in.readStart()
			if err != nil {
				t.Fatal(err)
			}
			name += fmt.Sprint(s.length)
		}
		seen = append(seen, name)
		if err := daemon.in.skip(); err != nil {
			t.Fatal(err)
		}
	}
	order := strings.Join(seen, " ")
	at, cancelled := strings.Index(order, "START5"), strings.Index(order, "CANCEL")
	if at < 0 || at > len("START10485760 DATA DATA DATA ") || cancelled < at {
		t.Errorf("a small send waits behind a large one: %s", order)
	}
	daemon.conn.Close()
	for _, op := range []mpe.Op{large, small} {
		if _, err := op.Await(within(t)); !errors.Is(err, mpe.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestEarlyEnd: a send that the daemon refuses at once stops, and its buffer is
// the caller's.
func TestEarlyEnd(t *testing.T) {
	c, daemon := fakeDaemon(t)
	data := make([]byte, 100*chunkLen)
	op := send(t, c, 1, 0, data)
	daemon.expect(frameStart)
	s, err := daemon.in.readStart()
	if err != nil {
		t.Fatal(err)
	}
	daemon.in.skip()
	daemon.write(doneFrame(done{id: s.id, err: mpe.ErrRank}, ""))
	pieces := make(chan int)
	go func() {
		n := 0
		for daemon.in.next() == nil && daemon.in.typ == frameData {
			daemon.in.skip()
			n++
		}
		pieces <- n
	}()
	if _, err := op.Await(within(t)); !errors.Is(err, mpe.ErrRank) {
		t.Error(err)
	}
	clear(data) // a race, if it is still read
	op = send(t, c, 1, 0, nil)
	if n := <-pieces; n > 98 {
		t.Errorf("%d pieces were sent", n)
	}
	daemon.conn.Close()
	op.Await(within(t))
}
