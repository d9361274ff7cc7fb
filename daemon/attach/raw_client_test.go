package attach

import (
	"net"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

func (h *harness) connect(t testing.TB) *attachtest.RawClient {
	t.Helper()
	conn, err := net.Dial("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(attachtest.Deadline)); err != nil {
		t.Fatal(err)
	}
	return &attachtest.RawClient{T: t, Conn: conn.(*net.UnixConn), In: wire.NewReader(conn)}
}

// attach sends HELLO and reads the answer.
func (h *harness) attach(t testing.TB, rank int32) *attachtest.RawClient {
	t.Helper()
	c := h.connect(t)
	greeting := wire.NewGreeting(c.Conn.(*net.UnixConn))
	c.In = wire.NewReader(greeting)
	c.Write(wire.HelloFrame(wire.Hello{Version: wire.Version, Rank: rank, Flags: dialFlags}))
	c.Expect(wire.FrameWelcome)
	w, err := c.In.ReadWelcome()
	for i := 0; err == nil && i < int(w.Size); i++ {
		c.Expect(wire.FramePeer)
		_, err = c.In.ReadPeer(i)
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.Ring > 0 {
		c.Conn = mapRings(t, greeting, w.Ring, w.Arena)
		c.In = wire.NewReader(c.Conn)
		t.Cleanup(func() { c.Conn.Close() })
	}
	return c
}
