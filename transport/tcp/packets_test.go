package tcp

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

func extended(int) protocol.Profile { return protocol.Extended }

func TestPackets(t *testing.T) {
	bothWays(t, func(t *testing.T, listen listener) {
		transporttest.RunPackets(t, packetKind(nil, listen))
	})
}

// packetKind is the extended profile over TCP. It uses TLS if there is an authority.
func packetKind(a *authority, listen listener) transporttest.PacketKind {
	return transporttest.PacketKind{
		Pair: func(t *testing.T) (_, _ *transporttest.End) {
			m := transporttest.Map(t, 2)
			var ends [2]*transporttest.End
			for rank := range ends {
				cfg := Config{Rank: rank, Map: m, Profile: extended}
				if a != nil {
					cfg.TLS = a.issue(t, valid(m.Addr(rank).Addr()))
				}
				ends[rank] = listen.start(t, cfg)
			}
			ends[0].WaitConnected(t, 1)
			ends[1].WaitConnected(t, 0)
			return ends[0], ends[1]
		},
		MaxPayload: protocol.MaxStreamPayload,
	}
}

func TestPacketsWithoutConnectionAreLost(t *testing.T) {
	m := transporttest.Map(t, 2)
	c, err := Listen(Config{Rank: 1, Map: m, Profile: extended})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.SendPackets(0, []mpe.Packet{transporttest.Packet(1, 0, 1, 5)}); n != 0 || err != nil {
		t.Errorf("%d packets went, %v", n, err)
	}
}

func TestSendPacketsErrors(t *testing.T) {
	m := transporttest.Map(t, 3)
	c, err := Listen(Config{Rank: 2, Map: m, Profile: func(peer int) protocol.Profile {
		return []protocol.Profile{protocol.Extended, protocol.V09}[peer]
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	good, bad := transporttest.Packet(2, 0, 1, 5), transporttest.Packet(2, 0, 2, 5)
	bad.Payload = bad.Payload[:4]
	_, plain := c.SendPackets(1, []mpe.Packet{good})
	_, length := c.SendPackets(0, []mpe.Packet{good, bad})
	_, long := c.SendPackets(0, []mpe.Packet{transporttest.Packet(2, 0, 1, protocol.MaxStreamPayload+1)})
	header := c.SendHeader(0, request(2, 0))
	for _, tt := range []struct {
		err  error
		text string
	}{
		{plain, "rank 2 cannot send to rank 1 (" + m.Addr(1).String() +
			"): the peer's profile does not allow it: it is v0.9, which does not carry such packets"},
		{length, "the header of packet 2 of 2 announces 5 bytes of payload, but it has 4"},
		{long, "a packet with 32769 bytes of payload, but on a stream it has at most 32768"},
		{header, "it is extended, which carries other packets"},
	} {
		var sendErr *SendError
		if !errors.As(tt.err, &sendErr) || !strings.Contains(tt.err.Error(), tt.text) {
			t.Errorf("got %v, want %s", tt.err, tt.text)
		}
	}
	if !errors.Is(plain, ErrProfile) || !errors.Is(header, ErrProfile) {
		t.Errorf("%v, %v", plain, header)
	}
}

// TestFullQueueLosesTheRest sends to a peer that does not read. The sender must neither block nor queue more
// than its limit, and accepted packets must arrive.
func TestFullQueueLosesTheRest(t *testing.T) { bothWays(t, fullQueueLosesTheRest) }

func fullQueueLosesTheRest(t *testing.T, listen listener) {
	const limit = 1 << 20
	m := transporttest.Map(t, 2)
	c := listen.start(t, Config{Rank: 1, Map: m, Profile: extended, SendQueue: limit})
	conn := dial(t, m.Addr(0).Addr(), m.Addr(1))
	c.WaitConnected(t, 0)
	list := make([]mpe.Packet, 16)
	for i := range list {
		list[i] = transporttest.Packet(1, 0, uint32(i), 10000+i)
	}
	var want []byte
	for rounds := 0; ; rounds++ {
		n, err := c.SendPackets(0, list)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list[:n] {
			want = append(append(want, p.Header[:]...), p.Payload...)
		}
		if n < len(list) {
			break
		}
		// The kernel's buffers hold some megabytes.
		if rounds > 1000 {
			t.Fatalf("%d bytes went in and nobody received", len(want))
		}
	}
	if n, err := c.SendPackets(0, []mpe.Packet{transporttest.Packet(1, 0, 1, protocol.MaxStreamPayload)}); n > 1 ||
		err != nil {
		t.Fatalf("%d packets went, %v", n, err)
	} else if n == 1 {
		p := transporttest.Packet(1, 0, 1, protocol.MaxStreamPayload)
		want = append(append(want, p.Header[:]...), p.Payload...)
	}
	got := make([]byte, len(want))
	readFull(t, conn, got)
	if !bytes.Equal(got, want) {
		t.Error("accepted packets were not received unchanged")
	}
	// Packets are accepted again.
	for deadline := time.Now().Add(transporttest.Timeout); ; {
		n, err := c.SendPackets(0, list[:1])
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the queue is still full: %v", err)
		}
		if n == 1 {
			break
		}
	}
	readFull(t, conn, got[:protocol.ExtHeaderLen+10000])
}

func readFull(t *testing.T, conn net.Conn, b []byte) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(transporttest.Timeout))
	for n := 0; n < len(b); {
		m, err := conn.Read(b[n:])
		n += m
		if err != nil {
			t.Fatalf("%d of %d bytes arrived: %v", n, len(b), err)
		}
	}
}

// TestNewConnectionDiscardsTheQueue queues packets for a peer that does not read and then connects again. The
// new connection must carry only new packets.
func TestNewConnectionDiscardsTheQueue(t *testing.T) { bothWays(t, newConnectionDiscardsTheQueue) }

func newConnectionDiscardsTheQueue(t *testing.T, listen listener) {
	m := transporttest.Map(t, 2)
	c, err := listen(Config{Rank: 1, Map: m, Profile: extended, isAlive: gone})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	batch := make([]mpe.RxPacket, 1)
	connected := func() {
		t.Helper()
		if _, err := c.Recv(batch); err != nil || batch[0].Kind != mpe.RxConnected {
			t.Fatalf("%+v, %v", batch[0], err)
		}
	}
	old := dial(t, m.Addr(0).Addr(), m.Addr(1))
	connected()
	long := transporttest.Packet(1, 0, 1, protocol.MaxStreamPayload)
	for { // until the queue is full
		n, err := c.SendPackets(0, []mpe.Packet{long})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	fresh := dial(t, m.Addr(0).Addr(), m.Addr(1))
	connected()
	want := transporttest.Packet(1, 0, 2, 100)
	if n, err := c.SendPackets(0, []mpe.Packet{want}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	got := make([]byte, protocol.ExtHeaderLen+100)
	readFull(t, fresh, got)
	if !bytes.Equal(got, slices.Concat(want.Header[:], want.Payload)) {
		t.Errorf("%x arrived on the new connection", got[:protocol.ExtHeaderLen])
	}
	old.Close()
}

// TestBrokenPacketStreams checks that a connection ends after a packet that fails a check, because the packet
// boundaries are unknown from then on, and that the dialer makes another connection.
func TestBrokenPacketStreams(t *testing.T) { bothWays(t, brokenPacketStreams) }

func brokenPacketStreams(t *testing.T, listen listener) {
	m := transporttest.Map(t, 2)
	high := listen.start(t, Config{Rank: 1, Map: m, Profile: extended})
	good := transporttest.Packet(0, 1, 1, 10)
	whole := slices.Concat(good.Header[:], good.Payload)
	corruption := func(at int) []byte {
		b := slices.Clone(whole)
		b[at] ^= 0x10
		return b
	}
	for name, stream := range map[string][]byte{
		"another protocol": bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10),
		"another profile":  append(request(0, 1), make([]byte, protocol.ExtHeaderLen)...),
		"corrupt payload":  corruption(len(whole) - 1),
		"corrupt header":   corruption(40),
		"too long":         corruption(22),
	} {
		conn := dial(t, m.Addr(0).Addr(), m.Addr(1))
		want(t, high, mpe.RxConnected, 0)
		write(t, conn, whole)
		high.CheckPacket(t, 0, good)
		write(t, conn, stream)
		want(t, high, mpe.RxBroken, 0)
		wantClosed(t, conn)
		connected, last := high.Transport.(*Conn).Connection(0)
		if connected || last == nil || !strings.Contains(last.Error(), "zrlmpi stream: byte 90") {
			t.Errorf("%s: connected %v, last %v", name, connected, last)
		}
	}
	// The same must hold on the dialing side.
	low := listen.start(t, Config{Rank: 0, Map: m, Profile: extended})
	want(t, low, mpe.RxConnected, 1)
	want(t, high, mpe.RxConnected, 0)
	if connected, _ := low.Transport.(*Conn).Connection(1); !connected {
		t.Error("there is a connection, and it is not reported")
	}
	high.Close()
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(m.Addr(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for range 2 {
		conn, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		want(t, low, mpe.RxConnected, 1)
		write(t, conn, corruption(24))
		want(t, low, mpe.RxBroken, 1)
		wantClosed(t, conn)
		conn.Close()
	}
}

// TestManySmallPackets queues more packets than there are buffers.
func TestManySmallPackets(t *testing.T) { bothWays(t, manySmallPackets) }

func manySmallPackets(t *testing.T, listen listener) {
	m := transporttest.Map(t, 2)
	c, err := listen(Config{Rank: 1, Map: m, Profile: extended})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conn := dial(t, m.Addr(0).Addr(), m.Addr(1))
	const many = 4000
	var stream []byte
	for number := range uint32(many) {
		p := transporttest.Packet(0, 1, number, int(number%50))
		stream = append(append(stream, p.Header[:]...), p.Payload...)
	}
	write(t, conn, stream) // at once: nothing is received yet
	batch := make([]mpe.RxPacket, 100)
	next := uint32(0)
	for first := true; next < many; {
		n, err := c.Recv(batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range batch[:n] {
			if first {
				first = false
				continue // the connection
			}
			h, payload, defect := protocol.ParseExtended(a.Bytes)
			if !defect.OK() || h.Number != next || len(payload) != int(next%50) {
				t.Fatalf("%v, %v arrived, want number %d", &h, defect, next)
			}
			next++
		}
	}
	if c.CanPoll() {
		return
	}
	if made := c.peers[0].chunksMade; made > 10 {
		t.Errorf("%d buffers for %d bytes", made, len(stream))
	}
}
