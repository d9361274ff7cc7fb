package core

import (
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestCancel: an operation is cancelled for as long as nothing of its message has moved, and later it is too late.
func TestCancel(t *testing.T) {
	big := make([]byte, 100_000)
	for _, tt := range []struct {
		name string
		peer func(local, remote int) Peer
		op   Operation // of rank 0
		// theirs is what rank 1 has begun before, if it is of a kind.
		theirs    Operation
		cancelled bool
	}{
		{"a receive of nothing", software, Operation{Kind: OpRecv, Peer: 1, Buf: big}, Operation{}, true},
		{"a receive of another datatype", software, Operation{Kind: OpRecv, Peer: 1, Buf: big,
			Datatype: protocol.Float},
			Operation{Kind: OpSend, Peer: 0, Buf: big, Datatype: protocol.Int}, true},
		{"a receive of a message that moves", software, Operation{Kind: OpRecv, Peer: 1, Buf: big},
			Operation{Kind: OpSend, Peer: 0, Buf: big}, false},
		{"a send", software, Operation{Kind: OpSend, Peer: 1, Buf: big}, Operation{}, true},
		{"a send that moves", software, Operation{Kind: OpSend, Peer: 1, Buf: big}, Operation{Kind: OpRecv, Peer: 0,
			Buf: big}, false},
		{"a receive from any rank", software, Operation{Kind: OpRecv, Peer: AnySource, Tag: AnyTag, Buf: big},
			Operation{}, true},
		{"a send to itself", software, Operation{Kind: OpSend, Peer: 0, Buf: big}, Operation{}, true},
		{"a receive of nothing, extended", extendedPeer, Operation{Kind: OpRecv, Peer: 1, Buf: big}, Operation{},
			true},
		{"a receive of a message that moves, extended", extendedPeer, Operation{Kind: OpRecv, Peer: 1, Buf: big},
			Operation{Kind: OpSend, Peer: 0, Buf: big}, false},
		{"a send, extended", extendedPeer, Operation{Kind: OpSend, Peer: 1, Buf: big}, Operation{}, true},
	} {
		w := newCores(t, 1, 2, faults{}, tt.peer)
		var theirs *Request
		if tt.theirs.Kind != 0 {
			theirs = w.start(t, 1, tt.theirs)
			w.until(w.now + time.Second)
		}
		mine := w.start(t, 0, tt.op)
		for moves := &w.cores[0].peers[1].packetsOut[protocol.Data]; tt.theirs.Kind == OpRecv && *moves == 0 &&
			w.step(); {
		}
		if theirs == nil {
			w.until(w.now + time.Second)
		}
		w.event(0, func(e *Core) { e.Cancelled(mine) })
		w.until(w.now + 10*time.Second)
		if mine.Over != (tt.cancelled || theirs != nil) || errors.Is(mine.Err, ErrCancelled) != tt.cancelled ||
			mine.Err != nil && !tt.cancelled {
			t.Errorf("%s: over %v, %v", tt.name, mine.Over, mine.Err)
		}
		if theirs != nil && theirs.Over == tt.cancelled {
			t.Errorf("%s: the other rank's operation has ended: %v, %v", tt.name, theirs.Over, theirs.Err)
		}
		if theirs != nil && tt.cancelled { // and the message is there for others
			op := tt.op
			op.Datatype = tt.theirs.Datatype
			w.run(t, []*Request{theirs, w.start(t, 0, op)})
		}
	}
}

// TestClaim: probes take messages out of the matching up to a bound, above which they stay for receives.
func TestClaim(t *testing.T) {
	const limit = 3
	w := newCores(t, 1, 2, faults{}, func(_, _ int) Peer { return Peer{Extended: &extended.Config{MaxPayload: 1400}} })
	e := w.cores[0]
	for range limit + 2 {
		w.start(t, 1, Operation{Kind: OpSend, Peer: 0, Tag: 5, Buf: make([]byte, 8)})
	}
	w.until(time.Second)
	e.matching.limits = match.Limits{Unexpected: limit}
	claims := map[int]bool{}
	for n := range limit + 2 {
		var s Status
		var ok bool
		w.event(0, func(e *Core) { s, ok = e.Probes.Find(Match{Source: 1, Tag: AnyTag, Claim: true}) })
		if !ok || s.Tag != 5 || (s.Claim != 0) != (n < limit) || claims[s.Claim] && s.Claim != 0 {
			t.Errorf("message %d: %+v, %v", n+1, s, ok)
		}
		claims[s.Claim] = true
	}
	if claimed, left := e.matching.of(ClaimComm).Unexpected(), e.matching.of(0).Unexpected(); claimed != limit ||
		left != 2 {
		t.Errorf("%d messages were claimed, and %d are left", claimed, left)
	}
	for claim := range claims {
		if claim != 0 {
			w.run(t, []*Request{w.start(t, 0, Operation{Kind: OpRecv, Peer: 1, Tag: claim, Comm: ClaimComm,
				Buf: make([]byte, 8)})})
		}
	}
}

// TestSilent: a peer is silent from when it was unreachable until a packet arrives.
func TestSilent(t *testing.T) {
	for _, tt := range []struct {
		unreachable, heard time.Duration
		silent             bool
	}{
		{0, 0, false}, {0, 5, false}, {5, 0, true}, {5, 4, true}, {5, 5, false}, {5, 6, false}, {1, 0, true},
	} {
		if p := (&peer{unreachableAt: tt.unreachable, heard: tt.heard}); p.silent() != tt.silent {
			t.Errorf("unreachable at %d, heard at %d: not %v", tt.unreachable, tt.heard, tt.silent)
		}
	}
}

// TestPollsWhileItSends: a caller that only sends is to take what has arrived once in acksEvery messages.
func TestPollsWhileItSends(t *testing.T) {
	w := newCores(t, 2, 2, faults{}, extendedPeer)
	e := w.cores[0]
	polls := 0
	for range 3*acksEvery + 5 {
		w.start(t, 0, Operation{Kind: OpSend, Peer: 1, Buf: make([]byte, 2000)})
		n := e.peers[1].extended.conn.Queued()
		if want := n > 0 && n%acksEvery == 0; e.out.Poll != want {
			t.Errorf("%d messages wait to be sent: poll %v", n, e.out.Poll)
		} else if want {
			polls++
		}
		e.out.Poll = false
	}
	if polls != 3 {
		t.Errorf("%d polls", polls)
	}
}

// TestNeedsFlush: an event has an end to be dealt with if it has touched a peer, ended a message of a call, or
// advanced one.
func TestNeedsFlush(t *testing.T) {
	for name, change := range map[string]func(e *Core){
		"":                    func(*Core) {},
		"a peer":              func(e *Core) { e.touch(e.peers[1]) },
		"a message of a call": func(e *Core) { e.ended = append(e.ended, new(Request)) },
	} {
		e := newCores(t, 1, 2, faults{}, extendedPeer).cores[0]
		change(e)
		if e.NeedsFlush() != (name != "") || e.Quiet() != (name != "a peer") {
			t.Errorf("%q: %v", name, e.NeedsFlush())
		}
	}
}
