package attach

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// rawClient says what it likes.
type rawClient struct {
	t    testing.TB
	conn rawConn
	in   *frameReader
}

// rawConn is a socket, or a socket and rings.
type rawConn interface {
	net.Conn
	CloseWrite() error
}

func (h *harness) connect(t testing.TB) *rawClient {
	t.Helper()
	conn, err := net.Dial("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	return &rawClient{t: t, conn: conn.(*net.UnixConn), in: newFrameReader(conn)}
}

// attach says HELLO and reads the answer.
func (h *harness) attach(t testing.TB, rank int32) *rawClient {
	t.Helper()
	c := h.connect(t)
	greeting := newGreeting(c.conn.(*net.UnixConn))
	c.in = newFrameReader(greeting)
	c.write(helloFrame(hello{version: Version, rank: rank, flags: dialFlags}))
	c.expect(frameWelcome)
	w, err := c.in.readWelcome()
	for i := 0; err == nil && i < int(w.size); i++ {
		c.expect(framePeer)
		_, err = c.in.readPeer(i)
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.ring > 0 {
		c.conn = mapRings(t, greeting, w.ring, w.arena)
		c.in = newFrameReader(c.conn)
		t.Cleanup(func() { c.conn.Close() })
	}
	return c
}

func (c *rawClient) write(b []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) expect(t frameType) {
	c.t.Helper()
	if err := c.in.next(); err != nil {
		c.t.Fatalf("%v instead of %v", err, t)
	}
	if c.in.typ != t {
		c.t.Fatalf("%v instead of %v", c.in.typ, t)
	}
}

// done reads a DONE without payload.
func (c *rawClient) done() done {
	c.t.Helper()
	c.expect(frameDone)
	var d done
	if err := c.in.readDone(&d); err != nil {
		c.t.Fatal(err)
	}
	return d
}

// refusal reads up to the end of the connection, which REFUSED precedes.
func (c *rawClient) refusal() *RefusedError {
	c.t.Helper()
	for {
		if err := c.in.next(); err != nil {
			c.t.Errorf("%v instead of REFUSED", err)
			return &RefusedError{}
		}
		if c.in.typ != frameRefused {
			if err := c.in.skip(); err != nil {
				c.t.Fatal(err)
			}
			continue
		}
		refusal, ok := errors.AsType[*RefusedError](c.in.readRefused())
		if !ok {
			c.t.Fatal("REFUSED cannot be read")
		}
		if err := c.in.next(); err == nil {
			c.t.Errorf("%v after REFUSED", c.in.typ)
		}
		return refusal
	}
}

func startFrame(s start, payload []byte) []byte {
	return append(appendStart(nil, &s, len(payload)), payload...)
}

func dataFrame(id uint64, payload []byte) []byte {
	return append(appendData(nil, id, len(payload)), payload...)
}

func sendStart(id uint64, length int) start {
	return start{id: id, Operation: mpe.Operation{Kind: mpe.OpSend, Peer: 1}, length: uint64(length)}
}

func recvStart(id uint64, length int) start {
	return start{id: id, Operation: mpe.Operation{Kind: mpe.OpRecv, Peer: 1}, length: uint64(length)}
}
