package extended

import (
	"errors"
	"testing"
)

// E20: while the pool is not exhausted, messages are sent ahead of their receives far beyond the initial credit, and a
// message whose receive is posted is received. When the pool is exhausted, the sender gets no more credit, except for a
// reserve. Receives refill the pool, and the credit granted never exceeds it.
func TestCreditIsGranted(t *testing.T) {
	const first, room = 128, 5000
	w := newWorld(Config{Messages: first, CreditPool: NewCreditPool(room)})
	w.rests = func() bool { return true }
	a, b := w.nodes[0], w.nodes[1]
	posted := b.recv(8, 10)
	sent := 0
	for ; a.conn.Fullness() != CreditFull; sent++ {
		if sent > 2*room {
			t.Fatal("the pool is never exhausted")
		}
		a.send(pattern(4, uint64(sent)), SendOp{Tag: 7})
		if a.conn.NumQueued() > 10 {
			w.wait(1e9)
		}
		if sent == room/2 {
			s := a.send(pattern(4, 1), SendOp{Tag: 8})
			w.wait(1e9)
			if err := intact(posted, s.data); err != nil {
				t.Errorf("the message behind %d others: %v", sent, err)
			}
		}
		if granted := b.cfg.CreditPool.granted; granted > room || granted < first {
			t.Fatalf("%d messages are granted of %d", granted, room)
		}
	}
	if sent < room-first || sent > room {
		t.Errorf("%d messages were sent ahead, with a pool of %d", sent, room)
	}
	// Fullness is not called for messages of collective calls.
	s := a.send(pattern(4, 2), SendOp{Tag: 9})
	w.wait(1e9)
	if r := b.recv(9, 4); !r.done() || intact(r, s.data) != nil {
		t.Errorf("a message for which credit is reserved was not received: %v", intact(r, s.data))
	}
	if st := b.conn.Stats(); st.OpenMessages != sent || len(b.conn.recvs.byNumber.slots) > 1000 {
		t.Errorf("%d messages wait, %d have records", st.OpenMessages, len(b.conn.recvs.byNumber.slots))
	}
	for i := range sent {
		if r := b.recv(7, 4); intact(r, pattern(4, uint64(i))) != nil {
			t.Fatalf("message %d: %v", i, intact(r, pattern(4, uint64(i))))
		}
	}
	w.run(1e12)
	if a.conn.Fullness() != NotFull || b.cfg.CreditPool.granted != first {
		t.Errorf("with all received, the sender sees %v, and %d messages are granted", a.conn.Fullness(),
			b.cfg.CreditPool.granted)
	}
	if err := w.err(); err != nil {
		t.Error(err)
	}
}

// E16, E8: an announced message that rests can be canceled, and is lost with its session.
func TestAnnouncedMessageRests(t *testing.T) {
	w := newWorld(Config{})
	w.rests = func() bool { return true }
	a, b := w.nodes[0], w.nodes[1]
	rested := func() (*simSend, *simMessage) {
		s := a.send(pattern(1<<20, 1), SendOp{Tag: 7})
		w.wait(1e9)
		for _, m := range b.inbound {
			if m.rests && m.lost == nil {
				return s, m
			}
		}
		t.Fatal("no message rests")
		return nil, nil
	}
	s, m := rested()
	how := a.cancel(s.op.ID)
	w.wait(1e9)
	if how != CancelRequested || !errors.Is(s.err, ErrCanceled) || !errors.Is(m.lost, ErrCanceled) {
		t.Errorf("canceled: %v, the send ends with %v, the message with %v", how, s.err, m.lost)
	}
	_, m = rested()
	w.start(0, a.cfg)
	w.nodes[0].send(pattern(4, 1), SendOp{Tag: 8})
	w.wait(1e9)
	if m.lost == nil {
		t.Error("the message outlives its session")
	}
	if err := w.err(); err != nil {
		t.Error(err)
	}
}

// A caller that waits for each of its sends is held back before one of them is refused.
func TestIsCreditScarce(t *testing.T) {
	w := newWorld(Config{Messages: 64})
	a := w.nodes[0]
	sent := 0
	for ; !a.conn.IsCreditScarce(); sent++ {
		a.send(pattern(4, 1), SendOp{Tag: 7})
		w.wait(1e9)
	}
	if sent != 57 || a.conn.Fullness() != NotFull {
		t.Errorf("after %d of 64 messages there is little space, and %v", sent, a.conn.Fullness())
	}
	s := a.send(pattern(4, 1), SendOp{Tag: 8, Announce: true})
	w.wait(1e9)
	if s.done || s.buffered {
		t.Error("a message that is announced is done without its receive")
	}
	r := w.nodes[1].recv(8, 4)
	w.wait(1e9)
	if !s.done || s.err != nil || intact(r, s.data) != nil {
		t.Errorf("with its receive: %v, %v, %v", s.done, s.err, intact(r, s.data))
	}
}
