package extended

import (
	"math"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// The round trip is measured without the receiver's delay, and not on packets that were sent twice (E30).
func TestRoundTrip(t *testing.T) {
	s := meet(t, Config{})
	s.send(1, 1)
	s.now += 10 * time.Millisecond
	s.ackAfter(9*time.Millisecond, 2, 65537, 1<<20)
	if got := s.c.Stats(); got.RoundTrip != time.Millisecond || got.Variation != time.Millisecond/2 {
		t.Errorf("measured %v ± %v", got.RoundTrip, got.Variation)
	}
	s.send(2, 1)
	s.now += time.Second
	s.c.Tick(s.now, nil)
	s.flush()
	timeout := s.c.Stats().Timeout
	s.now += 300 * time.Microsecond
	s.ack(3, 65537, 1<<20)
	if got := s.c.Stats(); got.RoundTrip != time.Millisecond || got.Timeout != timeout {
		t.Errorf("a retransmitted packet was measured: %v, timeout %v after %v", got.RoundTrip, got.Timeout, timeout)
	}
}

// An acknowledgement after a timeout counts for the transmission whose clock it has. If that is the first one, the
// timeout was spurious: it shows nothing about packets sent in between, the window is unchanged, and the round trip is
// measured anew. If it is the retransmission, earlier packets are lost as well (E29, E30).
func TestWhichTransmissionArrived(t *testing.T) {
	const first, again, before = 0, 1, 2
	const trip = 100 * time.Microsecond
	for _, x := range []struct {
		what           string
		echo           int
		lost, spurious int
		window         int
		trip           time.Duration
	}{
		{"the first", first, 0, 1, 16, 24 * time.Millisecond},
		{"the retransmission", again, 3, 0, 11, trip + (2*time.Millisecond-trip)/8},
		{"it is not said", before, 0, 0, 16, trip},
	} {
		s := meet(t, Config{})
		s.send(1, 1)
		s.now += trip
		s.ack(2, 65537, 1<<20)
		sent := [3]Instant{first: s.now}
		s.send(2, 1)
		s.now += 2 * time.Millisecond
		s.send(3, 1).send(4, 1).send(5, 1)
		s.now += 20 * time.Millisecond
		s.c.Tick(s.now, nil)
		s.flush()
		sent[again] = s.now
		s.now += 2 * time.Millisecond
		s.echo = sent[x.echo]
		s.ack(3, 65537, 1<<20)
		got := s.c.Stats()
		if got.ToRetransmit != x.lost || got.Timeouts != 1 || got.Events[Spurious] != uint64(x.spurious) ||
			got.Window != x.window {
			t.Errorf("%s: %d packets are declared lost, %d of %d timeouts were spurious, the window is %d",
				x.what, got.ToRetransmit, got.Events[Spurious], got.Timeouts, got.Window)
		}
		if (got.RoundTrip - x.trip).Abs() > 3*time.Microsecond {
			t.Errorf("%s: the round trip is %v, want %v", x.what, got.RoundTrip, x.trip)
		}
	}
}

// A program that was stopped for longer than deadlines.ack asks first, and only then declares the peer unreachable
// (E31, E33).
func TestHeldUpProgramAsksFirst(t *testing.T) {
	for name, begin := range map[string]func(s *scripted){
		"timeouts": func(s *scripted) { s.send(1, 1) },
		"HELLO": func(s *scripted) {
			s.send(1, 1<<20)
			s.ack(2, 65537, 1<<20).flush()
		},
	} {
		s := meet(t, Config{})
		s.echo = s.now - time.Millisecond
		s.ack(1, 65537, 1<<20).flush() // the round trip is known
		begin(s)
		s.now += time.Hour
		for round := range 4 {
			var acts []Action
			acts = s.c.Tick(s.now, acts)
			acts = s.c.Flush(s.now, acts)
			asked, declaredUnreachable := 0, 0
			for _, a := range acts {
				if a.Kind == Transmit || a.Kind == TransmitAck && a.Header.Flags&protocol.FlagHello != 0 {
					asked++
				}
				if a.Kind == Note && a.Event == Unreachable {
					declaredUnreachable++
				}
			}
			if want := round == 3; declaredUnreachable > 0 != want || asked > 0 == want {
				t.Errorf("%s: round %d: %d packets, peer declared unreachable %d times", name, round, asked,
					declaredUnreachable)
			}
			at, ok := s.c.Deadline()
			if ok != (round < 3) || ok && at <= s.now {
				t.Errorf("%s: round %d: deadline %v %v", name, round, at, ok)
			}
			s.now = at
		}
	}
}

// Configured deadlines apply, however odd.
func TestConfigIsCompleted(t *testing.T) {
	odd := Config{
		MaxPayload: -1, EagerLimit: -5, MaxLength: 1 << 40, Messages: math.MaxInt, EagerBytes: -1, Window: 100000,
		Timing: Timing{InitialRTO: -1, MinRTO: time.Second, MaxRTO: time.Millisecond, UnreachableAfter: -1},
	}
	got := New(odd).Config()
	want := Config{
		MaxPayload: 1, EagerLimit: -1, MaxLength: 1<<32 - 1, Messages: maxMessages, EagerBytes: 0, Window: maxWindow,
		WindowBytes: 4 << 20,
		Timing: Timing{
			InitialRTO: time.Microsecond, MinRTO: time.Second, MaxRTO: time.Second, AckDelay: time.Millisecond,
			HelloFirst: 20 * time.Millisecond, HelloMax: time.Second,
		},
		firstPacket: 1, firstMessage: 1,
	}
	if got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if got := New(Config{}).Config(); got.Timing != DefaultTiming(false) || got.MaxPayload != 1336 ||
		got.EagerLimit != 65536 ||
		got.Messages != 65536 || got.EagerBytes != 1<<20 || got.Window != maxWindow || got.WindowBytes != 4<<20 ||
		got.HeaderChecksum || got.MaxLength != 1<<32-1 {
		t.Errorf("the defaults are %+v", got)
	}
}

// Invalid sends end at once.
func TestInvalidSends(t *testing.T) {
	s := meet(t, Config{})
	for name, op := range map[string]SendOp{
		"length": {ID: 1, Length: 1 << 32}, "negative": {ID: 1, Length: -1}, "tag": {ID: 1, Tag: 1 << 31},
	} {
		if s.last = s.c.Send(s.now, op, nil); len(s.last) != 1 || s.last[0].Kind != SendDone ||
			s.last[0].Err != ErrInvalid {
			t.Errorf("%s: %+v", name, s.last)
		}
	}
	if s.c.Busy() {
		t.Error("busy")
	}
	s.send(1, 1)
	if s.last = s.c.Send(s.now, SendOp{ID: 1}, nil); len(s.last) != 1 || s.last[0].Err != ErrInvalid ||
		s.c.check() != nil {
		t.Errorf("an ID twice: %+v", s.last)
	}
}
