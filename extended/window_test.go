package extended

import (
	"fmt"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// E28: WindowBytes bounds the payload in flight, except for a single packet. All bytes arrive nevertheless, and a
// sender that waits for the window asks for an ACK.
func TestWindowBytes(t *testing.T) {
	for _, x := range []struct {
		payload, window int
		most            int // bytes in flight, without the last packet
	}{
		{1336, 0, shortWindow * 1336},
		{65427, 0, 4 << 20 / 65427 * 65427},
		{65427, 200000, 3 * 65427},
		{65427, 2 * 65427, 2 * 65427},
		{65427, 2*65427 - 1, 65427},
		{65427, 1, 65427},
		{1336, 10000, 7 * 1336},
	} {
		t.Run(fmt.Sprintf("%d of %d", x.payload, x.window), func(t *testing.T) {
			const size = 20 << 20
			w := newWorld(Config{MaxPayload: x.payload, WindowBytes: x.window})
			var most int
			w.fault = func(int, int, []byte) []fate {
				most = max(most, int(w.nodes[0].conn.path.flight.bytes))
				return onTime
			}
			r := w.nodes[1].recv(0, size)
			s := w.nodes[0].send(pattern(size, 1), SendOp{})
			w.run(time.Minute)
			if err := w.err(); err != nil {
				t.Fatal(err)
			}
			if !s.done || s.err != nil || intact(r, s.data) != nil {
				t.Fatalf("done %v, %v, %v", s.done, s.err, intact(r, s.data))
			}
			if most < x.most || most > max(x.most, x.window) {
				t.Errorf("%d bytes were in flight, want %d", most, x.most)
			}
			st := w.nodes[0].conn.Stats()
			if st.Retransmissions != 0 {
				t.Errorf("%d packets were retransmitted", st.Retransmissions)
			}
			// No window waits for the delayed ACK: one round trip for each is enough.
			if limit := latency * 2 * (size/Instant(x.most) + 40); w.now > limit {
				t.Errorf("it took %v, more than %v", w.now, limit)
			}
		})
	}
}

// Packets without payload are not held back by WindowBytes.
func TestWindowBytesLetsAnswersPass(t *testing.T) {
	w := newWorld(Config{WindowBytes: 1, EagerLimit: -1})
	w.fault = func(from, _ int, b []byte) []fate {
		if h, _, d := protocol.ParseExtended(b); d.OK() && from == 0 && h.Type == protocol.Data {
			return nil // remains in flight
		}
		return onTime
	}
	w.nodes[1].recv(0, 5000)
	w.nodes[0].recv(1, 5000)
	w.nodes[0].send(pattern(5000, 1), SendOp{})
	back := w.nodes[1].send(pattern(5000, 2), SendOp{Tag: 1})
	w.run(100 * latency)
	w.nodes[0].send(pattern(5000, 3), SendOp{Tag: 2})
	w.run(110 * latency)
	if len(w.nodes[1].waiting) != 1 {
		t.Error("another message was not announced")
	}
	if !back.done || back.err != nil {
		t.Errorf("the message in the other direction: done %v, %v", back.done, back.err)
	}
	if n := w.nodes[0].conn.path.flight.bytes; n != defaultPayload {
		t.Errorf("%d bytes in flight", n)
	}
}

// E26: large packets are acknowledged by bytes.
func TestAcknowledgedByBytes(t *testing.T) {
	for _, x := range []struct{ payload, packets int }{{1336, 16}, {8192, 16}, {32768, 16}, {32769, 16}, {40000, 14},
		{65427, 9}} {
		s := meet(t, Config{EagerBytes: 1 << 30, EagerLimit: 1 << 24})
		for n := range 2 * x.packets {
			s.put(eager(uint32(n+1), 1, uint32(n*x.payload), 1<<24), x.payload).flush()
			acked := s.count(TransmitAck) > 0
			if acked != ((n+1)%x.packets == 0) {
				t.Errorf("%d bytes each: after %d packets an ACK: %v", x.payload, n+1, acked)
			}
		}
	}
}

// E43: a Conn with HeaderChecksum sets PLAIN in all of its packets, one without it in none, and they interoperate.
func TestHeaderChecksum(t *testing.T) {
	for _, plain := range [][2]bool{{false, false}, {true, true}, {true, false}, {false, true}} {
		w := newWorld(Config{})
		var kinds [2]map[protocol.Type]int
		for i := range w.nodes {
			w.start(i, sixteen(Config{HeaderChecksum: plain[i]}))
			kinds[i] = map[protocol.Type]int{}
		}
		lost := false
		w.fault = func(from, nth int, b []byte) []fate {
			h, payload, d := protocol.ParseExtended(b)
			if !d.OK() || (h.Flags&protocol.FlagPlain != 0) != plain[from] {
				t.Errorf("%v: rank %d sends %s", plain, from, describe(b))
			}
			kinds[from][h.Type]++
			if h.Type == protocol.Data && !lost {
				lost = true // the retransmission has PLAIN, too
				return nil
			}
			// With PLAIN, corruption of the payload is not detected; without PLAIN it is.
			if len(payload) > 0 && h.Type == protocol.Data && plain[from] {
				return []fate{{flip: 8*protocol.ExtHeaderLen + 1}}
			}
			return onTime
		}
		for from := range 2 {
			for _, n := range []int{5, 50000} {
				data := pattern(n, uint64(n))
				r := w.nodes[1-from].recv(0, int64(n))
				s := w.nodes[from].send(data, SendOp{})
				w.run(time.Minute)
				if !s.done || s.err != nil || !r.done() {
					t.Fatalf("%v: %v, %v", plain, s.err, r.done())
				}
				if ok := intact(r, data) == nil; ok == plain[from] {
					t.Errorf("%v: %d bytes from %d are intact: %v", plain, n, from, ok)
				}
			}
		}
		w.nodes[0].acts = w.nodes[0].conn.Close(w.now, nil)
		w.nodes[0].do()
		if err := w.err(); err != nil {
			t.Error(err)
		}
		for from := range kinds {
			if len(kinds[from]) < 4 {
				t.Errorf("%v: rank %d sent %v only", plain, from, kinds[from])
			}
		}
	}
}

// A ping-pong needs no ACK but the delayed one at its end: the answer is the acknowledgement.
func TestPingPongNeedsNoAcks(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		c := newCouple(Config{Reliable: reliable})
		c.send(0, 1, 8, 0)
		c.deliverAll()
		c.packets = 0
		acks := c.conns[0].Stats().PacketsSent[protocol.Ack] + c.conns[1].Stats().PacketsSent[protocol.Ack]
		const rounds = 10000
		for range rounds {
			c.send(1, 1, 8, 0)
			c.deliverAll()
			c.send(0, 1, 8, 0)
			c.deliverAll()
		}
		acks = c.conns[0].Stats().PacketsSent[protocol.Ack] + c.conns[1].Stats().PacketsSent[protocol.Ack] - acks
		if c.packets != 2*rounds || acks != 0 {
			t.Errorf("reliable %v: %d packets and %d ACKs for %d messages", reliable, c.packets, acks, 2*rounds)
		}
		for i := range c.conns {
			if s := c.conns[i].Stats(); s.Retransmissions+s.Timeouts+s.Hellos > 1 { // the first HELLO
				t.Errorf("reliable %v: %+v", reliable, s)
			}
		}
	}
}

// A packet that is retransmitted more often than its counter can count remains a retransmitted one.
func TestRetransmissionsDoNotWrapAround(t *testing.T) {
	s := meet(t, Config{Timing: Timing{UnreachableAfter: 0, InitialRTO: 1, MinRTO: 1, MaxRTO: 1, AckDelay: 1,
		HelloFirst: 1, HelloMax: 1}})
	s.echo = s.now - time.Millisecond
	s.ack(1, 65537, 1<<20).flush() // the round trip is known
	s.send(1, 8)
	f := &s.c.path.flight
	f.packetAt(f.base).retransmissions = 1<<16 - 2
	f.append(&f.retransmitted, f.packetAt(f.base))
	for range 4 {
		at, ok := s.c.Deadline()
		if !ok {
			t.Fatal("nothing is waited for")
		}
		s.now = at
		s.c.Tick(s.now, nil)
		s.flush()
		if err := s.c.check(); err != nil {
			t.Fatal(err)
		}
	}
	if n, st := f.packetAt(f.base).retransmissions, s.c.Stats(); n != 1<<16-1 || st.Retransmissions != 4 {
		t.Errorf("%d retransmissions are counted as %d", st.Retransmissions, n)
	}
}
