package extended

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// E47: cleared DATA is sent in long packets that do not count as bytes in flight, even if one of them is retransmitted;
// eager DATA is sent as usual.
func TestSetFetchPayload(t *testing.T) {
	const size, long = 10_000_000, 200_000
	w := newWorld(Config{MaxPayload: 1000, WindowBytes: 3000, EagerLimit: 20_000})
	w.nodes[0].conn.SetFetchPayload(long)
	longest, eager, lost := 0, 0, 0
	w.fault = func(from, _ int, b []byte) []fate {
		h, payload, d := protocol.ParseExtended(b)
		if !d.OK() || from != 0 || h.Type != protocol.Data {
			return onTime
		}
		if h.Flags&protocol.FlagEager != 0 {
			eager = max(eager, len(payload))
			return onTime
		}
		longest = max(longest, len(payload))
		if n := w.nodes[0].conn.path.flight.bytes; n != 0 {
			t.Errorf("%d bytes are in flight", n)
		}
		if lost++; lost == 7 {
			return nil
		}
		return onTime
	}
	for i, n := range []int{size, 20_000} {
		r := w.nodes[1].recv(uint32(i), int64(n))
		s := w.nodes[0].send(pattern(n, 1), SendOp{Tag: uint32(i)})
		w.run(time.Minute)
		if err := w.err(); err != nil {
			t.Fatal(err)
		}
		if !s.done || s.err != nil || intact(r, s.data) != nil {
			t.Fatalf("done %v, %v, %v", s.done, s.err, intact(r, s.data))
		}
	}
	if st := w.nodes[0].conn.Stats(); longest != long || eager != 1000 || st.Retransmissions == 0 {
		t.Errorf("%d bytes in a packet, %d in an eager one, %d retransmissions", longest, eager, st.Retransmissions)
	}
	if w.nodes[0].conn.SetFetchPayload(-1); w.nodes[0].conn.path.fetchPayload != 0 {
		t.Error("there are packets of less than nothing")
	}
}

// PayloadTarget returns the destination of the payload of a packet that will be accepted, and of no other packet.
func TestPayloadTarget(t *testing.T) {
	s := meet(t, Config{})
	s.put(request(1, 1, 5000), 0)
	var message Message
	for _, a := range s.last {
		if a.Kind == Open {
			message = a.Message
		}
	}
	good := func(change func(*protocol.ExtHeader)) []byte {
		h := plain(2, 1, 1000, 5000)
		h.Src ^= 1
		h.Session, h.PeerSession, h.Acknowledged = scriptedSession, s.c.session.local, s.c.path.flight.base
		change(&h)
		return protocol.AppendExtended(nil, &h, make([]byte, 3000))[:protocol.ExtHeaderLen]
	}
	as := func(*protocol.ExtHeader) {}
	if _, _, ok := s.c.PayloadTarget(good(as), 3000); ok {
		t.Error("DATA of a message that was not cleared is expected")
	}
	s.c.Accept(s.now, message, 4500, nil)
	s.flush()
	if m, offset, ok := s.c.PayloadTarget(good(as), 3000); !ok || m != message || offset != 1000 {
		t.Errorf("message %d from %d on: %v; want %d", m, offset, ok, message)
	}
	for name, change := range map[string]func(*protocol.ExtHeader){
		"source":       func(h *protocol.ExtHeader) { h.Src = 7 },
		"destination":  func(h *protocol.ExtHeader) { h.Dst = 7 },
		"session":      func(h *protocol.ExtHeader) { h.Session++ },
		"peer session": func(h *protocol.ExtHeader) { h.PeerSession++ },
		"acknowledged": func(h *protocol.ExtHeader) { h.Acknowledged = s.c.path.flight.nextNumber + 1 },
		"type":         func(h *protocol.ExtHeader) { h.Type = protocol.SendRequest },
		"eager":        func(h *protocol.ExtHeader) { h.Flags |= protocol.FlagEager },
		"direction":    func(h *protocol.ExtHeader) { h.Call = h.Call.Counterpart() },
		"duplicate":    func(h *protocol.ExtHeader) { h.Number = 1 },
		"far ahead":    func(h *protocol.ExtHeader) { h.Number = 2 + maxWindow },
		"message":      func(h *protocol.ExtHeader) { h.Message = 2 },
		"communicator": func(h *protocol.ExtHeader) { h.Comm++ },
		"length":       func(h *protocol.ExtHeader) { h.Length-- },
		"the end":      func(h *protocol.ExtHeader) { h.Offset = 1501 },
	} {
		if _, _, ok := s.c.PayloadTarget(good(change), 3000); ok {
			t.Errorf("%s: it is expected", name)
		}
	}
	for n, b := range map[int][]byte{2999: good(as), 3000: good(as)[1:], 0: nil} {
		if _, _, ok := s.c.PayloadTarget(b, n); ok {
			t.Errorf("%d bytes behind %d are expected", n, len(b))
		}
	}
	if err := s.c.check(); err != nil {
		t.Error(err)
	}
	s.put(plain(2, 1, 0, 5000), 3000)
	if _, _, ok := s.c.PayloadTarget(good(func(h *protocol.ExtHeader) { h.Number = 3 }), 3000); ok {
		t.Error("more is expected than was asked for")
	}
}
