package tcp

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestPollReplaced checks that a new connection replaces the old one only after all data from the old one has
// been returned.
func TestPollReplaced(t *testing.T) {
	c := newPolled(t, 2, func(cfg *Config) { cfg.isAlive = gone })
	m := c.cfg.Map
	old := c.dialed(0)
	stream, packets := packetStream(10, 2000, 0)
	write(t, old, append(stream, packets[0][:50]...))
	var newest *net.TCPConn
	for range 3 { // only the last one is reported
		before, _ := c.peers[0].currentLink()
		fresh := dial(t, m.Addr(0).Addr(), c.LocalAddr())
		for now := before; now == before; now, _ = c.peers[0].currentLink() {
			runtime.Gosched() // until it has replaced the link
		}
		if newest != nil {
			wantClosed(t, newest)
		}
		newest = fresh
	}
	write(t, newest, stream)
	wantClosed(t, old)
	for _, want := range packets {
		if a := c.want(mpe.RxDatagram, 0); string(a.Bytes) != want {
			t.Fatalf("%q arrived by the old connection", a.Bytes)
		}
	}
	if a := c.want(mpe.RxConnected, 0); a.SourceAddr != transportAddr(newest) {
		t.Errorf("%v is the new connection", a.SourceAddr)
	}
	for _, want := range packets {
		if a := c.want(mpe.RxDatagram, 0); string(a.Bytes) != want {
			t.Fatalf("%q arrived by the new connection", a.Bytes)
		}
	}
	if len(c.inbox.links) != 1 || c.inbox.writersWaiting.Load() != 0 {
		t.Errorf("%d links are left", len(c.inbox.links))
	}
}

// TestPollManyLinks checks that with many links, all packets arrive in order and from the right peer, and that
// a busy link does not starve the others.
func TestPollManyLinks(t *testing.T) {
	const peers = 40
	c := newPolled(t, peers+1, nil)
	conns := make([]*net.TCPConn, peers)
	for i := range conns {
		conns[i] = c.dialed(i)
	}
	sent := make(chan error, peers)
	const each = 200
	for i, conn := range conns {
		go func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for number := range uint32(each) {
				p := transporttest.Packet(i, peers, number, rng.IntN(2000))
				if _, err := conn.Write(slices.Concat(p.Header[:], p.Payload)); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
	}
	next := make([]uint32, peers)
	for left := peers * each; left > 0; {
		for _, a := range c.look(16) {
			h, _, defect := protocol.ParseExtended(a.Bytes)
			if !defect.OK() || int(h.Src) != a.Peer || h.Number != next[a.Peer] {
				t.Fatalf("%v from %d, want number %d", &h, a.Peer, next[a.Peer])
			}
			next[a.Peer]++
			left--
		}
	}
	for range conns {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	// The other connections are closed.
	for _, conn := range conns[1:] {
		conn.Close()
	}
	for deadline := time.Now().Add(transporttest.Timeout); len(c.inbox.links) > 1; c.quiet() {
		if time.Now().After(deadline) {
			t.Fatalf("%d links are left", len(c.inbox.links))
		}
	}
	p := transporttest.Packet(0, peers, each, 5)
	write(t, conns[0], slices.Concat(p.Header[:], p.Payload))
	c.want(mpe.RxDatagram, 0)
}

func TestPollIsFair(t *testing.T) {
	c := newPolled(t, 4, nil)
	busy, other := c.dialed(0), c.dialed(1)
	c.dialed(2)
	one := transporttest.Packet(0, 3, 1, 1000)
	end := make(chan struct{})
	defer close(end)
	go func() {
		for stream := bytes.Repeat(slices.Concat(one.Header[:], one.Payload), 100); ; {
			busy.SetWriteDeadline(time.Now().Add(transporttest.Timeout))
			if _, err := busy.Write(stream); err != nil {
				return
			}
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	c.want(mpe.RxDatagram, 0)
	write(t, other, slices.Concat(one.Header[:], one.Payload))
	batch := make([]mpe.RxPacket, 64)
	for deadline := time.Now().Add(transporttest.Timeout); ; {
		n, err := c.Poll(batch, nil)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(batch[:n], func(a mpe.RxPacket) bool { return a.Peer == 1 }) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("one peer keeps another out")
		}
	}
	busy.Close()
}

// TestPollWhileConnectionsChange checks that connections made and closed during polls and sends leave nothing
// behind.
func TestPollWhileConnectionsChange(t *testing.T) {
	descriptors := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := descriptors()
	c := newPolled(t, 4, func(cfg *Config) { cfg.isAlive = gone })
	done := make(chan error, 2)
	go func() {
		batch := make([]mpe.RxPacket, 3)
		for {
			if _, err := c.Recv(batch); err != nil {
				done <- err
				return
			}
		}
	}()
	go func() {
		list := []mpe.Packet{transporttest.Packet(3, 0, 1, 10_000),
			transporttest.Packet(3, 0, 2, protocol.MaxStreamPayload)}
		for i := 0; ; i++ {
			if _, err := c.SendPackets(i%3, list); err != nil {
				done <- err
				return
			}
		}
	}()
	stream, _ := packetStream(0, 5000, 100)
	rng := rand.New(rand.NewPCG(3, 4))
	var conns []*net.TCPConn
	for i := range 100 {
		peer := rng.IntN(3)
		conn := dial(t, c.cfg.Map.Addr(peer).Addr(), c.LocalAddr())
		conns = append(conns, conn)
		_, _ = conn.Write(stream[:rng.IntN(len(stream))]) // it may be replaced already
		switch i % 3 {
		case 0:
			conn.Close()
		case 1: // a part of a packet is lost with it
			conn.SetReadDeadline(time.Now().Add(transporttest.Timeout))
			_, _ = conn.Read(make([]byte, 1+rng.IntN(1<<18)))
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-done; !errors.Is(err, mpe.ErrTransportClosed) {
			t.Errorf("%v in the end", err)
		}
	}
	if after := descriptors(); after > before {
		t.Errorf("%d descriptors instead of %d", after, before)
	}
}
