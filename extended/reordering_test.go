package extended

import (
	"math"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A late packet is at first mistaken for a lost one. The reduction is undone, and another packet with the same delay is
// not considered lost.
func TestLatePacketIsNotALoss(t *testing.T) {
	w := newWorld(Config{})
	w.path(func(time.Duration) time.Duration { return 10 * time.Millisecond })
	inOrder, data := w.fault, 0
	w.fault = func(from, nth int, b []byte) []fate {
		fates := inOrder(from, nth, b)
		if h := headerOf(b); h.Type == protocol.Data {
			if data++; data == 300 || data == 600 || data == 2000 || data == 2600 {
				fates[0].delay += 500 * time.Microsecond
			}
		}
		return fates
	}
	w.stream(t, 4<<20)
	c := w.nodes[0].conn
	st := c.Stats()
	if st.Losses == 0 || st.Losses > 3 || st.Timeouts != 0 || st.Retransmissions > st.Losses {
		t.Errorf("%d packets declared lost, %d retransmitted, %d timeouts", st.Losses, st.Retransmissions, st.Timeouts)
	}
	if !math.IsInf(c.path.window.threshold, 1) || c.path.window.suspectedLosses != 0 {
		t.Errorf("the reduction stands: %+v", c.path.window.curve)
	}
	if c.path.reordering.packetThreshold <= minReordering {
		t.Errorf("packets may still be overtaken by %d only", c.path.reordering.packetThreshold)
	}
}

// When the path has carried nothing for three timeouts, the window is the minimum; when the path was merely slow, or
// after fewer timeouts, it is not.
func TestPersistentCongestion(t *testing.T) {
	for _, x := range []struct {
		timeOuts, window int
		late             bool
	}{{1, 11, false}, {2, 11, false}, {3, minWindow, false}, {4, minWindow, false}, {4, initialWindow, true}} {
		s := meet(t, Config{})
		s.send(1, 1)
		s.now += 100 * time.Microsecond
		s.ack(2, 65537, 1<<20)
		first := s.now
		s.send(2, 1)
		for range x.timeOuts {
			s.now, _ = s.c.Deadline()
			s.c.Tick(s.now, nil)
			s.flush()
		}
		if s.echo = s.now; x.late {
			s.echo = first
		}
		s.now += 100 * time.Microsecond
		if s.ack(3, 65537, 1<<20); s.c.Stats().Window != x.window {
			t.Errorf("%+v: the window is %d", x, s.c.Stats().Window)
		}
	}
}

// ACKs report all ranges in turn if there are more than fit into one (E25).
func TestAllRangesAreReported(t *testing.T) {
	s := meet(t, Config{})
	for n := range uint32(100) {
		s.put(eager(3+2*n, 3+2*n, 0, 1), 1)
	}
	seen := map[uint32]int{}
	for range 4 {
		ranges := s.c.arrivals.appendRanges(nil)
		if len(ranges) > protocol.MaxAckRanges {
			t.Fatalf("%d ranges", len(ranges))
		}
		for _, r := range ranges {
			seen[r.First]++
		}
	}
	for n := range uint32(100) {
		if seen[3+2*n] != 1 {
			t.Errorf("packet %d is in %d of four ACKs", 3+2*n, seen[3+2*n])
		}
	}
	if again := s.c.arrivals.appendRanges(nil); again[0].First != 3 {
		t.Errorf("the next one begins with %v", again[0])
	}
}

// The peer reports how many packets it accepts (E32): no more are in flight, nor more than Config allows, nor more than
// 512 on a short path.
func TestOfferedWindow(t *testing.T) {
	for _, x := range []struct {
		window int // Config.Window
		offer  uint32
		trip   time.Duration
		most   int
	}{
		{0, 0, time.Second, shortWindow}, {0, 100, time.Second, shortWindow}, {0, 2000, time.Second, 2000},
		{0, 1 << 31, time.Second, maxWindow}, {1000, 2000, time.Second, 1000}, {0, 2000, time.Microsecond, shortWindow},
		{100, 2000, time.Second, 100},
	} {
		s := meet(t, Config{Window: x.window})
		s.echo = s.now
		s.now += x.trip
		s.ack(1, 65537, 1<<20)
		h := protocol.ExtHeader{
			Src: 1, Type: protocol.Ack, Call: protocol.RecvInt, Session: scriptedSession,
			PeerSession: s.c.session.local, Acknowledged: 1, Length: x.offer,
		}
		s.c.Packet(s.now, protocol.AppendExtended(nil, &h,
			protocol.AppendAck(nil, &protocol.AckInfo{MessageLimit: 65537})), nil)
		if s.c.path.maxInFlight != x.most {
			t.Errorf("%+v: at most %d packets in flight", x, s.c.path.maxInFlight)
		}
		s.now += time.Second
		s.c.Tick(s.now, nil)
		s.put(request(2, 2, 9), 0).flush()
		for _, a := range s.last {
			if want := uint32(max(s.c.cfg.Window, shortWindow)); a.Kind == TransmitAck && a.Header.Length != want {
				t.Errorf("%+v: it offers %d, want %d", x, a.Header.Length, want)
			}
		}
	}
}
