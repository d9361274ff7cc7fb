package extended

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// always is a fetch function: every announcement advertises its message, and every fetch succeeds.
func always() bool { return true }

// E48: a fetched message needs only its announcement and an answer that asks for no DATA. This holds for a receive
// posted before or after the announcement, of the same size or smaller.
func TestAcceptFetched(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, room := range []int64{5000, 6000, 10, 0} {
			w := newWorld(Config{EagerLimit: -1})
			w.fetch = always
			packets := map[protocol.Type]int{}
			w.fault = func(_, _ int, b []byte) []fate {
				h, _, _ := protocol.ParseExtended(b)
				packets[h.Type]++
				if h.Type == protocol.ClearToSend && h.Length != 0 {
					t.Errorf("%d bytes are asked for", h.Length)
				}
				return onTime
			}
			var r *simRecv
			post := func() { r = w.nodes[1].recv(1, room) }
			if !late {
				post()
			}
			s := w.nodes[0].send(pattern(5000, 3), SendOp{Tag: 1})
			w.run(time.Second)
			if late {
				if s.done {
					t.Error("it is done before a receive has matched")
				}
				post()
			}
			w.run(time.Minute)
			if err := w.err(); err != nil {
				t.Fatal(err)
			}
			if !s.done || s.err != nil || intact(r, s.data) != nil || quiet(w.nodes[1]) != nil {
				t.Errorf("late: %v, capacity %d: done: %v, %v, %v, %v", late, room, s.done, s.err, intact(r, s.data),
					quiet(w.nodes[1]))
			}
			if packets[protocol.SendRequest] != 1 || packets[protocol.ClearToSend] != 1 || packets[protocol.Data] != 0 {
				t.Errorf("late: %v, capacity %d: %v", late, room, packets)
			}
		}
	}
}

// A canceled message is not fetched, and a fetched one is not canceled.
func TestFetchedOrCanceled(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(Config{EagerLimit: -1})
		w.fetch = always
		s := w.nodes[0].send(pattern(5000, 3), SendOp{Tag: 1})
		w.run(time.Second)
		var r *simRecv
		if !late {
			r = w.nodes[1].recv(1, 5000)
		}
		if how := w.nodes[0].cancel(s.op.ID); how != CancelRequested {
			t.Fatalf("the cancellation is %v", how)
		}
		w.run(time.Minute)
		if late {
			r = w.nodes[1].recv(1, 5000)
			w.run(2 * time.Minute)
		}
		if !s.done || (s.err != nil) != late || r.done() == late || w.err() != nil {
			t.Errorf("late: %v: %v, %v; the receive is done: %v; %v", late, s.done, s.err, r.done(), w.err())
		}
		if !late && intact(r, s.data) != nil {
			t.Error(intact(r, s.data))
		}
	}
}

// A message is opened as advertised only if its packet announces it, is the next one, and was not received before. An
// advertised packet has no effect on how the next packet is handled.
func TestAdvertised(t *testing.T) {
	s := meet(t, Config{})
	put := func(h protocol.ExtHeader, payload int, advertised bool) (opened []bool) {
		h.Src ^= 1
		h.Session, h.PeerSession, h.Acknowledged = scriptedSession, s.c.session.local, s.c.path.flight.base
		b := protocol.AppendExtended(nil, &h, make([]byte, payload))
		var acts []Action
		if advertised {
			acts = s.c.PacketAdvertised(s.now, b, nil)
		} else {
			acts = s.c.Packet(s.now, b, nil)
		}
		for _, a := range acts {
			if a.Kind == Open {
				opened = append(opened, a.Advertised)
			}
		}
		return opened
	}
	for i, tt := range []struct {
		h          protocol.ExtHeader
		payload    int
		advertised bool
		opened     []bool
	}{
		{request(1, 1, 5000), 0, true, []bool{true}},
		{request(1, 1, 5000), 0, true, nil},
		{request(2, 2, 5000), 0, false, []bool{false}},
		{request(4, 4, 5000), 0, true, nil},
		{request(3, 3, 5000), 0, true, []bool{true, false}}, // the one that was held is released
		{eager(5, 5, 0, 100), 100, true, []bool{false}},
		{request(6, 6, 5000), 0, false, []bool{false}},
	} {
		got := put(tt.h, tt.payload, tt.advertised)
		if len(got) != len(tt.opened) {
			t.Fatalf("%d: %v, want %v", i, got, tt.opened)
		}
		for k := range got {
			if got[k] != tt.opened[k] {
				t.Errorf("%d: %v, want %v", i, got, tt.opened)
			}
		}
	}
	if acts := s.c.AcceptFetched(s.now, 1<<40, 10, nil); len(acts) != 0 {
		t.Errorf("a message that is no more: %v", acts)
	}
}

// Every Transmit of an announcement names its message, retransmissions included.
func TestAnnouncementsNameTheirMessage(t *testing.T) {
	c := newCouple(Config{EagerLimit: -1})
	c.send(0, 1, 8, 0)
	c.deliverAll()
	c.send(0, 77, 5000, 0)
	named := 0
	for range 3 {
		c.acts[0] = c.conns[0].Flush(c.now, c.acts[0])
		for i := range c.acts[0] {
			if a := &c.acts[0][i]; a.Kind == Transmit && a.Header.Type == protocol.SendRequest {
				if a.ID != 77 || a.Length != 0 || a.Offset != 0 {
					t.Errorf("message %d, %d bytes from %d on", a.ID, a.Length, a.Offset)
				}
				named++
			}
		}
		c.acts[0] = c.acts[0][:0]
		at, ok := c.conns[0].Deadline()
		if !ok {
			t.Fatal("it is not retransmitted")
		}
		c.now = max(c.now, at)
		c.acts[0] = c.conns[0].Tick(c.now, c.acts[0])
	}
	if named < 3 {
		t.Errorf("it was announced %d times", named)
	}
}
