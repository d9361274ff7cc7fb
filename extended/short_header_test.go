package extended

import (
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// shortEnds are two Conns that know each other's sessions, and share memory.
type shortEnds struct {
	t    *testing.T
	now  Instant
	c    [2]*Conn
	wire [2][]memoryPacket // packets in transit to each
	kept [2][]Action       // Kept and SendDone actions
	open []Message         // at the second Conn
}

// memoryPacket is a packet as the engine transmits it: with a short header where possible (E52).
type memoryPacket struct {
	whole   []byte
	short   protocol.ShortHeader
	payload []byte
}

func newShortEnds(t *testing.T, cfg Config) *shortEnds {
	t.Helper()
	w := &shortEnds{t: t, now: time.Second}
	cfg.Reliable, cfg.HeaderChecksum, cfg.ShortHeaders = true, true, true
	for i := range w.c {
		cfg.Local, cfg.Remote, cfg.Seed = uint32(i), uint32(1-i), uint64(i+1)
		w.c[i] = New(cfg)
	}
	w.do(0, w.c[0].Send(w.now, SendOp{ID: 1, Length: 4}, nil))
	w.deliver()
	for range 3 {
		w.accept()
	}
	if len(w.open) > 0 || w.c[0].Busy() {
		t.Fatal("the first message is still in progress")
	}
	if n := w.c[0].Stats().Retransmissions; n > 0 {
		t.Fatalf("the first message took %d retransmissions: its short header came before the session", n)
	}
	return w
}

// do executes actions.
func (w *shortEnds) do(i int, acts []Action) {
	for _, a := range acts {
		switch a.Kind {
		case Transmit, TransmitAck:
			payload := a.Payload
			if a.Kind == Transmit {
				payload = make([]byte, a.Length)
			}
			h, p := &a.Header, memoryPacket{payload: payload}
			if h.Type == protocol.Data && h.Flags&^protocol.FlagPlain == protocol.FlagEager {
				p.short = protocol.ShortHeader{
					SessionDigest: protocol.SessionDigest(h.Session, h.PeerSession), Number: h.Number,
					Acknowledged: h.Acknowledged,
					Message:      h.Message, Comm: h.Comm, Tag: h.Tag, Datatype: h.Call.Datatype(),
				}
			} else {
				p.whole = protocol.AppendExtended(nil, h, payload)
			}
			w.wire[1-i] = append(w.wire[1-i], p)
		case Kept, SendDone:
			w.kept[i] = append(w.kept[i], a)
		case Open:
			w.open = append(w.open, a.Message)
		}
	}
	if err := w.c[i].check(); err != nil {
		w.t.Error(err)
	}
}

// deliver delivers the packets in transit until none is left.
func (w *shortEnds) deliver() {
	for again := true; again; {
		for i, c := range w.c {
			w.do(i, c.Flush(w.now, nil))
			for _, p := range w.wire[i] {
				if p.whole == nil {
					w.do(i, c.PacketShort(w.now, &p.short, p.payload, nil))
				} else {
					w.do(i, c.Packet(w.now, p.whole, nil))
				}
			}
			w.wire[i] = nil
			w.do(i, c.Flush(w.now, nil))
		}
		again = len(w.wire[0])+len(w.wire[1]) > 0
	}
}

// accept matches the messages opened at the second Conn with receives.
func (w *shortEnds) accept() {
	for _, m := range w.open {
		w.do(1, w.c[1].Accept(w.now, m, 100, nil))
	}
	w.open = nil
	for range 3 {
		w.now += 2 * time.Millisecond
		for i, c := range w.c {
			w.do(i, c.Tick(w.now, nil))
		}
		w.deliver()
	}
}

// send sends a message with a short header, and returns the header.
func (w *shortEnds) send(from int) protocol.ShortHeader {
	w.t.Helper()
	var h protocol.ShortHeader
	op := SendOp{Length: 4, Comm: 3, Tag: 5}
	if !w.c[from].PrepareShort(&op, &h) {
		w.t.Fatal("there is no short header for it")
	}
	w.c[from].SentShort(&op)
	if err := w.c[from].check(); err != nil {
		w.t.Error(err)
	}
	return h
}

// receive matches a message with a short header with a receive.
func (w *shortEnds) receive(at int, h protocol.ShortHeader) {
	w.t.Helper()
	if !w.c[at].ExpectsShort(&h, 4) {
		w.t.Fatalf("%+v is not expected", h)
	}
	if w.c[at].ReceivedShort(w.now, &h, 4) {
		w.deliver()
	}
}

// shorts returns the number of unacknowledged messages with short headers.
func (w *shortEnds) shorts(at int) int {
	messages, bytes := w.c[at].ShortsInFlight()
	if bytes != 4*messages {
		w.t.Errorf("%d messages have %d bytes", messages, bytes)
	}
	return messages
}

// TestShort: messages with short headers acknowledge each other, and count like others.
func TestShort(t *testing.T) {
	w := newShortEnds(t, Config{})
	for range 1000 {
		w.receive(1, w.send(0))
		w.receive(0, w.send(1))
	}
	if a, b := w.shorts(0), w.shorts(1); a != 0 || b != 1 {
		t.Errorf("%d and %d are not acknowledged", a, b)
	}
	for i, c := range w.c {
		if st := c.Stats(); st.EagerSends != uint64(1001-i) || st.MessagesArrived != uint64(1000+i) ||
			st.Retransmissions > 0 {
			t.Errorf("%d: %+v", i, st)
		}
	}
	w.now += 2 * time.Millisecond
	w.do(0, w.c[0].Tick(w.now, nil))
	w.deliver()
	if w.c[1].Busy() || w.shorts(1) != 0 {
		t.Error("the last one was not acknowledged after AckDelay")
	}
}

// TestShortOneWay: a sender that only sends gets one ACK per 64 messages, and none of its messages becomes an ordinary
// one.
func TestShortOneWay(t *testing.T) {
	w := newShortEnds(t, Config{})
	for range 10_000 {
		w.receive(1, w.send(0))
		if n := w.shorts(0); n > ackEveryShort {
			t.Fatalf("%d are not acknowledged", n)
		}
	}
	if len(w.kept[0]) != 1 { // SendDone of the first message
		t.Errorf("%+v", w.kept[0])
	}
}

// TestShortReconnected: messages that are unacknowledged when a link breaks are retransmitted with whole headers, in
// order, and messages already received are not received twice.
func TestShortReconnected(t *testing.T) {
	w := newShortEnds(t, Config{})
	var sent []protocol.ShortHeader
	for range 5 {
		sent = append(sent, w.send(0))
	}
	w.receive(1, sent[0])
	w.receive(1, sent[1]) // all others are lost
	for i, c := range w.c {
		w.do(i, c.Reconnected(w.now, nil))
	}
	for i, kept := range w.kept[0][1:] {
		if i >= 5 || kept.Kind != Kept || kept.ID != w.kept[0][1].ID+ID(i) || kept.Length != 4 ||
			kept.Offset != int64(4*(5-i)) {
			t.Errorf("%d: %+v", i, kept)
		}
	}
	w.deliver()
	if len(w.open) != 3 {
		t.Errorf("%d messages were received", len(w.open))
	}
	w.accept()
	if w.c[0].Busy() || w.c[1].Stats().MessagesArrived != 6 || len(w.kept[0]) != 11 {
		t.Errorf("%+v, %+v", w.c[1].Stats(), w.kept[0])
	}
	w.receive(1, w.send(0))
}

// TestShortAndOthers: an announced message between messages with short headers is received in order.
func TestShortAndOthers(t *testing.T) {
	w := newShortEnds(t, Config{EagerLimit: 100})
	w.receive(1, w.send(0))
	w.do(0, w.c[0].Send(w.now, SendOp{ID: 2, Length: 101}, nil))
	w.deliver()
	if len(w.open) != 1 {
		t.Fatalf("%d messages were announced", len(w.open))
	}
	w.receive(1, w.send(0))
	w.accept()
	if w.c[0].Busy() {
		t.Error("it is not done")
	}
}

// TestShortUnexpected: a packet with a short header that is not the next one, or not of the session, is treated like a
// packet with a whole header.
func TestShortUnexpected(t *testing.T) {
	w := newShortEnds(t, Config{})
	first, second := w.send(0), w.send(0)
	if w.c[1].ExpectsShort(&second, 4) {
		t.Error("the second is expected first")
	}
	w.do(1, w.c[1].PacketShort(w.now, &second, make([]byte, 4), nil))
	w.do(1, w.c[1].PacketShort(w.now, &first, make([]byte, 4), nil))
	if len(w.open) != 2 {
		t.Errorf("%d messages", len(w.open))
	}
	w.do(1, w.c[1].PacketShort(w.now, &first, make([]byte, 4), nil))
	third := w.send(0)
	third.SessionDigest++
	if w.c[1].ExpectsShort(&third, 4) {
		t.Error("one of another session is expected")
	}
	w.do(1, w.c[1].PacketShort(w.now, &third, make([]byte, 4), nil))
	if d := w.c[1].Stats().Drops; d[ReasonDuplicate] != 1 || d[ReasonSession] != 1 {
		t.Errorf("drops: %v", d)
	}
	later := w.send(0)
	later.Acknowledged += 100
	if w.c[1].ExpectsShort(&later, 4) {
		t.Error("a packet that acknowledges an unsent one is expected")
	}
}

// TestShortLimits: without credit or window there is no short header.
func TestShortLimits(t *testing.T) {
	for name, cfg := range map[string]Config{
		"messages": {Messages: 10}, "bytes": {EagerBytes: 100, EagerLimit: 100}, "window": {Window: 8},
		"in flight": {WindowBytes: 1500},
	} {
		w := newShortEnds(t, cfg)
		var h protocol.ShortHeader
		op, n := SendOp{Length: 4}, 0
		for ; n < 1000 && w.c[0].PrepareShort(&op, &h); n++ {
			w.send(0)
		}
		if n == 0 || n > 100 {
			t.Errorf("%s: %d were sent", name, n)
		}
	}
}

// TestShortProcessEnded: messages that the peer may lack are reported when its process exits, and when it is silent.
func TestShortProcessEnded(t *testing.T) {
	for _, silent := range []bool{false, true} {
		w := newShortEnds(t, Config{})
		w.send(0)
		w.send(0)
		if silent {
			for range 100 {
				w.now += time.Second
				w.do(0, w.c[0].Tick(w.now, nil))
				w.do(0, w.c[0].Flush(w.now, nil))
			}
		} else {
			w.do(0, w.c[0].ProcessEnded(w.now, nil))
		}
		kept := w.kept[0][1:]
		if len(kept) != 4 || kept[0].Kind != Kept || kept[1].Kind != Kept {
			t.Fatalf("silent %v: %+v", silent, kept)
		}
		for i, a := range kept[2:] {
			if a.ID != kept[0].ID+ID(i) || !errors.Is(a.Err, ErrSession) && !errors.Is(a.Err, ErrTimeout) {
				t.Errorf("silent %v: %+v", silent, a)
			}
		}
		if w.shorts(0) != 0 || w.c[0].Busy() {
			t.Errorf("silent %v: something is left", silent)
		}
	}
}

// TestShortReport: EachSend and Stats include unacknowledged messages.
func TestShortReport(t *testing.T) {
	w := newShortEnds(t, Config{})
	w.send(0)
	n := 0
	w.c[0].EachSend(func(s SendState) bool {
		n++
		return s.Length == 4 && s.Tag == 5 && s.Comm == 3 && s.State == Eager
	})
	if st := w.c[0].Stats(); n != 1 || st.InFlight != 1 || st.Begun != 1 {
		t.Errorf("%d: %+v", n, st)
	}
}
