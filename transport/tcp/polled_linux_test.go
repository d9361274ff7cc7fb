package tcp

import (
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// polled is a Conn that only the test polls.
type polled struct {
	*Conn
	t *testing.T
}

// newPolled returns the highest of n ranks, which the others dial.
func newPolled(t *testing.T, n int, change func(*Config)) polled {
	t.Helper()
	cfg := Config{Rank: n - 1, Map: transporttest.Map(t, n), Profile: extended, Backoff: soon}
	if change != nil {
		change(&cfg)
	}
	c, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return polled{c, t}
}

// readable waits until Wakeup's descriptor is readable. It returns false if that takes longer than limit.
func (c polled) readable(limit time.Duration) bool {
	c.t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.Wakeup()), Events: unix.POLLIN}}, int(limit.Milliseconds()))
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(c.Wakeup()), Events: unix.POLLIN}}, int(limit.Milliseconds()))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return n > 0
}

// wake waits until there is something to poll.
func (c polled) wake() {
	c.t.Helper()
	if c.Sleep() && !c.readable(transporttest.Timeout) {
		c.t.Fatal("nothing arrives")
	}
}

// look polls until a packet is received, and returns at most n packets in order.
func (c polled) look(n int) []mpe.RxPacket {
	c.t.Helper()
	batch := make([]mpe.RxPacket, n)
	for deadline := time.Now().Add(transporttest.Timeout); time.Now().Before(deadline); c.wake() {
		got, err := c.Poll(batch, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		if got = withoutGone(batch[:got]); got > 0 {
			return batch[:got]
		}
	}
	c.t.Fatal("nothing arrives")
	return nil
}

func (c polled) want(kind mpe.RxKind, peer int) mpe.RxPacket {
	c.t.Helper()
	a := c.look(1)[0]
	if a.Kind != kind || a.Peer != peer {
		c.t.Fatalf("%+v arrived, want %d from %d", a, kind, peer)
	}
	return a
}

// dialed returns a connection from a peer after c has reported it.
func (c polled) dialed(peer int) *net.TCPConn {
	c.t.Helper()
	conn := dial(c.t, c.cfg.Map.Addr(peer).Addr(), c.LocalAddr())
	c.want(mpe.RxConnected, peer)
	c.quiet() // more packets may follow a full batch
	return conn
}

// quiet fails the test if Poll returns something.
func (c polled) quiet() {
	c.t.Helper()
	batch := make([]mpe.RxPacket, 4)
	n, err := c.Poll(batch, nil)
	if n = withoutGone(batch[:n]); n != 0 || err != nil {
		c.t.Fatalf("%d arrivals, %v", n, err)
	}
}

// withoutGone removes mpe.RxPeerDied, which arrives at an unpredictable time, and returns the number of remaining
// packets.
func withoutGone(batch []mpe.RxPacket) int {
	return len(slices.DeleteFunc(batch, func(a mpe.RxPacket) bool { return a.Kind == mpe.RxPeerDied }))
}

func (c polled) reader(peer int) *reader {
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	return &c.inbox.byRank[peer].wire.in
}

// fill sends packets to peer 0 of c until some of them are queued, and returns all bytes in flight.
func (c polled) fill() (stream []byte) {
	c.t.Helper()
	for number := uint32(1); ; number++ {
		p := transporttest.Packet(1, 0, number, protocol.MaxStreamPayload-int(number))
		n, err := c.SendPackets(0, []mpe.Packet{p})
		if n != 1 || err != nil {
			c.t.Fatalf("%d, %v", n, err)
		}
		stream = append(append(stream, p.Header[:]...), p.Payload...)
		if l, _ := c.peers[0].currentLink(); c.outflow(l) > 8*blockLen {
			return stream
		}
	}
}

func (c polled) outflow(l *link) int {
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	return l.wire.out.queuedBytes
}
