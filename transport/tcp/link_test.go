package tcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

func TestNotConnected(t *testing.T) {
	m := transporttest.Map(t, 2)
	// The lower rank dials without success. It reports this as soon as it knows.
	low := start(t, Config{Rank: 0, Map: m})
	for deadline := time.Now().Add(transporttest.Timeout); ; {
		err := low.SendHeader(1, request(0, 1))
		var sendErr *SendError
		if !errors.As(err, &sendErr) || !errors.Is(err, ErrNotConnected) || sendErr.Peer != 1 ||
			sendErr.Addr != m.Addr(1) {
			t.Fatalf("the error is %v", err)
		}
		if strings.Contains(err.Error(), "connection refused") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v does not say why", err)
		}
	}
	low.Close()
	high := start(t, Config{Rank: 1, Map: m})
	err := high.SendData(0, protocol.CloudFPGA.Append(nil, protocol.Header{Type: protocol.Data}), nil,
		protocol.CPUShape())
	if !errors.Is(err, ErrNotConnected) || !strings.Contains(err.Error(), "rank 0 must dial") {
		t.Errorf("the error is %v", err)
	}
}

func TestReconnect(t *testing.T) {
	m := transporttest.Map(t, 2)
	low := start(t, Config{Rank: 0, Map: m})
	for range 3 {
		high := start(t, Config{Rank: 1, Map: m})
		want(t, high, mpe.RxConnected, 0)
		want(t, low, mpe.RxConnected, 1)
		if err := errors.Join(low.SendHeader(1, request(0, 1)), high.SendHeader(0, request(1, 0))); err != nil {
			t.Fatal(err)
		}
		want(t, high, mpe.RxHeader, 0)
		want(t, low, mpe.RxHeader, 1)
		high.Close()
	}
	// The dialer is closed as well.
	low.Close()
	high := start(t, Config{Rank: 1, Map: m})
	for range 2 {
		low = start(t, Config{Rank: 0, Map: m})
		want(t, high, mpe.RxConnected, 0)
		want(t, low, mpe.RxConnected, 1)
		low.Close()
	}
}

func TestNewConnectionReplacesTheOld(t *testing.T) {
	m := transporttest.Map(t, 2)
	high := start(t, Config{Rank: 1, Map: m, isAlive: gone})
	data := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Size: 2, Type: protocol.Data})
	old := dial(t, m.Addr(0).Addr(), m.Addr(1))
	want(t, high, mpe.RxConnected, 0)
	write(t, old, append(data, 1, 2, 3)) // stops in mid-message
	want(t, high, mpe.RxHeader, 0)
	want(t, high, mpe.RxPayload, 0)

	fresh := dial(t, m.Addr(0).Addr(), m.Addr(1))
	write(t, fresh, request(0, 1))
	want(t, high, mpe.RxConnected, 0)
	if a := want(t, high, mpe.RxHeader, 0); !bytes.Equal(a.Bytes, request(0, 1)) {
		t.Errorf("%x arrived on the new connection", a.Bytes)
	}
	wantClosed(t, old)
	if err := high.SendHeader(0, request(1, 0)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, protocol.HeaderLen)
	fresh.SetReadDeadline(time.Now().Add(transporttest.Timeout))
	if _, err := io.ReadFull(fresh, got); err != nil || !bytes.Equal(got, request(1, 0)) {
		t.Errorf("the new connection got %x, %v", got, err)
	}
}

// gone is an answers function for which the other end of the connection never answers.
func gone(*Conn, *link) bool { return false }

func write(t *testing.T, conn net.Conn, b []byte) {
	t.Helper()
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenStreams(t *testing.T) {
	m := transporttest.Map(t, 2)
	high := start(t, Config{Rank: 1, Map: m, MaxWords: 10})
	for name, stream := range map[string][]byte{
		"another protocol": []byte("GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n"),
		"not quite TLS":    {recordHandshake, recordVersion + 1, protocol.HeaderLen - 1: 0},
		"too long": protocol.CloudFPGA.Append(nil, protocol.Header{
			Dst: 1, Size: 11, Type: protocol.Data}),
	} {
		conn := dial(t, m.Addr(0).Addr(), m.Addr(1))
		want(t, high, mpe.RxConnected, 0)
		write(t, conn, stream)
		if a := want(t, high, mpe.RxBroken, 0); !strings.Contains(string(a.Bytes), "zrlmpi stream: byte 0") {
			t.Errorf("%s: %s", name, a.Bytes)
		}
		wantClosed(t, conn)
		if err := high.SendHeader(0, request(1, 0)); !errors.Is(err, ErrNotConnected) ||
			!strings.Contains(err.Error(), "zrlmpi stream: byte 0") {
			t.Errorf("%s: sending then gives %v", name, err)
		}
	}
	// If a connection ends between two packets, or within one, it is lost but not broken: the next event is the
	// next connection.
	for _, stream := range [][]byte{nil, request(0, 1)[:5]} {
		conn := dial(t, m.Addr(0).Addr(), m.Addr(1))
		want(t, high, mpe.RxConnected, 0)
		write(t, conn, stream)
		conn.Close()
	}
	dial(t, m.Addr(0).Addr(), m.Addr(1))
	want(t, high, mpe.RxConnected, 0)
}

// TestOnlyTheLowerRankDials checks that a connection from a higher rank is rejected, because it would cross
// ours.
func TestOnlyTheLowerRankDials(t *testing.T) {
	m := transporttest.Map(t, 3)
	middle := start(t, Config{Rank: 1, Map: m})
	for _, from := range []int{1, 2} {
		conn := dial(t, m.Addr(from).Addr(), m.Addr(1))
		want(t, middle, mpe.RxBroken, mpe.UnknownPeer)
		wantClosed(t, conn)
	}
	dial(t, m.Addr(0).Addr(), m.Addr(1))
	want(t, middle, mpe.RxConnected, 0)
}

func TestWriteTimeout(t *testing.T) {
	m := transporttest.Map(t, 2)
	c, err := Listen(Config{Rank: 1, Map: m, WriteTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	dial(t, m.Addr(0).Addr(), m.Addr(1)) // and never read
	if _, err := c.Recv(make([]mpe.RxPacket, 1)); err != nil {
		t.Fatal(err)
	}
	data := protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Size: 16 << 20, Type: protocol.Data})
	err = c.SendData(0, data, make([]byte, 64<<20), protocol.CPUShape())
	var timeout net.Error
	if !errors.Is(err, ErrNotConnected) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("sending to a peer that is stuck gives %v", err)
	}
}

// TestPacketsWriteTimeout checks that a connection is closed if the peer reads no packets, and that the peer
// may dial again.
func TestPacketsWriteTimeout(t *testing.T) {
	bothWays(t, func(t *testing.T, listen listener) {
		m := transporttest.Map(t, 2)
		c := listen.start(t, Config{Rank: 1, Map: m, Profile: extended, WriteTimeout: 50 * time.Millisecond})
		conn := dial(t, m.Addr(0).Addr(), m.Addr(1)) // and never read
		want(t, c, mpe.RxConnected, 0)
		long := transporttest.Packet(1, 0, 1, protocol.MaxStreamPayload)
		for deadline := time.Now().Add(transporttest.Timeout); ; {
			if _, err := c.SendPackets(0, []mpe.Packet{long}); err != nil {
				t.Fatal(err)
			}
			connected, last := c.Transport.(*Conn).Connection(0)
			if !connected {
				if !errors.Is(last, os.ErrDeadlineExceeded) {
					t.Errorf("it was aborted because of %v", last)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("it is not closed")
			}
		}
		conn.Close()
		dial(t, m.Addr(0).Addr(), m.Addr(1))
		want(t, c, mpe.RxConnected, 0)
	})
}

// TestPacketsReconnect closes either side and opens it again.
func TestPacketsReconnect(t *testing.T) {
	bothWays(t, func(t *testing.T, listen listener) {
		m := transporttest.Map(t, 2)
		first := transporttest.Packet(0, 1, 1, 5)
		for keep := range 2 {
			kept := listen.start(t, Config{Rank: keep, Map: m, Profile: extended})
			for range 3 {
				other := listen.start(t, Config{Rank: 1 - keep, Map: m, Profile: extended})
				want(t, other, mpe.RxConnected, keep)
				want(t, kept, mpe.RxConnected, 1-keep)
				other.SendAllPackets(t, keep, []mpe.Packet{first})
				kept.CheckPacket(t, 1-keep, first)
				kept.SendAllPackets(t, 1-keep, []mpe.Packet{first})
				other.CheckPacket(t, keep, first)
				other.Close()
			}
			kept.Close()
		}
	})
}

func TestSendRefusesWhatDoesNotFrame(t *testing.T) {
	m := transporttest.Map(t, 2)
	c, err := Listen(Config{Rank: 0, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	bad := request(0, 1)
	bad[19] = 1
	var headerErr *protocol.HeaderError
	if err := c.SendHeader(1, bad); !errors.As(err, &headerErr) {
		t.Errorf("a bad header: %v", err)
	}
	data := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Size: 2, Type: protocol.Data})
	var payloadErr *protocol.PayloadError
	if err := c.SendData(1, data, make([]byte, 4), protocol.CPUShape()); !errors.As(err, &payloadErr) {
		t.Errorf("a payload that is too short: %v", err)
	}
	if err := c.SendHeader(1, data); !errors.As(err, &payloadErr) {
		t.Errorf("a DATA header without payload: %v", err)
	}
}
