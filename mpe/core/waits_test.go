package core

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestOfManyWaits checks that a state contains the first wait of each peer and direction, and the number of waits
// behind it, and that counters contain the oldest wait.
func TestOfManyWaits(t *testing.T) {
	w := newCores(t, 1, 3, faults{}, software)
	w.ports[2].stopped = Never
	e := w.cores[0]
	start := func(kind OpKind, peer, tag int) {
		w.until(w.now + time.Second)
		w.start(t, 0, Operation{Kind: kind, Peer: peer, Tag: tag, Buf: make([]byte, 8)})
	}
	for range 3 {
		start(OpSend, 2, 0)
	}
	began := w.now + time.Second
	start(OpRecv, 2, 0)
	start(OpRecv, 2, 0)
	start(OpRecv, AnySource, AnyTag)
	start(OpRecv, AnySource, AnyTag)
	start(OpSend, 0, 7) // a receive from any source gets it
	start(OpRecv, 0, 8)
	w.until(began + 5500*time.Millisecond)
	w.event(0, func(*Core) {})

	s := e.Snapshot()
	if len(s.Peers) != 2 || s.Peers[0].Rank != 1 || s.Peers[1].Rank != 2 || s.Posted != 4 || s.Unexpected != 0 {
		t.Fatalf("%+v", s)
	}
	idle, p := s.Peers[0], s.Peers[1]
	if idle.Sending != nil || idle.Receiving != nil || idle.QueuedSends != 0 || idle.QueuedReceives != 0 {
		t.Errorf("rank 1: %+v", idle)
	}
	if p.Sending == nil || p.Sending.State != handshake.WaitClear || p.QueuedSends != 2 {
		t.Errorf("sends: %+v, and %d behind", p.Sending, p.QueuedSends)
	}
	if p.Receiving == nil || p.Receiving.State != handshake.WaitRequest || p.QueuedReceives != 1 ||
		p.Receiving.Seconds != 5.5 {
		t.Errorf("receives: %+v, and %d behind", p.Receiving, p.QueuedReceives)
	}
	if s.AnySource == nil || s.AnySource.Seconds != 2.5 {
		t.Errorf("receives from any rank: %+v", s.AnySource)
	}

	var c state.RankCounters
	posted := make([]handshake.Instant, 3)
	e.RankCounters(&c, posted)
	if c.Posted != 4 || c.Unexpected != 0 || posted[2] != began || posted[1] != 0 ||
		posted[0] != began+5*time.Second ||
		c.AnySource != (state.OldestWait{Waits: true, Awaited: protocol.SendRequest, Elapsed: 2500 * time.Millisecond}) {
		t.Errorf("%+v, posted at %v", c, posted)
	}
	if d := e.Depths(); d != (state.Depths{Posted: 4, Sends: 3}) {
		t.Errorf("%+v", d)
	}
	var of state.PeerCounters
	if e.PeerCounters(&of, 0) || !e.PeerCounters(&of, 2) || of.Rank != 2 || of.QueuedSends != 2 || of.InFlight != 1 {
		t.Errorf("%+v", of)
	}

	for _, tt := range []struct {
		atLeast time.Duration
		waits   int // of the first of each source, and the send to rank 2
	}{
		{0, 4}, {500 * time.Millisecond, 4}, {500*time.Millisecond + 1, 3}, {2500 * time.Millisecond, 3},
		{2500*time.Millisecond + 1, 2}, {5500 * time.Millisecond, 2}, {time.Hour, 0},
	} {
		if got := e.Waits(tt.atLeast); len(got) != tt.waits {
			t.Errorf("%d operations wait for %v, not %d", len(got), tt.atLeast, tt.waits)
		}
	}
}

// TestQueuedBehind checks that an operation waits behind earlier operations of its pair and direction, and a
// receive only behind receives that would get its message.
func TestQueuedBehind(t *testing.T) {
	for name, peer := range map[string]func(local, remote int) Peer{"cloudfpga": software, "extended": extendedPeer} {
		w := newCores(t, 1, 3, faults{}, peer)
		for rank := 1; rank < 3; rank++ {
			w.ports[rank].stopped = Never
		}
		e := w.cores[0]
		tags := peer(0, 1).Extended != nil // otherwise messages match by order
		for i, tt := range []struct {
			kind            OpKind
			peer, tag, comm int
			queued          int
		}{
			{OpRecv, 1, 5, 0, 0},
			{OpRecv, 1, 5, 0, 1},
			{OpRecv, 2, 5, 0, 0},
			{OpRecv, AnySource, AnyTag, 0, 0},
			{OpRecv, AnySource, AnyTag, 0, 1},
			{OpRecv, 1, 5, 0, 2},
			{OpRecv, 1, 6, 0, map[bool]int{true: 0, false: 3}[tags]},
			{OpSend, 0, 1 << 20, 7, 0}, // to this rank
		} {
			r := w.start(t, 0, Operation{
				Kind: tt.kind, Peer: tt.peer, Tag: tt.tag, Comm: uint32(tt.comm), Buf: make([]byte, 8),
			})
			got := waitOf(e, r)
			if got.Queued != tt.queued || got.Send != (tt.kind == OpSend) || got.req != r ||
				got.AnySource != (tt.peer == AnySource) || tt.peer >= 0 && got.Remote != uint32(tt.peer) {
				t.Errorf("%s, operation %d: %d are ahead, not %d: %+v", name, i+1, got.Queued, tt.queued, got.Pending)
			}
		}
	}
}

// TestWithoutWaits checks that nothing waits in a new core.
func TestWithoutWaits(t *testing.T) {
	e := newCores(t, 1, 2, faults{}, software).cores[0]
	var c state.RankCounters
	e.RankCounters(&c, make([]handshake.Instant, 2))
	if s := e.Snapshot(); c.AnySource.Waits || s.AnySource != nil || s.Peers[0].Sending != nil ||
		len(e.Waits(0)) > 0 ||
		len(e.ActiveTransfers()) > 0 || e.Depths() != (state.Depths{}) {
		t.Errorf("%+v, %+v", c, s)
	}
}

// TestOlder checks that the oldest of several waits is kept, and among equally old waits the first.
func TestOlder(t *testing.T) {
	e := &Core{now: 100}
	var oldest state.OldestWait
	for _, tt := range []struct {
		waitsFor protocol.Type
		since    handshake.Instant
		want     protocol.Type
		elapsed  time.Duration
	}{
		{protocol.SendRequest, 100, protocol.SendRequest, 0},
		{protocol.ClearToSend, 100, protocol.SendRequest, 0},
		{protocol.ClearToSend, 90, protocol.ClearToSend, 10},
		{protocol.Ack, 90, protocol.ClearToSend, 10},
		{protocol.Ack, 95, protocol.ClearToSend, 10},
		{protocol.Ack, 89, protocol.Ack, 11},
	} {
		keepOldest(e, &oldest, tt.waitsFor, tt.since)
		if oldest != (state.OldestWait{Waits: true, Awaited: tt.want, Elapsed: tt.elapsed}) {
			t.Errorf("since %d: %+v", tt.since, oldest)
		}
	}
}

// TestUnexpectedMessagesRest checks that, if many messages wait for receives, a further message releases its record,
// and is then represented by its queue entry alone.
func TestUnexpectedMessagesRest(t *testing.T) {
	const above = 2
	send := func(w *world, bytes int) {
		w.start(t, 1, Operation{Kind: OpSend, Peer: 0, Tag: 5, Buf: make([]byte, bytes)})
		w.until(w.now + time.Second)
	}
	resting := func(e *Core) (n int) {
		e.matching.forComm(0).EachUnexpected(func(_, _ int32, u unexpected) bool {
			if u.inbound == nil {
				n++
			}
			return true
		})
		return n
	}
	for name, bytes := range map[string]int{"small": extended.MaxInline, "announced": 100_000} {
		w := newCores(t, 2, 2, faults{}, extendedPeer) // with seed 2, the number is the core's own
		e := w.cores[0]
		e.matching.restThreshold = above
		for n := 1; n <= above+2; n++ {
			send(w, bytes)
			if got, want := resting(e), max(n-above, 0); got != want || e.matching.forComm(0).Unexpected() != n {
				t.Errorf("%s: %d of %d rest, not %d", name, got, n, want)
			}
		}
		var in *inbound // the oldest, which has its record
		for of := range e.peers.at(1).extended.inbox.each {
			if in == nil || of.order < in.order {
				in = of
			}
		}
		for what, change := range map[string]func(in *inbound){
			"accepted":                 func(in *inbound) { in.accepted = true },
			"matched before":           func(in *inbound) { in.matchedBefore = true },
			"advertised":               func(in *inbound) { in.advertised = 1 },
			"matched":                  func(in *inbound) { in.recv = new(Request) },
			"not among the unexpected": func(in *inbound) { in.handle = match.Handle{} },
		} {
			saved := *in
			before := resting(e)
			change(in)
			e.peers.at(1).extended.restMessage(in)
			if resting(e) != before {
				t.Errorf("%s: one that is %s rests", name, what)
			}
			*in = saved
		}
	}
}
