package core

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/match"
)

// TestFlowed checks that the send of a flow may forward bytes, in pieces, when its receive has them, and all
// remaining bytes when the receive is complete.
func TestFlowed(t *testing.T) {
	const length, piece = 100, 30
	w := newCores(t, 1, 2, faults{}, extendedPeer)
	p := w.cores[0].peers.at(1)
	send := func() *Request { return &Request{p: p, buf: make([]byte, length)} }
	for _, tt := range []struct {
		name          string
		stored, got   int64
		before, ready int64
		over          bool // the send is complete
	}{
		{name: "nothing"},
		{name: "less than a piece", stored: piece - 1, got: piece - 1},
		{name: "a piece", stored: piece, got: piece, ready: piece},
		{name: "less than another", stored: 2*piece - 1, got: 2*piece - 1, before: piece, ready: piece},
		{name: "another", stored: 2 * piece, got: 2 * piece, before: piece, ready: 2 * piece},
		{name: "all but a byte", stored: length - 1, got: length - 1, before: 90, ready: 90},
		{name: "all", stored: length, got: length, before: 90, ready: length},
		{name: "more than all", stored: length + 9, got: length + 9, before: 90, ready: length},
		{name: "a gap", stored: piece, got: piece + 1},
		{name: "over", stored: length, got: length, over: true},
	} {
		f := &flow{minPiece: piece, readyBytes: tt.before}
		if !tt.over {
			f.send = send()
		}
		onFlowData(&inbound{recv: &Request{flow: f}, storedBytes: tt.stored, highWater: tt.got, buf: make([]byte, length)})
		if f.readyBytes != tt.ready {
			t.Errorf("%s: %d bytes may be sent, not %d", tt.name, f.readyBytes, tt.ready)
		}
	}
	for _, tt := range []struct {
		name  string
		bytes int64
		err   error
		over  bool
		ready int64
	}{
		{name: "all", bytes: length, ready: length},
		{name: "another length", bytes: length - 1},
		{name: "a failure", bytes: length, err: match.ErrFull},
		{name: "after the send is complete", bytes: length, over: true},
		{name: "a failure after the send is complete", bytes: length, err: match.ErrFull, over: true},
	} {
		f := new(flow)
		f.recv = &Request{flow: f, Err: tt.err, Status: Status{Bytes: tt.bytes}}
		if !tt.over {
			f.send = send()
		}
		recv := f.recv
		onFlowEnded(recv)
		if f.recv != nil || f.readyBytes != tt.ready {
			t.Errorf("the receive is done, %s: %d bytes may be sent, not %d", tt.name, f.readyBytes, tt.ready)
		}
		if f.send != nil {
			f.send.flow = f
			onFlowEnded(f.send)
		}
		if f.send != nil {
			t.Errorf("%s: the send is not done", tt.name)
		}
	}
	onFlowEnded(new(Request)) // of no flow
}

// TestFlowWaits checks that the sender of a flow's receive is cleared when the next rank clears the flow's send.
func TestFlowWaits(t *testing.T) {
	for _, tt := range []struct {
		name           string
		flow           *flow
		eager          bool
		waits, accepts bool
	}{
		{name: "no flow"},
		{name: "not cleared", flow: &flow{send: new(Request), recv: new(Request)}, waits: true, accepts: true},
		{name: "cleared", flow: &flow{send: new(Request), recv: new(Request), cleared: true}},
		{name: "eager", flow: &flow{send: new(Request), recv: new(Request)}, eager: true},
		{name: "the send is complete", flow: &flow{recv: new(Request)}},
		{name: "the receive is done", flow: &flow{send: new(Request)}, waits: true},
	} {
		w := newCores(t, 1, 2, faults{}, extendedPeer)
		e := w.cores[0]
		in, r := &inbound{eager: tt.eager}, &Request{flow: tt.flow}
		if r.mustWait(in) != tt.waits || tt.flow != nil && (tt.flow.pendingMessage == in) != tt.waits {
			t.Errorf("%s: not %v", tt.name, tt.waits)
		}
		for range 2 { // once is enough
			onClearToSend(e, r)
		}
		if got := len(e.pending.accepts); got > 1 || (got > 0) != tt.accepts || tt.flow != nil && !tt.flow.cleared {
			t.Errorf("%s: %d messages were let in, %v", tt.name, got, tt.accepts)
		}
		onClearToSend(e, nil)
	}
}
