package extended

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// scripted is a Conn of rank 0. The test makes the packets from rank 1.
type scripted struct {
	t    *testing.T
	c    *Conn
	now  Instant
	echo Instant  // send time of the packet that the peer received last, for its ACKs; 0: none
	last []Action // actions of the last event
}

const scriptedSession = 0x51 // session of rank 1

// meet makes the two sessions known to each other.
func meet(t *testing.T, cfg Config) *scripted {
	cfg = sixteen(cfg)
	cfg.Remote, cfg.Seed = 1, 1
	s := &scripted{t: t, c: New(cfg), now: time.Second}
	s.ack(1, 65537, 1<<20)
	s.flush()
	return s
}

// put delivers a packet; h has the fields that differ from the default.
func (s *scripted) put(h protocol.ExtHeader, payload int) *scripted {
	h.Src ^= 1
	if h.Session == 0 {
		h.Session, h.PeerSession = scriptedSession, s.c.session.local
	}
	if h.Acknowledged == 0 {
		h.Acknowledged = s.c.path.flight.base
	}
	s.last = s.c.Packet(s.now, protocol.AppendExtended(nil, &h, make([]byte, payload)), nil)
	if err := s.c.check(); err != nil {
		s.t.Error(err)
	}
	return s
}

func (s *scripted) ack(acknowledged, messages, eager uint32, ranges ...protocol.Range) *scripted {
	return s.ackAfter(0, acknowledged, messages, eager, ranges...)
}

func (s *scripted) ackAfter(delay time.Duration, acknowledged, messages, eager uint32,
	ranges ...protocol.Range) *scripted {
	h := protocol.ExtHeader{Src: 1, Type: protocol.Ack, Call: protocol.RecvInt, Session: scriptedSession,
		PeerSession: s.c.session.local, Acknowledged: acknowledged}
	if s.echo != 0 {
		h.Clock = clockAt(s.echo)
	}
	payload := protocol.AppendAck(nil,
		&protocol.AckInfo{MessageLimit: messages, EagerLimit: eager, Delay: delay, Ranges: ranges})
	s.last = s.c.Packet(s.now, protocol.AppendExtended(nil, &h, payload), nil)
	if err := s.c.check(); err != nil {
		s.t.Error(err)
	}
	return s
}

func (s *scripted) flush() *scripted {
	s.last = s.c.Flush(s.now, nil)
	return s
}

func (s *scripted) send(id ID, n int64) *scripted {
	s.c.Send(s.now, SendOp{ID: id, Length: n}, nil)
	return s.flush()
}

// count returns the number of actions of a kind in the last event.
func (s *scripted) count(kind ActionKind) (n int) {
	for _, a := range s.last {
		if a.Kind == kind {
			n++
		}
	}
	return n
}

// want verifies the drop reason of the last packet, and the number of packets received in total.
func (s *scripted) want(what string, r Reason, arrived uint32) {
	s.t.Helper()
	got := ReasonNone
	for _, a := range s.last {
		if a.Kind == Drop {
			got = a.Reason
		}
	}
	if got != r || s.c.arrivals.firstMissing != arrived+1 {
		s.t.Errorf("%s: dropped as %v, %d were received; want %v, %d", what, got, s.c.arrivals.firstMissing-1, r, arrived)
	}
}

// Headers of the peer's packets.
func request(number, message, length uint32) protocol.ExtHeader {
	return protocol.ExtHeader{Type: protocol.SendRequest, Number: number, Message: message, Length: length}
}

func eager(number, message, offset, length uint32) protocol.ExtHeader {
	return protocol.ExtHeader{
		Type: protocol.Data, Flags: protocol.FlagEager, Number: number, Message: message, Offset: offset,
		Length: length,
	}
}

func plain(number, message, offset, length uint32) protocol.ExtHeader {
	h := eager(number, message, offset, length)
	h.Flags = 0
	return h
}

func cleared(number, message, length uint32) protocol.ExtHeader {
	return protocol.ExtHeader{Type: protocol.ClearToSend, Call: protocol.RecvInt, Number: number, Message: message,
		Length: length}
}

func failed(number, message uint32, call protocol.Call, code protocol.ErrorCode) protocol.ExtHeader {
	return protocol.ExtHeader{Type: protocol.Error, Call: call, Number: number, Message: message, Tag: uint32(code)}
}

func with(h protocol.ExtHeader, change func(*protocol.ExtHeader)) protocol.ExtHeader {
	change(&h)
	return h
}

// headerOf decodes the header of a packet that the Conn under test has sent.
func headerOf(b []byte) protocol.ExtHeader {
	h, _, _ := protocol.ParseExtended(b)
	return h
}
