package handshake_test

import (
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// exchange passes packets to a Pair, and holds the resulting actions.
type exchange struct {
	*handshake.Pair
	t    *testing.T
	now  handshake.Instant
	acts []handshake.Action
}

func newExchange(t *testing.T, rules handshake.PeerRules, change func(*handshake.Timing)) *exchange {
	timing := handshake.DefaultTiming(rules)
	if change != nil {
		change(&timing)
	}
	return &exchange{t: t, Pair: handshake.New(handshake.Config{
		Remote: 1, Peer: rules, Shape: protocol.CPUShape(), Timing: timing, MaxWords: 1 << 20,
	})}
}

func (s *exchange) send(id handshake.ID) {
	s.t.Helper()
	acts, err := s.Send(s.now, handshake.SendOp{ID: id, Words: 1}, nil)
	if s.acts = acts; err != nil {
		s.t.Fatal(err)
	}
}

func (s *exchange) recv(id handshake.ID) {
	s.t.Helper()
	acts, err := s.Recv(s.now, handshake.RecvOp{ID: id, Words: 1}, nil)
	if s.acts = acts; err != nil {
		s.t.Fatal(err)
	}
}

func (s *exchange) gets(t protocol.Type, call protocol.Call, size uint32, payload ...byte) {
	b := protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Size: size, Type: t, Call: call})
	s.acts = s.Datagram(s.now, append(b, payload...), nil)
}

// does checks the actions: packets by their text, others by their kind.
func (s *exchange) does(want ...string) {
	s.t.Helper()
	var got []string
	for _, a := range s.acts {
		switch a.Kind {
		case handshake.Transmit, handshake.TransmitData:
			got = append(got, a.Header.String())
		case handshake.Drop:
			got = append(got, "drop "+a.Reason.String())
		case handshake.Note:
			got = append(got, "note "+a.Event.String())
		case handshake.Repost:
			got = append(got, "repost")
		case handshake.SendDone, handshake.RecvDone:
			got = append(got, "done")
			if a.Err != nil {
				got = append(got, "failed")
			}
		}
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("at %v: %q, want %q", s.now, got, want)
	}
}

const revokesRequest = "SEND_REQUEST 0→1 BARRIER size=1"

// TestWithdrawnSend: a canceled message is withdrawn, and a CLEAR_TO_SEND for it does not clear the next one.
func TestWithdrawnSend(t *testing.T) {
	for _, version := range []string{"of this version", "of an earlier version"} {
		t.Run(version, func(t *testing.T) {
			s := newExchange(t, handshake.SoftwarePeer(), nil)
			s.send(1)
			s.does("SEND_REQUEST 0→1 SEND_INT")
			s.acts, _ = s.CancelSend(s.now, 1, nil)
			s.does(revokesRequest)
			s.gets(clr, rInt, 0)
			s.does("drop stale", revokesRequest)
			s.send(2)
			s.does("SEND_REQUEST 0→1 SEND_INT size=1")
			s.gets(clr, rInt, 0)
			s.does("drop stale", revokesRequest)
			if version == "of this version" {
				s.gets(clr, rInt, 1)
				s.does("DATA 0→1 SEND_INT size=1")
				return
			}
			s.gets(clr, rInt, 0) // a duplicate
			s.does("drop stale", revokesRequest)
			s.now += 100 * time.Millisecond
			s.gets(clr, rInt, 0)
			s.does("drop stale", revokesRequest)
			s.now += time.Second
			s.gets(clr, rInt, 0)
			s.does("DATA 0→1 SEND_INT size=1")
		})
	}
}

// TestWithdrawnByPeer: a receive that was cleared for a withdrawn message is posted again, and the send that it held
// back resumes.
func TestWithdrawnByPeer(t *testing.T) {
	s := newExchange(t, handshake.SoftwarePeer(), nil)
	s.gets(sreq, sInt, 0)
	s.does()
	s.gets(sreq, protocol.Barrier, 1) // before a receive
	s.does("note withdrawn")
	s.recv(1)
	s.does()
	s.gets(sreq, sInt, 1)
	s.does("CLEAR_TO_SEND 0→1 RECV_INT size=1")
	s.send(2)
	s.does()
	s.gets(sreq, protocol.Barrier, 1) // for another number
	s.does("drop stale")
	s.gets(sreq, protocol.Barrier, 2)
	s.does("note withdrawn", "repost", "SEND_REQUEST 0→1 SEND_INT")
	s.recv(1)
	s.gets(sreq, sInt, 2)
	s.does("note crossed", "CLEAR_TO_SEND 0→1 RECV_INT size=2")
	s.gets(sreq, sInt, 1) // late
	s.does("drop stale")
	s.gets(sreq, sInt, 3) // the revocation of the last one was lost
	s.does("note withdrawn", "repost")
	s.recv(1)
	s.does("note crossed", "CLEAR_TO_SEND 0→1 RECV_INT size=3")
}

// TestRevokedClear: after its CLEAR_TO_SEND was revoked, a message remains with its sender, even if it equals the last
// one.
func TestRevokedClear(t *testing.T) {
	s := newExchange(t, handshake.SoftwarePeer(), nil)
	data := []byte{1, 2, 3, 4}
	for id := range handshake.ID(2) {
		s.recv(id)
		s.gets(sreq, sInt, 0)
		s.does("CLEAR_TO_SEND 0→1 RECV_INT")
		if id == 0 {
			s.gets(dat, sInt, 1, data...)
			s.does("ACK 0→1 RECV_INT", "done")
		}
	}
	var ok bool
	if s.acts, ok = s.RevokeRecv(s.now, 1, nil); !ok {
		t.Fatal("refused")
	}
	s.does("CLEAR_TO_SEND 0→1 BARRIER size=1")
	s.gets(dat, sInt, 1, data...)
	s.does("drop unsolicited", "CLEAR_TO_SEND 0→1 BARRIER size=1")

	s = newExchange(t, handshake.SoftwarePeer(), nil) // the sender
	s.send(1)
	s.gets(clr, rInt, 0)
	s.DataSent(s.now)
	s.gets(clr, protocol.Barrier, 2)
	s.does("drop stale")
	s.gets(clr, protocol.Barrier, 1)
	s.does("note withdrawn", "SEND_REQUEST 0→1 SEND_INT size=1")
	s.gets(clr, protocol.Barrier, 1) // a duplicate
	s.does("drop stale")
	s.gets(clr, rInt, 1)
	s.does("DATA 0→1 SEND_INT size=1")
	if !s.DetachSend(s.now, 1) {
		t.Fatal("refused")
	}
	s.gets(clr, protocol.Barrier, 2)
	s.does("note withdrawn", "SEND_REQUEST 0→1 BARRIER size=2", "done", "failed")
}

// TestDetachSend: a deployed node gets the DATA that it asks for although the sender is gone, and nothing else.
func TestDetachSend(t *testing.T) {
	for _, rules := range []handshake.PeerRules{handshake.FPGAPeer(1), handshake.CPUPeer()} {
		s := newExchange(t, rules, nil)
		s.send(1)
		if !s.DetachSend(s.now, 1) || !s.IsSendDetached() {
			t.Fatal("refused")
		}
		if at, ok := s.Deadline(); ok {
			t.Errorf("something happens at %v", at)
		}
		s.now = time.Minute
		s.gets(clr, rInt, 0)
		s.does("DATA 0→1 SEND_INT size=1")
		s.DataSent(s.now)
		s.gets(ack, rInt, 0)
		s.does("done")
	}
	s := newExchange(t, handshake.SoftwarePeer(), nil)
	if s.send(1); s.DetachSend(s.now, 1) {
		t.Error("a numbered peer waits for DATA of a sender that is gone")
	}
}

// TestDetachedDeadline: the wait for a message whose caller is gone ends, even without configured deadlines.
func TestDetachedDeadline(t *testing.T) {
	never := func(timing *handshake.Timing) { timing.AckDeadline, timing.DataDeadline = 0, 0 }
	s := newExchange(t, handshake.FPGAPeer(1), never)
	s.send(1)
	s.gets(clr, rInt, 0)
	s.DataSent(s.now)
	if _, ok := s.Timeout(); ok {
		t.Fatal("there is a timeout")
	}
	s.DetachSend(s.now, 1)
	s.acts = s.Tick(10*time.Second, nil)
	s.does("done", "failed")
	s = newExchange(t, handshake.FPGAPeer(1), never)
	s.recv(1)
	s.gets(sreq, sInt, 0)
	s.DetachRecv(s.now, 1)
	s.acts = s.Tick(10*time.Second, nil)
	s.does("done", "failed")
}
