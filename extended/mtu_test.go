package extended

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// The sizes tried on a path, and the size found.
func TestSearchSizes(t *testing.T) {
	for _, tt := range []struct {
		limit, path int
		tried       []int
		found       int
	}{
		{limit: 1392, path: 1392, tried: []int{1392}, found: 1392},
		{limit: 8892, path: 8892, tried: []int{8888}, found: 8888},
		{limit: 65424, path: 65424, tried: []int{65424}, found: 65424},
		{limit: 1172, path: 1172, tried: []int{1168}, found: 1168},
		{limit: 1120, path: 1120, found: 1120},
		{limit: 468, path: 468, found: 464}, // the first link carries less than the base
		{limit: 1392, path: 1120, tried: []int{1392, 1256, 1184, 1152}, found: 1120},
		{limit: 1392, path: 1172, tried: []int{1392, 1256, 1184, 1152}, found: 1152},
		{limit: 1392, path: 1312, tried: []int{1392, 1256, 1320, 1288}, found: 1288},
		{limit: 8892, path: 1392, tried: []int{8888, 1392, 5136, 3264, 2328, 1856, 1624, 1504, 1448, 1416},
			found: 1392},
		{limit: 8892, path: 4000, tried: []int{8888, 1392, 5136, 3264, 4200, 3728, 3960, 4080}, found: 3960},
	} {
		s := mtuSearch{maxPayload: 65424}
		s.restart(tt.limit)
		var tried []int
		var now Instant
		for s.probeSize != 0 && now < time.Hour {
			now += time.Second
			if !s.expired(now, now) { // packets from the peer always arrive
				break
			}
			if s.tries == 1 {
				tried = append(tried, s.probeSize)
			}
			if s.probeSize <= tt.path {
				s.confirm(s.probeSize)
			}
		}
		if !slices.Equal(tried, tt.tried) || s.size != tt.found || s.deadline(now, time.Second) != never {
			t.Errorf("limit %d, path %d: tried %v, found %d", tt.limit, tt.path, tried, s.size)
		}
	}
}

// The events of a search, in sequence.
func TestSearchSteps(t *testing.T) {
	const ms = time.Millisecond
	s := mtuSearch{maxPayload: 8892}
	for i, step := range []struct {
		name       string
		do         func() bool
		want       bool
		size       int
		probe, try int
		due        Instant // with a timeout of 10 ms, and the last packet of the peer at 5 ms
	}{
		{"the link is known", func() bool { s.restart(8892); return true }, true, 1120, 8888, 0, 0},
		{"the first is sent", func() bool { return s.expired(10*ms, 5*ms) }, true, 1120, 8888, 1, 20 * ms},
		{"again", func() bool { return s.expired(20*ms, 5*ms) }, true, 1120, 8888, 2, 40 * ms},
		{"again", func() bool { return s.expired(40*ms, 5*ms) }, true, 1120, 8888, 3, 80 * ms},
		{"nothing was heard: it shows nothing", func() bool { return s.expired(80*ms, 5*ms) }, false, 1120, 8888, 4,
			never},
		{"something is heard: again", func() bool { return s.deadline(200*ms, 10*ms) == 0 && s.expired(200*ms, 200*ms) },
			true, 1120, 8888, 1, 210 * ms},
		{"again", func() bool { return s.expired(210*ms, 200*ms) }, true, 1120, 8888, 2, 230 * ms},
		{"again", func() bool { return s.expired(230*ms, 200*ms) }, true, 1120, 8888, 3, 270 * ms},
		{"others were heard: too long", func() bool { return s.expired(270*ms, 220*ms) }, true, 1120, 1392, 1,
			280 * ms},
		{"it arrives", func() bool { return s.confirm(1392) }, true, 1392, 5136, 0, 0},
		{"the answer comes twice", func() bool { return s.confirm(1392) }, false, 1392, 5136, 0, 0},
		{"the first arrives late", func() bool { return s.confirm(8888) }, true, 8888, 0, 0, never},
		{"an answer to nothing", func() bool { return s.confirm(9000) }, false, 8888, 0, 0, never},
		{"the link shrinks", func() bool { s.restart(1172); return true }, true, 1168, 0, 0, never},
		{"an answer from before", func() bool { return s.confirm(8888) }, false, 1168, 0, 0, never},
		{"the link shrinks below the base", func() bool { s.restart(500); return true }, true, 496, 0, 0, never},
		{"the link grows", func() bool { s.restart(20000); return true }, true, 1120, 8888, 0, 0},
	} {
		if got := step.do(); got != step.want || s.size != step.size || s.probeSize != step.probe || s.tries != step.try ||
			s.deadline(5*ms, 10*ms) != step.due {
			t.Fatalf("%d, %s: %v, due %v, %+v", i, step.name, got, s.deadline(5*ms, 10*ms), s)
		}
	}
}

// newMTUPath returns a world whose paths carry datagrams of up to mtu bytes, and silently lose longer ones unless they
// may be fragmented.
func newMTUPath(link, mtu int) *world {
	w := newWorld(Config{Discover: true, MaxPayload: protocol.MaxUDPDatagram - protocol.ExtHeaderLen})
	w.link, w.mtu = link, mtu
	return w
}

// sendIntact sends a message, runs for as long as it may take, and verifies it.
func sendIntact(t *testing.T, w *world, from, size int) {
	t.Helper()
	data := pattern(size, uint64(w.now))
	r := w.nodes[1-from].recv(5, int64(size))
	s := w.nodes[from].send(data, SendOp{Tag: 5})
	w.run(w.now + 30*time.Second)
	if err := intact(r, data); err != nil || s.err != nil || !s.done || w.err() != nil {
		t.Fatalf("%v, %v, %v; %+v", err, s.err, w.err(), w.nodes[from].conn.Stats())
	}
}

// Only probes are lost while the search finds the limit of a path.
func TestPathMTU(t *testing.T) {
	for _, tt := range []struct{ link, mtu, payload int }{
		{1252, 1252, 1168}, {1472, 1472, 1392}, {8972, 8972, 8888}, {65507, 65507, 65424}, {548, 548, 464},
		{0, 1416, 1336}, {0, 1300, 1192},
		{8972, 1472, 1392}, {8972, 1252, 1152}, {8972, 1200, 1120}, {1472, 1372, 1288}, {65507, 8972, 8888},
	} {
		t.Run(fmt.Sprint(tt.link, " ", tt.mtu), func(t *testing.T) {
			w := newMTUPath(tt.link, tt.mtu)
			for range 5 {
				sendIntact(t, w, 0, 100_000)
				sendIntact(t, w, 1, 100)
			}
			for _, n := range w.nodes {
				if st := n.conn.Stats(); st.Payload != tt.payload || st.Retransmissions > 0 {
					t.Errorf("rank %d: %+v, want %d", n.rank, st, tt.payload)
				}
				if err := quiet(n); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// No message is lost if the MTU of the path decreases.
func TestPathMTUShrinks(t *testing.T) {
	for _, tt := range []struct {
		link, before, after int // datagrams; the link reports the limit of the path if it is 0
		least, most         int // payload found
	}{
		{8972, 8972, 1472, 1392, 1392}, {8972, 8972, 1252, 1152, 1172}, {1472, 1472, 1200, 1120, 1120},
		{0, 8972, 1252, 1168, 1168}, {65507, 65507, 8972, 8800, 8892},
	} {
		t.Run(fmt.Sprint(tt.link, " ", tt.after), func(t *testing.T) {
			w := newMTUPath(max(tt.link, tt.before), tt.before)
			sendIntact(t, w, 0, 100_000)
			if n := w.nodes[0].conn.Payload(); n != (tt.before-80)&^7 {
				t.Fatalf("at first %d", n)
			}
			w.at(w.now+100*time.Microsecond, 0, func() { // in the middle of the message
				w.mtu = tt.after
				if tt.link == 0 {
					w.link = tt.after
				}
			})
			sendIntact(t, w, 0, 20_000_000)
			n := w.nodes[0]
			if st := n.conn.Stats(); st.Payload < tt.least || st.Payload > tt.most || n.notes[BlackHole] != 1 ||
				st.Retransmissions == 0 {
				t.Errorf("%+v, %d black holes", st, n.notes[BlackHole])
			}
		})
	}
}

// If the MTU of the path increases again, this is noticed after ten minutes, provided that the path is in use.
func TestPathMTUGrows(t *testing.T) {
	w := newMTUPath(8972, 1472)
	sendIntact(t, w, 0, 100_000)
	w.mtu = 8972
	w.wait(raiseAfter - time.Minute)
	sendIntact(t, w, 0, 100_000)
	if n := w.nodes[0].conn.Payload(); n != 1392 {
		t.Errorf("too early: %d", n)
	}
	probes := w.nodes[0].conn.Stats().Probes
	w.wait(10 * raiseAfter)
	if n := w.nodes[0].conn.Stats().Probes; n != probes {
		t.Errorf("%d probes while nothing was sent", n-probes)
	}
	sendIntact(t, w, 0, 100_000)
	if n := w.nodes[0].conn.Payload(); n != 8888 {
		t.Errorf("%d after ten minutes", n)
	}
}

// Losses and outages do not shorten packets for long.
func TestPathMTUWithLosses(t *testing.T) {
	for seed := range uint64(20) {
		w := newMTUPath(8972, 8972)
		rng := rand.New(rand.NewPCG(seed, 3))
		losses := weather{loss: 0.05, late: 0.02, delay: time.Millisecond}.fault(rng)
		down := false
		w.fault = func(from, nth int, b []byte) []fate {
			if down {
				return nil
			}
			return losses(from, nth, b)
		}
		for range 5 {
			w.at(w.now+time.Duration(rng.IntN(3000))*time.Microsecond, 0, func() { down = true })
			w.at(w.now+50*time.Millisecond, 0, func() { down = false })
			sendIntact(t, w, 0, 5_000_000)
		}
		sendIntact(t, w, 0, 1_000_000)
		if st := w.nodes[0].conn.Stats(); st.Payload < 8000 {
			t.Errorf("seed %d: %+v", seed, st)
		}
	}
}

// Versions without E35 drop a probe: its payload is not the payload of an ACK.
func TestProbeIsNoAck(t *testing.T) {
	for n := protocol.AckLen; n < len(padding); n++ {
		if _, ok := protocol.ParseAck(padding[:n], nil); ok && n != protocol.AckLen {
			t.Fatalf("%d zeros are accepted as the payload of an ACK", n)
		}
	}
}

// Invalid probes, and answers without a probe, have no effect.
func TestForgedProbes(t *testing.T) {
	w := newMTUPath(1472, 1472)
	sendIntact(t, w, 0, 1000)
	n := w.nodes[0]
	for _, offset := range []uint32{7, 65424, 1 << 31, 1<<32 - 1} {
		h := w.nodes[1].conn.header(protocol.Ack, protocol.RecvInt)
		h.Flags, h.Offset = protocol.FlagHello, offset
		n.packet(protocol.AppendExtended(nil, &h, padding[:8]))
		h.Flags = 0
		n.packet(protocol.AppendExtended(nil, &h, protocol.AppendAck(nil, &protocol.AckInfo{})))
	}
	n.flush()
	if st := n.conn.Stats(); st.Payload != 1392 || n.drops[ReasonAcknowledged] != 4 || n.conn.arrivals.probeLen != 0 {
		t.Errorf("%+v", st)
	}
}
