package tcp

import (
	"bytes"
	"errors"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestBackPressure uses a peer that sends endlessly to a rank that does not receive. The peer's writes must
// block before long.
func TestBackPressure(t *testing.T) {
	m := transporttest.Map(t, 2)
	c, err := Listen(Config{Rank: 1, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conn := dial(t, m.Addr(0).Addr(), m.Addr(1))
	if err := conn.SetWriteBuffer(1 << 16); err != nil {
		t.Fatal(err)
	}
	const most = 64 << 20
	headers := bytes.Repeat(request(0, 1), 1<<12)
	sent := 0
	for sent < most {
		conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		n, err := conn.Write(headers)
		sent += n
		if err != nil {
			break
		}
	}
	if sent >= most {
		t.Fatalf("%d bytes went in and nobody received", sent)
	}
	// Everything is still there, in order.
	batch := make([]mpe.RxPacket, 64)
	for got := -1; got < sent/protocol.HeaderLen; { // the first one is the connection
		n, err := c.Recv(batch)
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	if made := c.peers[0].chunksMade; made > maxChunks {
		t.Errorf("%d buffers for one peer", made)
	}
}

// stick sends packets to c, which is rank 1, until the reader of c waits for a buffer. It returns the
// connection.
func stick(t *testing.T, c *Conn) *net.TCPConn {
	t.Helper()
	conn := dial(t, c.cfg.Map.Addr(0).Addr(), c.LocalAddr())
	write(t, conn, bytes.Repeat(request(0, 1), 2*maxChunks))
	waiting := func() int {
		c.queue.mu.Lock()
		defer c.queue.mu.Unlock()
		return len(c.queue.events)
	}
	// The connection is the first event.
	for deadline := time.Now().Add(transporttest.Timeout); waiting() < maxChunks; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d events wait, want %d", waiting(), maxChunks)
		}
	}
	return conn
}

// TestCloseWhileStuck closes a Conn while its reader waits for a buffer, which it needs either for a packet or
// for the event of a connection.
func TestCloseWhileStuck(t *testing.T) {
	for _, again := range []bool{false, true} {
		m := transporttest.Map(t, 2)
		c, err := Listen(Config{Rank: 1, Map: m, isAlive: gone})
		if err != nil {
			t.Fatal(err)
		}
		old := stick(t, c)
		if again {
			dial(t, m.Addr(0).Addr(), m.Addr(1))
			wantClosed(t, old)
		}
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(transporttest.Timeout):
			t.Fatal("Close waits forever")
		}
	}
}

// TestReplaceWhileStuck makes a new connection while the reader of the old one waits for a buffer. The data of
// the old connection must come before the new connection.
func TestReplaceWhileStuck(t *testing.T) {
	m := transporttest.Map(t, 2)
	c, err := Listen(Config{Rank: 1, Map: m, isAlive: gone})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	old := stick(t, c)
	fresh := dial(t, m.Addr(0).Addr(), m.Addr(1))
	wantClosed(t, old)
	write(t, fresh, request(0, 1))
	batch := make([]mpe.RxPacket, 1)
	var kinds []mpe.RxKind
	for len(kinds) < maxChunks+2 {
		if _, err := c.Recv(batch); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, batch[0].Kind)
	}
	want := slices.Repeat([]mpe.RxKind{mpe.RxHeader}, maxChunks+2)
	want[0], want[maxChunks] = mpe.RxConnected, mpe.RxConnected
	if !slices.Equal(kinds, want) {
		t.Errorf("%v arrived, want %v", kinds, want)
	}
}

// TestExchange makes two ranks send each other as much as the buffers are designed for, before either of them
// receives.
func TestExchange(t *testing.T) {
	m := transporttest.Map(t, 2)
	const words = 1 << 20 / protocol.WordLen
	header := func(src, dst uint32) []byte {
		return protocol.CloudFPGA.Append(nil, protocol.Header{Src: src, Dst: dst, Size: words, Type: protocol.Data})
	}
	payload := make([]byte, words*protocol.WordLen)
	conns := [2]*Conn{}
	for rank := range conns {
		c, err := Listen(Config{Rank: rank, Map: m, Backoff: soon})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[rank] = c
	}
	for _, c := range conns {
		batch := make([]mpe.RxPacket, 1)
		if _, err := c.Recv(batch); err != nil || batch[0].Kind != mpe.RxConnected {
			t.Fatalf("%+v, %v", batch[0], err)
		}
		// The kernel's buffers must not hide a lack of ours.
		l, _ := c.peers[batch[0].Peer].currentLink()
		if err := errors.Join(l.conn.SetReadBuffer(1<<14), l.conn.SetWriteBuffer(1<<14)); err != nil {
			t.Fatal(err)
		}
	}
	sent := make(chan error, 2)
	go func() { sent <- conns[0].SendData(1, header(0, 1), payload, protocol.CPUShape()) }()
	go func() { sent <- conns[1].SendData(0, header(1, 0), payload, protocol.CPUShape()) }()
	for range 2 {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
}
