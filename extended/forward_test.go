package extended

import (
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// E49: a message is announced before its payload is available, its DATA is sent as payload becomes available, and other
// messages do not wait for it.
func TestForwarded(t *testing.T) {
	w := newWorld(Config{MaxPayload: 100})
	r := w.nodes[1].recv(1, 1000)
	s := w.nodes[0].send(pattern(1000, 3), SendOp{Tag: 1, Partial: true})
	w.run(time.Second)
	in := w.nodes[1].inbound
	if len(in) != 1 || r.message == nil || r.message.got != 0 {
		t.Fatalf("it is not announced: %d messages", len(in))
	}
	other := w.nodes[1].recv(2, 20000)
	w.nodes[0].send(pattern(20000, 4), SendOp{Tag: 2})
	w.wait(time.Second)
	if !other.done() {
		t.Error("another message waits for it")
	}
	for _, ready := range []int64{1, 250, 250, 999} {
		w.nodes[0].ready(s, ready)
		w.wait(time.Second)
		if r.message.got != ready || r.done() {
			t.Errorf("%d bytes are there, and %d were received", ready, r.message.got)
		}
	}
	w.nodes[0].ready(s, 1000)
	w.wait(time.Second)
	if err := errors.Join(intact(r, s.data), s.err, w.err(), quiet(w.nodes[0]), quiet(w.nodes[1])); err != nil ||
		!s.done {
		t.Error(err)
	}
}

// Whenever a message is aborted, it ends on both sides, and the next message succeeds.
func TestAborted(t *testing.T) {
	for _, test := range []struct {
		name        string
		posted      bool
		ready       int64
		wait        time.Duration // until it is declared unreachable
		send, other error
	}{
		{"not begun", true, 0, 0, ErrCanceled, nil},
		{"not matched", false, 0, time.Second, ErrCanceled, nil},
		{"CLEAR_TO_SEND in transit", true, 0, latency + latency/2, ErrAborted, ErrAborted},
		{"nothing sent", true, 0, time.Second, ErrAborted, ErrAborted},
		{"some sent", true, 700, time.Second, ErrAborted, ErrAborted},
		{"some in transit", true, 700, 3*latency + latency/2, ErrAborted, ErrAborted},
		{"all sent", true, 1000, 3*latency + latency/2, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(Config{MaxPayload: 100})
			w.nodes[0].send(nil, SendOp{Tag: 3}) // to establish a session
			w.nodes[1].recv(3, 0)
			w.wait(time.Second)
			var r *simRecv
			if test.posted {
				r = w.nodes[1].recv(1, 1000)
			}
			s := w.nodes[0].send(pattern(1000, 3), SendOp{Tag: 1, Partial: true})
			w.nodes[0].ready(s, test.ready)
			if test.wait > 0 {
				w.wait(test.wait)
			}
			w.nodes[0].abort(s)
			w.wait(time.Minute)
			if !s.done || !errors.Is(s.err, test.send) {
				t.Errorf("the send: done %v, %v", s.done, s.err)
			}
			if r != nil && r.message != nil && !errors.Is(r.message.lost, test.other) {
				t.Errorf("the receive: %v", r.message.lost)
			}
			next := w.nodes[1].recv(2, 5)
			n := w.nodes[0].send(pattern(5, 1), SendOp{Tag: 2})
			w.wait(time.Second)
			if err := errors.Join(intact(next, n.data), w.err(), quiet(w.nodes[0]), quiet(w.nodes[1])); err != nil {
				t.Error(err)
			}
		})
	}
}

// ERROR aborted does not end a message that was not cleared, is eager, or is not sent by the peer.
func TestAbortedOutOfPlace(t *testing.T) {
	w := newWorld(Config{})
	w.nodes[0].send(pattern(5, 1), SendOp{Tag: 1})
	w.nodes[0].send(pattern(50000, 1), SendOp{Tag: 1})
	w.wait(time.Second)
	n := w.nodes[1]
	first := n.conn.recvs.nextMessage - 2
	for message, want := range map[uint32]Reason{first: ReasonStale, first + 1: ReasonStale,
		first + 2: ReasonUnsolicited, first - 1: ReasonStale} {
		h := protocol.ExtHeader{Type: protocol.Error, Call: protocol.SendInt, Message: message,
			Tag: uint32(protocol.CodeAborted)}
		if got := n.conn.recvs.onAborted(&h); got != want {
			t.Errorf("message %d: %v, want %v", message-first, got, want)
		}
		h.Call = protocol.RecvInt
		if got := n.conn.recvs.onAborted(&h); got != ReasonDirection {
			t.Errorf("from its receiver: %v", got)
		}
	}
}
