package tcp

import (
	"errors"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

func TestWhatCanBePolled(t *testing.T) {
	a := newAuthority(t)
	m := transporttest.Map(t, 3)
	of := func(second protocol.Profile) func(int) protocol.Profile {
		return func(peer int) protocol.Profile { return []protocol.Profile{protocol.Extended, 0, second}[peer] }
	}
	for name, tt := range map[string]struct {
		cfg  Config
		want bool
	}{
		"extended":        {Config{Profile: extended}, true},
		"another profile": {Config{}, false},
		"one of two":      {Config{Profile: of(protocol.V09)}, false},
		"two of two":      {Config{Profile: of(protocol.Extended)}, true},
		"TLS":             {Config{Profile: extended, TLS: a.issue(t, valid(m.Addr(1).Addr()))}, false},
	} {
		tt.cfg.Rank, tt.cfg.Map = 1, m
		c, err := Listen(tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if c.CanPoll() != tt.want {
			t.Errorf("%s: CanPoll is %v", name, c.CanPoll())
		}
		c.Close()
	}
}

// TestPollPartsOfPackets checks that a packet that arrives in two pieces is returned once it is complete,
// wherever it was cut.
func TestPollPartsOfPackets(t *testing.T) {
	c := newPolled(t, 2, nil)
	conn := c.dialed(0)
	stream, packets := packetStream(20, 0)
	for at := 1; at < len(stream); at++ {
		write(t, conn, stream[:at])
		var got []string
		take := func() {
			c.wake()
			batch := make([]mpe.RxPacket, 4)
			n, err := c.Poll(batch, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range batch[:n] {
				got = append(got, string(a.Bytes))
			}
		}
		for take(); c.reader(0).offset%int64(len(stream))+int64(c.reader(0).unreadBytes()) < int64(at); {
			take()
		}
		if whole := at / len(packets[0]); len(got) != whole {
			t.Fatalf("%d packets in the first %d bytes, want %d", len(got), at, whole)
		}
		write(t, conn, stream[at:])
		for len(got) < len(packets) {
			take()
		}
		if !slices.Equal(got, packets) {
			t.Fatalf("cut at %d: %q arrived", at, got)
		}
	}
}

// TestPollSleep checks that Sleep reports packets that were read but not returned, and new connections. For
// everything else, the descriptor must become readable.
func TestPollSleep(t *testing.T) {
	c := newPolled(t, 2, nil)
	if c.quiet(); !c.Sleep() || c.readable(0) {
		t.Fatal("no sleep before anything was received")
	}
	conn := dial(t, c.cfg.Map.Addr(0).Addr(), c.LocalAddr())
	if !c.readable(transporttest.Timeout) || c.Sleep() {
		t.Fatal("a new connection may be slept over")
	}
	c.want(mpe.RxConnected, 0)
	if c.quiet(); !c.Sleep() || c.readable(0) {
		t.Fatal("no sleep after the connection")
	}
	stream, packets := packetStream(3, 100, 0)
	write(t, conn, stream)
	if !c.Sleep() || !c.readable(transporttest.Timeout) {
		t.Fatal("no goroutine is woken by packets")
	}
	for i, want := range packets {
		if a := c.want(mpe.RxDatagram, 0); string(a.Bytes) != want {
			t.Fatalf("packet %d is %q", i, a.Bytes)
		}
		if i == 0 && c.Sleep() && c.reader(0).unreadBytes() > 0 {
			t.Fatal("packets that were read may be slept over")
		}
	}
	if c.quiet(); !c.Sleep() || c.readable(0) {
		t.Fatal("no sleep after the packets")
	}
	write(t, conn, stream[:10])
	c.wake()
	if c.quiet(); !c.Sleep() || c.readable(0) {
		t.Fatal("no sleep over a part of a packet")
	}
	// A connection from an unknown address.
	wantClosed(t, dial(t, transporttest.FreeAddr(t).Addr(), c.LocalAddr()))
	c.want(mpe.RxBroken, mpe.UnknownPeer)
	conn.Close()
	if !c.readable(transporttest.Timeout) {
		t.Fatal("no goroutine is woken by the end of a connection")
	}
	for connected := true; connected; connected, _ = c.Connection(0) {
		c.wake()
		c.quiet()
	}
	if _, last := c.Connection(0); !errors.Is(last, errPeerClosed) {
		t.Errorf("the connection ended with %v", last)
	}
}

// TestPollBatches checks that returned packets remain unchanged until the next Poll, and that no batch is
// exceeded.
func TestPollBatches(t *testing.T) {
	c := newPolled(t, 2, nil)
	conn := c.dialed(0)
	var lengths []int
	for i := range 300 {
		lengths = append(lengths, i*i%3000)
	}
	stream, packets := packetStream(lengths...)
	go conn.Write(stream)
	for next := 0; next < len(packets); {
		for _, a := range c.look(1 + next%7) {
			if string(a.Bytes) != packets[next] || a.Kind != mpe.RxDatagram || a.SourceAddr != transportAddr(conn) {
				t.Fatalf("packet %d is %+v", next, a)
			}
			next++
		}
	}
	if n, err := c.Poll(nil, nil); n != 0 || err != nil {
		t.Errorf("a poll into no batch: %d, %v", n, err)
	}
}
