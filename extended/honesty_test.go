package extended

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Packets that a Conn accepts from a peer, one by one.

func TestMessagesBeyondTheLimits(t *testing.T) {
	s := meet(t, Config{Messages: 1, EagerLimit: 100, EagerBytes: 100})
	s.put(request(1, 1, 9), 0).want("the first message", ReasonNone, 1)
	s.put(request(2, 2, 9), 0).want("one too many", ReasonCredit, 1)
	s.put(eager(2, 2, 0, 1), 1).want("one too many, eager", ReasonCredit, 1)
	s.put(request(3, 3, 9), 0).want("one that would have to wait", ReasonCredit, 1)

	s = meet(t, Config{EagerLimit: 100, EagerBytes: 100})
	s.put(eager(1, 1, 0, 101), 50).want("more bytes at once", ReasonCredit, 0)
	s.put(eager(1, 1, 0, 100), 50).want("as many as may be", ReasonNone, 1)
	s.put(eager(2, 2, 0, 1), 1).want("one more", ReasonCredit, 1)
	s.put(eager(3, 3, 0, 1), 1).want("one more, to be held", ReasonCredit, 1)

	s = meet(t, Config{MaxLength: 100})
	s.put(request(1, 1, 101), 0).want("a message that is too long", ReasonNone, 1)
	if s.count(Open) != 0 {
		t.Error("it was opened")
	}
}

func TestMessagesOutOfOrder(t *testing.T) {
	s := meet(t, Config{})
	s.put(request(1, 2, 9), 0).want("the second message first", ReasonOrder, 0)
	s.put(request(2, 2, 9), 0).want("while a packet is missing", ReasonNone, 0)
	s.put(failed(1, 0, protocol.RecvInt, protocol.CodeCanceled), 0)
	if s.want("the packet is something else", ReasonOrder, 2); s.c.Stats().HeldPackets != 0 {
		t.Error("it is still held")
	}

	// A cancellation waits for its message, and the message for its predecessor.
	s = meet(t, Config{})
	s.put(failed(3, 2, protocol.SendInt, protocol.CodeCancel), 0).want("a cancellation", ReasonNone, 0)
	s.put(request(1, 1, 9), 0).want("the message before", ReasonNone, 1)
	if s.c.Stats().HeldPackets != 1 {
		t.Error("the cancellation is not held any more")
	}
	s.put(request(2, 2, 9), 0).want("the message", ReasonNone, 3)
	if s.flush(); s.count(Lost) != 1 {
		t.Error("the message was not canceled")
	}
	s.put(request(4, 1, 9), 0).want("a message that has begun", ReasonStale, 4)
	s.put(failed(5, 9, protocol.SendInt, protocol.CodeCancel), 0).want("a cancellation of no message", ReasonOrder, 4)
}

func TestDataThatNobodyLacks(t *testing.T) {
	s := meet(t, Config{})
	s.put(plain(1, 1, 0, 9), 9).want("DATA of no message", ReasonUnsolicited, 0)
	s.put(request(1, 1, 9), 0).put(plain(2, 1, 0, 9), 9).want("that was not cleared", ReasonUnsolicited, 1)
	s.put(eager(2, 1, 0, 9), 9).want("eager DATA of one that was announced", ReasonUnsolicited, 1)
	s.put(eager(2, 2, 0, 0), 0).put(eager(3, 2, 0, 0), 0).want("of a complete one", ReasonUnsolicited, 2)
	s.c.Accept(s.now, s.c.recvs.messageID(s.c.recvs.first.number), 5, nil)
	s.flush().put(plain(3, 1, 0, 9), 6).want("more than was cleared", ReasonMismatch, 2)
	s.put(eager(3, 1, 0, 9), 5).want("eager instead", ReasonMismatch, 2)
	s.put(plain(3, 1, 0, 9), 5).want("as much as was cleared", ReasonNone, 3)
	s.put(plain(4, 1, 0, 9), 5).want("again", ReasonUnsolicited, 3)
}

func TestDataThatContradicts(t *testing.T) {
	s := meet(t, Config{})
	s.put(eager(1, 1, 0, 200), 150)
	for what, h := range map[string]protocol.ExtHeader{
		"tag":          with(eager(2, 1, 150, 200), func(h *protocol.ExtHeader) { h.Tag = 1 }),
		"communicator": with(eager(2, 1, 150, 200), func(h *protocol.ExtHeader) { h.Comm = 1 }),
		"datatype":     with(eager(2, 1, 150, 200), func(h *protocol.ExtHeader) { h.Call = protocol.SendFloat }),
		"length":       eager(2, 1, 150, 201),
		"end":          eager(2, 1, 151, 200),
		"overflow":     eager(2, 1, 1<<32-1, 200),
		"not eager":    plain(2, 1, 150, 200),
		"huge tag":     with(eager(2, 1, 150, 200), func(h *protocol.ExtHeader) { h.Tag = 1 << 31 }),
	} {
		s.put(h, 50).want(what, ReasonMismatch, 1)
	}
	s.put(eager(2, 1, 100, 200), 100).want("overlapping", ReasonMismatch, 1)
	s.put(eager(2, 1, 150, 200), 0).want("nothing", ReasonMismatch, 1)
	s.put(request(2, 2, 9), 1).want("SEND_REQUEST with a payload", ReasonMismatch, 1)
	s.put(with(eager(2, 1, 150, 200), func(h *protocol.ExtHeader) { h.Call = protocol.RecvInt }), 50).want("call",
		ReasonDirection, 1)
	s.put(eager(2, 1, 150, 200), 50).want("the rest", ReasonNone, 2)
}

func TestAnswersThatFitNothing(t *testing.T) {
	s := meet(t, Config{EagerLimit: -1}).send(1, 9).send(2, 9)
	s.put(cleared(1, 3, 9), 0).want("CLEAR_TO_SEND of a message to come", ReasonUnsolicited, 0)
	s.put(cleared(1, 1, 10), 0).want("of more than there is", ReasonMismatch, 0)
	s.put(with(cleared(1, 1, 9), func(h *protocol.ExtHeader) { h.Call = protocol.SendInt }), 0).want("call",
		ReasonDirection, 0)
	s.put(cleared(1, 1, 5), 0).want("CLEAR_TO_SEND", ReasonNone, 1)
	s.put(cleared(2, 1, 9), 0).want("again", ReasonStale, 2)
	s.put(failed(3, 2, protocol.RecvInt, protocol.CodeCanceled), 0).want("canceled, unsolicited", ReasonStale, 3)
	s.put(failed(4, 1, protocol.RecvInt, protocol.CodeTooLong), 0).want("too long, when it is cleared", ReasonStale, 4)
	s.put(failed(5, 7, protocol.RecvInt, protocol.CodeTooLong), 0).want("too long, never sent", ReasonUnsolicited, 4)
	s.put(failed(5, 2, protocol.SendInt, protocol.CodeTooLong), 0).want("too long from the sender", ReasonDirection, 4)
	s.put(failed(5, 2, protocol.RecvInt, protocol.CodeCancel), 0).want("cancel from the receiver", ReasonDirection, 4)
	s.put(failed(5, 2, protocol.RecvInt, 9), 0).want("an unknown code", ReasonCode, 4)
	if s.flush(); s.count(Transmit) != 1 || s.last[0].Length != 5 {
		t.Errorf("sent %+v", s.last)
	}
}

func TestNumbersAndSessions(t *testing.T) {
	s := meet(t, Config{})
	s.put(request(maxWindow+1, 1, 9), 0).want("beyond the window", ReasonWindow, 0)
	s.put(request(maxWindow, 1, 9), 0).want("the last of the window", ReasonNone, 0)
	s.put(request(maxWindow, 1, 9), 0).want("again", ReasonDuplicate, 0)
	s.put(request(0, 1, 9), 0).want("before the first", ReasonDuplicate, 0)
	s.put(with(request(1, 1, 9), func(h *protocol.ExtHeader) { h.Src = 3 }), 0).want("source", ReasonSourceRank, 0)
	s.put(with(request(1, 1, 9), func(h *protocol.ExtHeader) { h.Dst = 2 }), 0).want("destination", ReasonDestination,
		0)
	s.put(with(request(1, 1, 9), func(h *protocol.ExtHeader) { h.Session, h.PeerSession = scriptedSession, 9 }),
		0).want("peer session", ReasonSession, 0)
	s.put(with(request(1, 1, 9), func(h *protocol.ExtHeader) { h.Acknowledged = 2 }), 0).want("acknowledged",
		ReasonAcknowledged, 0)
	if s.last = s.c.Packet(s.now, make([]byte, 71), nil); true {
		s.want("short", ReasonShort, 0)
	}

	s.send(1, 1)
	s.ack(1, 65537, 1<<20, protocol.Range{First: 2, End: 3}).want("a range that was never sent", ReasonAcknowledged,
		0)
	if s.c.path.flight.outstanding() != 1 {
		t.Error("the packet is not in flight any more")
	}
	s.ack(1, 5, 10)
	if st := s.c.Stats(); st.MessageCredit != 65535 || st.EagerCredit != 1<<20-1 {
		t.Errorf("an old ACK has shrunk the credit to %d and %d", st.MessageCredit, st.EagerCredit)
	}
}

// A message accepted while it is being received is not written beyond the receive buffer (E14).
func TestNoCopyBeyondTheBuffer(t *testing.T) {
	s := meet(t, Config{})
	s.put(eager(1, 1, 0, 300), 100)
	s.c.Accept(s.now, s.c.recvs.messageID(s.c.recvs.first.number), 150, nil)
	if s.put(eager(2, 1, 100, 300), 100); s.count(Copy) != 1 || s.last[0].Offset != 100 ||
		len(s.last[0].Payload) != 50 {
		t.Errorf("%+v", s.last)
	}
	if s.put(eager(3, 1, 200, 300), 100); s.count(Copy) != 0 || s.count(Arrived) != 1 {
		t.Errorf("%+v", s.last)
	}
}

// Numbers of open messages remain comparable, however many others begin and end (E4).
func TestMessageLimitStaysNear(t *testing.T) {
	s := meet(t, Config{})
	s.put(request(1, 1, 9), 0)
	s.c.recvs.matched = 1<<30 + 1000
	if limit, _ := s.c.recvs.limits(); limit != 1+1<<30 {
		t.Errorf("the limit is %d", limit)
	}
}

// Packets received one by one are acknowledged after 16 (E26).
func TestEverySixteenthIsAcknowledged(t *testing.T) {
	s := meet(t, Config{})
	for n := uint32(1); n <= 48; n++ {
		if s.put(eager(n, n, 0, 1), 1).flush(); s.count(TransmitAck) != 0 != (n%16 == 0) {
			t.Errorf("packet %d: %d ACKs", n, s.count(TransmitAck))
		}
	}
}

// A cancellation of a message that never began is not held forever.
func TestCancelWithoutMessage(t *testing.T) {
	s := meet(t, Config{})
	s.put(failed(2, 2, protocol.SendInt, protocol.CodeCancel), 0).want("a cancellation", ReasonNone, 0)
	s.put(request(1, 1, 9), 0).want("all that came before it", ReasonOrder, 2)
	if s.c.Stats().HeldPackets != 0 {
		t.Error("it is still held")
	}
}

// Gaps are reported at once, whatever other packets are sent, as long as there are any (E26).
func TestGapsAreReported(t *testing.T) {
	s := meet(t, Config{})
	s.put(eager(1, 1, 0, 1), 1).flush()
	s.put(eager(3, 3, 0, 1), 1)
	if s.send(1, 1); s.count(Transmit) != 1 || s.count(TransmitAck) != 1 {
		t.Errorf("with a packet: %+v", s.last)
	}
	if s.put(eager(4, 4, 0, 1), 1).flush(); s.count(TransmitAck) != 1 {
		t.Errorf("the next one: %+v", s.last)
	}
	s.put(eager(2, 2, 0, 1), 1)
	if s.send(2, 1); s.count(Transmit) != 1 || s.count(TransmitAck) != 0 || s.last[1].Header.Acknowledged != 5 {
		t.Errorf("when it is closed: %+v", s.last)
	}
}

// An answer to a wrong session is not answered, nor is more than one packet of a batch (E6).
func TestAnswersAreNotAnswered(t *testing.T) {
	for _, x := range []struct {
		what  string
		h     protocol.ExtHeader
		count int
	}{
		{"DATA", eager(1, 1, 0, 1), 1},
		{"HELLO", protocol.ExtHeader{Type: protocol.Ack, Call: protocol.RecvInt, Flags: protocol.FlagHello}, 1},
		{"an answer", protocol.ExtHeader{Type: protocol.Ack, Call: protocol.RecvInt}, 0},
	} {
		for _, session := range []protocol.Session{7, scriptedSession} {
			s := meet(t, Config{})
			x.h.Session, x.h.PeerSession = session, 9
			s.put(x.h, 0).put(x.h, 0).put(x.h, 0)
			if s.flush(); s.count(TransmitAck) != x.count {
				t.Errorf("%s from session %d: %d answers, want %d", x.what, session, s.count(TransmitAck), x.count)
			}
			if x.count == 1 && s.last[0].Header.PeerSession != session {
				t.Errorf("%s from session %d: the answer names %d", x.what, session, s.last[0].Header.PeerSession)
			}
		}
	}
}
