package extended

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// An attacker who cannot observe the packets of two ranks does not know their sessions. Packets that it sends in the
// name of one rank, of every type, with every flag and matching numbers, change nothing at the other rank: all 64 bits
// of a packet's session must be right (E6).

// snapshot prints the state of a Conn, without its counters and pending answers.
func snapshot(c *Conn) string {
	s := *c
	s.stats, s.rxHeader, s.acts, s.ackBuf = Counters{}, protocol.ExtHeader{}, nil, nil
	s.changed, s.deadlineValid, s.nextDeadline = false, false, 0
	s.session.answerTo, s.session.answerClock = 0, 0
	text := fmt.Sprintf("%+v", s)
	c.EachSend(func(m SendState) bool { text += fmt.Sprintf("%+v", m); return true })
	c.EachRecv(func(m RecvState) bool { text += fmt.Sprintf("%+v", m); return true })
	return text
}

// forgedSessions calls yield with pairs of sessions of an attacker who knows neither: random ones, ones near the right
// ones, sessions of ranks that know no peer, and our own with one bit changed.
func forgedSessions(c *Conn, rng *rand.Rand, yield func(session, peer protocol.Session)) {
	local, remote := c.session.local, c.session.remote
	for range 4 {
		yield(protocol.Session(rng.Uint64()), protocol.Session(rng.Uint64()))
		yield(protocol.Session(rng.Uint64()), 0)
	}
	yield(0, local)
	yield(remote, remote)
	yield(local, 0)
	for bit := range 64 {
		yield(protocol.Session(rng.Uint64()), local^1<<bit)
		yield(remote, local^1<<bit)
	}
}

// forgeries calls yield with headers of every type, with all calls or all flags, and with numbers that would be right.
func forgeries(c *Conn, yield func(protocol.ExtHeader, []byte)) {
	ack := protocol.AppendAck(nil, &protocol.AckInfo{MessageLimit: 1 << 20, EagerLimit: 1 << 30})
	for kind := protocol.SendRequest; kind <= protocol.Error; kind++ {
		for k := range 64 {
			h := protocol.ExtHeader{
				Src: 1, Type: kind, Call: protocol.Call(k % 4), Flags: protocol.ExtFlags(k), Number: c.arrivals.firstMissing,
				Acknowledged: c.path.flight.nextNumber, Message: c.recvs.nextMessage, Length: 8, Clock: clockAt(time.Second),
				Tag: uint32(k % 6),
			}
			var payload []byte
			switch kind {
			case protocol.Ack:
				h.Number, h.Message, h.Call, payload = 0, 0, protocol.RecvInt, ack
			case protocol.Data:
				payload = make([]byte, 8)
			case protocol.ClearToSend:
				h.Message = c.sends.number - 1
			}
			yield(h, payload)
		}
	}
}

func TestForgedPacketsChangeNothing(t *testing.T) {
	for state, prepare := range map[string]func(w *world){
		"before they know each other": func(w *world) {
			w.fault = func(int, int, []byte) []fate { return nil }
			w.nodes[0].send(pattern(100, 1), SendOp{})
		},
		"idle": func(w *world) { exchange(w) },
		"in the middle of messages both ways": func(w *world) {
			exchange(w)
			w.path(func(time.Duration) time.Duration { return time.Millisecond })
			for i, n := range w.nodes {
				w.nodes[1-i].recv(0, 1<<20)
				n.send(pattern(1<<20, uint64(i)), SendOp{})
				n.send(pattern(100, uint64(i)), SendOp{Tag: 5}) // without a receive
				n.send(pattern(100_000, uint64(i)), SendOp{Tag: 6})
			}
		},
	} {
		t.Run(state, func(t *testing.T) {
			w := newWorld(Config{})
			prepare(w)
			w.run(w.now + 10*time.Millisecond)
			n, rng, forged := w.nodes[0], rand.New(rand.NewPCG(1, 2)), 0
			c := n.conn
			before := snapshot(c)
			drops := c.stats.Drops[ReasonSession]
			answers := 0
			forgedSessions(c, rng, func(session, peer protocol.Session) {
				forgeries(c, func(h protocol.ExtHeader, payload []byte) {
					forged++
					h.Session, h.PeerSession = session, peer
					answer, acts := forge(c, w.now, &h, payload)
					if answer {
						answers++
					}
					if acts > 1 {
						t.Fatalf("%v from session %v to %v brings about %d actions", &h, session, peer, acts)
					}
				})
				if after := snapshot(c); after != before {
					t.Fatalf("a packet from session %v to %v (ours are %v and %v) changes\n%s\nto\n%s",
						session, peer, c.session.local, c.session.remote, before, after)
				}
			})
			if got := c.stats.Drops[ReasonSession] - drops; int(got)+answers < forged || forged < 40_000 {
				t.Errorf("of %d forged packets %d were dropped, and %d answered", forged, got, answers)
			}
			if c.stats.Events[SessionChanged]+c.stats.Events[ClosedByPeer] != 0 {
				t.Errorf("events: %v", c.stats.Events)
			}
		})
	}
}

// forge passes a packet to a Conn. It reports whether the Conn would answer the packet, discards that answer, and
// returns the number of actions.
func forge(c *Conn, now Instant, h *protocol.ExtHeader, payload []byte) (answer bool, actions int) {
	acts := c.Packet(now, protocol.AppendExtended(nil, h, payload), nil)
	answer = c.session.answerTo != 0
	c.session.answerTo, c.session.answerClock = 0, 0
	return answer, len(acts)
}

// exchange sends a message in each direction, so that the two ranks know each other's sessions.
func exchange(w *world) {
	for i, n := range w.nodes {
		w.nodes[1-i].recv(9, 8)
		n.send(pattern(8, 3), SendOp{Tag: 9})
	}
	w.run(w.now + 100*time.Millisecond)
}

// The answer of a rank to a forged packet is not used by the rank in whose name it was sent, and is no longer than the
// packet: it has no effect on either side.
func TestAnswersToForgedPacketsChangeNothing(t *testing.T) {
	w := newWorld(Config{})
	exchange(w)
	rng := rand.New(rand.NewPCG(3, 4))
	before := [2]string{snapshot(w.nodes[0].conn), snapshot(w.nodes[1].conn)}
	for range 10 {
		forgeries(w.nodes[0].conn, func(h protocol.ExtHeader, payload []byte) {
			h.Session, h.PeerSession = protocol.Session(rng.Uint64()), protocol.Session(rng.Uint64())
			packet := protocol.AppendExtended(nil, &h, payload)
			sent := w.sent
			w.arrive(1, packet, 0)
			w.run(w.now + time.Second)
			if n := w.sent[0] - sent[0]; n > 1 || w.sent[1] != sent[1] {
				t.Fatalf("%v brings about %d packets of rank 0, and %d of rank 1", &h, n, w.sent[1]-sent[1])
			}
		})
	}
	for i, n := range w.nodes {
		if after := snapshot(n.conn); after != before[i] {
			t.Errorf("rank %d:\n%s\nis now\n%s", i, before[i], after)
		}
	}
	exchange(w)
	for i, n := range w.nodes {
		if st := n.conn.Stats(); st.EagerSends != 2 || st.MessagesArrived != 2 || n.conn.Busy() || st.Retransmissions != 0 {
			t.Errorf("rank %d afterwards: %+v", i, st)
		}
	}
}
