package core

import (
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestCancel checks that an operation can be cancelled until the transfer of its message begins, but not later.
func TestCancel(t *testing.T) {
	big := make([]byte, 100_000)
	for _, tt := range []struct {
		name string
		peer func(local, remote int) Peer
		op   Operation // of rank 0
		// theirs is an earlier operation of rank 1, if it has a kind.
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
		for moves := &w.cores[0].peers.at(1).packetsOut[protocol.Data]; tt.theirs.Kind == OpRecv && *moves == 0 &&
			w.step(); {
		}
		if theirs == nil {
			w.until(w.now + time.Second)
		}
		w.event(0, func(e *Core) { e.CancelRequest(mine) })
		w.until(w.now + 10*time.Second)
		if mine.Done != (tt.cancelled || theirs != nil) || errors.Is(mine.Err, ErrCancelled) != tt.cancelled ||
			mine.Err != nil && !tt.cancelled {
			t.Errorf("%s: over %v, %v", tt.name, mine.Done, mine.Err)
		}
		if theirs != nil && theirs.Done == tt.cancelled {
			t.Errorf("%s: the other rank's operation is done: %v, %v", tt.name, theirs.Done, theirs.Err)
		}
		if theirs != nil && tt.cancelled { // the message is available to others
			op := tt.op
			op.Datatype = tt.theirs.Datatype
			w.run(t, []*Request{theirs, w.start(t, 0, op)})
		}
	}
}

// TestClaim checks that probes claim messages up to a limit; above it, messages stay available to receives.
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
	if claimed, left := e.matching.forComm(ClaimComm).Unexpected(), e.matching.forComm(0).Unexpected(); claimed != limit ||
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

// TestSilent checks that a peer is silent from the time it was declared unreachable until a packet arrives.
func TestSilent(t *testing.T) {
	for _, tt := range []struct {
		unreachable, heard time.Duration
		silent             bool
	}{
		{0, 0, false}, {0, 5, false}, {5, 0, true}, {5, 4, true}, {5, 5, false}, {5, 6, false}, {1, 0, true},
	} {
		if p := (&peer{unreachableAt: tt.unreachable, lastPacketAt: tt.heard}); p.isSilent() != tt.silent {
			t.Errorf("unreachable at %d, heard at %d: not %v", tt.unreachable, tt.heard, tt.silent)
		}
	}
}

// TestPollsWhileItSends checks that a caller that only sends is asked to poll after every acksEvery messages.
func TestPollsWhileItSends(t *testing.T) {
	w := newCores(t, 2, 2, faults{}, extendedPeer)
	e := w.cores[0]
	polls := 0
	for range 3*acksEvery + 5 {
		w.start(t, 0, Operation{Kind: OpSend, Peer: 1, Buf: make([]byte, 2000)})
		n := e.peers.at(1).extended.conn.NumQueued()
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

// TestNeedsFlush checks that an event needs a flush if it has touched a peer, ended a message of a call, or
// advanced a call.
func TestNeedsFlush(t *testing.T) {
	for name, change := range map[string]func(e *Core){
		"":                    func(*Core) {},
		"a peer":              func(e *Core) { e.touch(e.peers.at(1)) },
		"a message of a call": func(e *Core) { e.endedMessages = append(e.endedMessages, new(Request)) },
	} {
		e := newCores(t, 1, 2, faults{}, extendedPeer).cores[0]
		change(e)
		if e.NeedsFlush() != (name != "") || e.IsQuiet() != (name != "a peer") {
			t.Errorf("%q: %v", name, e.NeedsFlush())
		}
	}
}

// TestWillQueue checks that a receive is certain to wait if no message is there and nobody observes its time.
func TestWillQueue(t *testing.T) {
	for _, tt := range []struct {
		name       string
		observed   bool
		unexpected bool
		comm       uint32
		queues     bool
	}{
		{name: "nothing is there", queues: true},
		{name: "a message is there", unexpected: true},
		{name: "a message of another communicator is there", unexpected: true, comm: 1, queues: true},
		{name: "observed", observed: true},
		{name: "observed, and a message is there", observed: true, unexpected: true},
	} {
		w := newCores(t, 1, 2, faults{}, extendedPeer)
		e := w.cores[0]
		e.observed = tt.observed
		if tt.unexpected {
			w.start(t, 1, Operation{Kind: OpSend, Peer: 0, Buf: make([]byte, 8)})
			w.until(time.Second)
		}
		if got := e.WillQueue(&Request{kind: OpRecv, peer: 1, p: e.peers.at(1), comm: tt.comm}); got != tt.queues {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestIsForEarlier checks that messages for an ended program are discarded for some time after its end, and for longer
// while the peer does not accept the next program's message.
func TestIsForEarlier(t *testing.T) {
	const now = 2 * time.Hour
	for _, tt := range []struct {
		name              string
		receives, replies int
		age               time.Duration
		sending           *Request
		left              bool
	}{
		{"nothing", 0, 0, 0, nil, false},
		{"a receive", 1, 0, leftoverTime - 1, nil, true},
		{"a reply", 0, 1, leftoverTime - 1, nil, true},
		{"a receive, long ago", 1, 0, leftoverTime, nil, false},
		{"a receive, while the peer takes the next message", 1, 0, leftoverTime, new(Request), true},
		{"a receive, long before the next message", 1, 0, leftoverBusyTime - 1, new(Request), true},
		{"a receive, too long before the next message", 1, 0, leftoverBusyTime, new(Request), false},
		{"a receive, while the peer takes a message of the same program", 1, 0, leftoverTime, &Request{detached: true},
			false},
	} {
		w := newCores(t, 1, 2, faults{}, software)
		e := w.cores[0]
		e.now = now
		l := e.peers.at(1).handshake
		l.leftover, l.sending = leftover{receives: tt.receives, replies: tt.replies, since: now - tt.age}, tt.sending
		if l.isForEarlier() != tt.left {
			t.Errorf("%s: not %v", tt.name, tt.left)
		}
	}
}

// TestCoalesce checks that the first sends of a burst are transmitted at once, and later ones coalesced.
func TestCoalesce(t *testing.T) {
	w := newCores(t, 1, 2, faults{}, extendedPeer)
	e := w.cores[0]
	l := e.peers.at(1).extended
	for n := 1; n <= 100; n++ {
		e.pending.coalesced, e.tickDue = false, Never
		waits := l.coalesce()
		if want := n > coalesceAfter && (n-coalesceAfter)%maxCoalesced != 0; waits != want ||
			e.pending.coalesced != want ||
			(e.tickDue == e.now+coalesceTime) != want {
			t.Errorf("send %d in a row waits for others: %v", n, waits)
		}
	}
	e.touch(e.peers.at(1))
	if e.FlushCoalesced(); l.coalesce() {
		t.Error("the first send after a flush waits for others")
	}
}

// TestProbesWake checks that a probe is woken when a message arrives that may match it.
func TestProbesWake(t *testing.T) {
	e := newCores(t, 1, 3, faults{}, extendedPeer).cores[0]
	for _, tt := range []struct {
		source int
		comm   uint32
		wakes  bool
	}{
		{1, 7, true}, {AnySource, 7, true}, {2, 7, false}, {1, 8, false}, {AnySource, 8, false}, {2, 8, false},
	} {
		p := &Probe{Match: Match{Source: tt.source, Comm: tt.comm, Tag: 9}, Wake: func() {}}
		other := &Probe{Match: Match{Source: 2, Comm: 9}, Wake: func() { t.Error("another one is woken") }}
		e.Probes.Add(other)
		e.Probes.Add(p)
		e.Probes.wake(&inbound{source: 1, comm: 7})
		if woken := len(e.out.Wake) == 1; woken != tt.wakes || woken != e.out.Rare {
			t.Errorf("from %d in %d: woken %v", tt.source, tt.comm, woken)
		}
		e.out.Clear()
		e.Probes.Remove(p)
		e.Probes.Remove(p)
		if e.Probes.wake(&inbound{source: 1, comm: 7}); len(e.out.Wake) > 0 || len(e.Probes.list) != 1 {
			t.Error("an ended probe is woken")
		}
		e.Probes.Remove(other)
	}
}

// TestDiscardsWhatIsLeft checks that exactly as many messages are discarded as the program could still have
// received when it ended.
func TestDiscardsWhatIsLeft(t *testing.T) {
	for _, tt := range []struct{ receives, replies, discarded int }{
		{0, 0, 0}, {1, 0, 1}, {2, 0, 2}, {3, 0, 3}, {0, 1, 1}, {1, 1, 1}, {2, 1, 2}, // a reply is the first of them
	} {
		w := newCores(t, 1, 2, faults{}, software)
		l := w.cores[0].peers.at(1).handshake
		l.leftover = leftover{receives: tt.receives, replies: tt.replies}
		for n := range byte(5) {
			w.start(t, 1, Operation{Kind: OpSend, Peer: 0, Buf: []byte{n, 0, 0, 0}})
		}
		w.until(time.Second)
		buf := make([]byte, 4)
		w.run(t, []*Request{w.start(t, 0, Operation{Kind: OpRecv, Peer: 1, Buf: buf})})
		if got := int(buf[0]); got != tt.discarded {
			t.Errorf("%d receives and %d replies: %d messages were discarded, not %d", tt.receives, tt.replies, got,
				tt.discarded)
		}
	}
}
