package extended

import (
	"testing"
	"time"
)

// path sets the one-way delay of packets as a function of their send time. Packets never overtake each other.
func (w *world) path(oneWay func(now time.Duration) time.Duration) {
	var last [2]time.Duration
	w.fault = func(from, _ int, _ []byte) []fate {
		at := max(w.now+oneWay(w.now), last[from])
		last[from] = at
		return []fate{{delay: at - w.now - latency}}
	}
}

// stream sends a message and returns the time until all of it is acknowledged.
func (w *world) stream(t *testing.T, bytes int) time.Duration {
	t.Helper()
	begun := w.now
	w.nodes[1].recv(0, int64(bytes))
	s := w.nodes[0].send(make([]byte, bytes), SendOp{})
	w.run(w.now + time.Hour)
	if !s.done || s.err != nil || w.err() != nil {
		t.Fatalf("the message is done: %v, %v; %v", s.done, s.err, w.err())
	}
	return w.now - begun
}

// On a long path, no packet is retransmitted unless it was lost, and the window grows as far as the path requires:
// without a limit, as here, it doubles with each round trip (E28, E30).
func TestLongPath(t *testing.T) {
	const size = 32 << 20
	for _, ms := range []time.Duration{1, 48, 60, 100, 200, 600} {
		trip := ms * time.Millisecond
		w := newWorld(Config{})
		w.path(func(time.Duration) time.Duration { return trip / 2 })
		took := w.stream(t, size)
		st := w.nodes[0].conn.Stats()
		if st.Retransmissions+st.Timeouts+st.Losses != 0 {
			t.Errorf("round trip of %v: %d packets retransmitted, %d timeouts, %d losses", trip, st.Retransmissions,
				st.Timeouts, st.Losses)
		}
		// Two round trips for the sessions and the message, eleven until the window has grown from 16 packets to 16384.
		if most := trip*14 + 50*time.Millisecond; took > most {
			t.Errorf("round trip of %v: %d bytes take %v, more than %v; the window is %d", trip, size, took, most,
				st.Window)
		}
	}
}

// When the path suddenly becomes longer, timeouts expire for packets that are merely late. This is detected, and the
// window is restored (E30).
func TestPathBecomesLonger(t *testing.T) {
	for _, both := range []bool{false, true} { // both: DATA is sent the other way as well, and acknowledges
		for _, ms := range []time.Duration{20, 80, 200} {
			w := newWorld(Config{Window: shortWindow})
			const step = 30 * time.Millisecond
			long := ms * time.Millisecond
			w.path(func(now time.Duration) time.Duration {
				if now < step {
					return 500 * time.Microsecond
				}
				return long / 2
			})
			if both {
				w.nodes[0].recv(1, 1<<25)
				w.nodes[1].send(make([]byte, 1<<25), SendOp{Tag: 1})
			}
			w.nodes[1].recv(0, 1<<25)
			w.nodes[0].send(make([]byte, 1<<25), SendOp{})
			w.run(step - time.Millisecond)
			before := w.nodes[0].conn.Stats()
			w.run(step + 10*long)
			after := w.nodes[0].conn.Stats()
			if before.Window != shortWindow || before.Retransmissions != 0 || after.InFlight == 0 {
				t.Fatalf("before: %+v", before)
			}
			if after.Timeouts == 0 || after.Events[Spurious] != 1 || after.Losses != 0 ||
				after.Retransmissions != after.Timeouts {
				t.Errorf("%v, both ways %v: %d timeouts, detected %d times; %d packets declared lost, %d retransmitted",
					long, both, after.Timeouts, after.Events[Spurious], after.Losses, after.Retransmissions)
			}
			if after.Window != shortWindow || (after.RoundTrip-long).Abs() > long/20 {
				t.Errorf("%v, both ways %v: the window is %d, the round trip %v", long, both, after.Window,
					after.RoundTrip)
			}
			if err := w.err(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Both sides know the round-trip time before the first loss, so that on a short path, a loss is not detected only by
// the long initial timeout.
func TestFirstLossOnShortPath(t *testing.T) {
	for _, from := range []int{0, 1} {
		w := newWorld(Config{})
		nth := 0
		w.fault = func(rank, _ int, b []byte) []fate {
			if h := headerOf(b); rank == from && h.Number != 0 {
				if nth++; nth == 1 {
					return nil
				}
			}
			return onTime
		}
		w.nodes[1].recv(0, 1<<20)
		s := w.nodes[0].send(make([]byte, 1<<20), SendOp{})
		for w.run(time.Millisecond); !s.done && w.now < time.Second; {
			w.wait(time.Millisecond)
		}
		if !s.done || w.now > 30*time.Millisecond {
			t.Errorf("the first packet of rank %d is lost: done %v after %v", from, s.done, w.now)
		}
	}
}
