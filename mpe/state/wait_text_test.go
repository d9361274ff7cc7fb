package state

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestWaitText checks that the text of a wait contains all known facts, and its age if requested.
func TestWaitText(t *testing.T) {
	sends := Pending{Wait: handshake.Wait{State: handshake.WaitClear, For: protocol.ClearToSend, Remote: 2,
		Since: time.Second}, Send: true}
	receives := Pending{Wait: handshake.Wait{State: handshake.WaitRequest, For: protocol.SendRequest, Remote: 2,
		Since: time.Second}, Posted: true}
	held := Pending{Wait: handshake.Wait{State: handshake.Held, Remote: 2, Since: time.Second}, Send: true}
	queued, shared, own, anySource := sends, receives, sends, receives
	queued.Queued, anySource.AnySource = 1, true
	shared.Call = &collective.Origin{Collective: "Bcast", Algorithm: "shared", Number: 3, Comm: 1}
	own.Remote = 0
	pair := func(p Pending, h HandshakeFacts) WaitFacts {
		return WaitFacts{Pending: p, PostedAt: 500 * time.Millisecond, Tag: 5, Link: HandshakeLink, Handshake: h}
	}
	conn := func(p Pending, state extended.State, x ExtendedFacts) WaitFacts {
		x.Send = extended.SendState{Tag: 5, Wait: extended.Wait{State: state, Remote: 2, Since: p.Since, Length: 100,
			BytesDone: 40}}
		return WaitFacts{Pending: p, Tag: 5, Link: ExtendedLink, Extended: x}
	}
	with := func(w WaitFacts, change func(*WaitFacts)) WaitFacts { change(&w); return w }
	heard := HandshakeFacts{HasReceived: true}
	ahead := HandshakeFacts{HasReceived: true, Receiving: true, RecvDiscarded: true,
		CurrentRecv: handshake.Wait{For: protocol.Data,
			Remote: 2, Since: 2 * time.Second}}
	call := collective.Origin{Collective: "Bcast", Algorithm: "tree", Number: 7, Comm: 1}
	agreement := collective.Origin{Comm: 4, Agreement: true}
	for _, tt := range []struct {
		facts        WaitFacts
		text, textAt string
	}{
		{pair(sends, heard), "rank 0 waits for CLEAR_TO_SEND from rank 2", "rank 0 has waited 3s for CLEAR_TO_SEND " +
			"from rank 2"},
		{pair(queued, heard), "queued behind 1 other, and rank 0 waits for CLEAR_TO_SEND from rank 2",
			"queued behind 1 other for 3.5s, and rank 0 has waited 3s for CLEAR_TO_SEND from rank 2"},
		{pair(queued, HandshakeFacts{HasReceived: true, SendDiscarded: true}),
			"queued behind 1 other, and rank 0 waits for CLEAR_TO_SEND from rank 2, of a program that no longer exists", ""},
		{with(pair(sends, heard), func(w *WaitFacts) { w.Detached = true }), "rank 0 waits for CLEAR_TO_SEND from " +
			"rank 2, whose call has returned", ""},
		{with(pair(sends, heard), func(w *WaitFacts) { w.Detached, w.Discarded = true, true }), "rank 0 waits for " +
			"CLEAR_TO_SEND from rank 2, of a program that no longer exists", ""},
		{with(pair(sends, heard), func(w *WaitFacts) { w.InCall, w.CallOrigin = true, call }), "rank 0 waits for " +
			"CLEAR_TO_SEND from rank 2, in Bcast by tree", ""},
		{with(pair(sends, heard), func(w *WaitFacts) { w.InCall, w.CallOrigin = true, agreement }), "rank 0 waits for " +
			"CLEAR_TO_SEND from rank 2, in its first collective call", ""},
		{pair(sends, HandshakeFacts{Address: "10.0.0.2:2718"}),
			"rank 0 waits for CLEAR_TO_SEND from rank 2; no packet was ever received from 10.0.0.2:2718", ""},
		{pair(receives, HandshakeFacts{Address: "10.0.0.2:2718"}), "rank 0 waits for SEND_REQUEST from rank 2; no " +
			"packet was ever received from 10.0.0.2:2718", ""},
		{pair(receives, HandshakeFacts{Address: "10.0.0.2:2718", RequestsOnce: true}), "rank 0 waits for SEND_REQUEST " +
			"from rank 2; no packet was ever received from " +
			"10.0.0.2:2718. If rank 2 asked to send before this process started, it asks no more: restart its role " +
			"or program", ""},
		{pair(receives, HandshakeFacts{ForeignProfile: true}), "rank 0 waits for SEND_REQUEST from rank 2; rank 2 sends " +
			"packets of profile extended, " +
			"and profile cloudfpga is configured for it here: give both sides the same profile", ""},
		{pair(receives, ahead), "rank 0 waits for DATA from rank 2, for an operation that was aborted: it is discarded",
			"rank 0 has waited 2s for DATA from rank 2, for an operation that was aborted: it is discarded"},
		{pair(held, ahead), "rank 0 holds a send to rank 2 back, behind a message from it, for an operation that " +
			"was aborted: it is discarded", ""},
		{pair(held, HandshakeFacts{Address: "10.0.0.2:2718"}), "rank 0 holds a send to rank 2 back, behind a message " +
			"from it", ""},
		{pair(sends, HandshakeFacts{HasReceived: true, Address: "10.0.0.2:2718", SendDiscarded: true}),
			"rank 0 waits for CLEAR_TO_SEND from rank 2", ""},
		{conn(sends, extended.WaitClear, ExtendedFacts{}), "rank 0 waits for rank 2 to post the receive of 100 " +
			"bytes with tag 5", ""},
		{with(conn(sends, extended.WaitClear, ExtendedFacts{}), func(w *WaitFacts) { w.InCall, w.CallOrigin = true, call }),
			"rank 0 waits for rank 2 to post the receive of 100 bytes of call 7 in communicator 1, in Bcast by tree",
			""},
		{conn(sends, extended.Canceling, ExtendedFacts{}), "rank 0 waits for rank 2 to confirm that a message of " +
			"100 bytes is cancelled", ""},
		{conn(sends, extended.Sending, ExtendedFacts{}), "rank 0 waits for ACK from rank 2 (40 of 100 bytes are " +
			"acknowledged)", ""},
		{conn(sends, extended.Queued, ExtendedFacts{Version: 9}), "rank 0 waits for an answer from rank 2: rank 2 " +
			"speaks version 0x09 of the extended profile, " +
			"and this rank version 0xe2: use the same release of zrlmpid for both", ""},
		{conn(sends, extended.Queued, ExtendedFacts{}), "rank 0 waits for an answer from rank 2; no packet was " +
			"ever received from it", ""},
		{conn(sends, extended.Queued, ExtendedFacts{Connected: true, NoCredit: true}),
			"rank 0 holds a send to rank 2 back: as many of its messages as rank 2 allows wait there for receives", ""},
		{conn(sends, extended.Queued, ExtendedFacts{Connected: true}), "rank 0 holds a send to rank 2 back, behind " +
			"others",
			"rank 0 has held a send to rank 2 back for 3s, behind others"},
		{conn(receives, 0, ExtendedFacts{Connected: true}), "rank 0 waits for a message from rank 2 with tag 5", ""},
		{conn(receives, 0, ExtendedFacts{}), "rank 0 waits for a message from rank 2 with tag 5; no packet was " +
			"ever received from rank 2", ""},
		{with(conn(receives, 0, ExtendedFacts{Connected: true}), func(w *WaitFacts) {
			w.InCall, w.CallOrigin = true,
				agreement
		}),
			"rank 0 waits for a message from rank 2 with which it begins its first collective call in communicator " +
				"4, in its first collective call", ""},
		{WaitFacts{Pending: anySource, Tag: int(match.AnyTag), Comm: 3}, "rank 0 waits for a message from any rank " +
			"in communicator 3",
			"rank 0 has waited 3s for a message from any rank in communicator 3"},
		{WaitFacts{Pending: own, Tag: 5}, "rank 0 has sent itself a message with tag 5, and waits for a receive of it",
			""},
		{WaitFacts{Pending: shared}, "rank 0 waits for rank 2 in Bcast by shared, call 3 in communicator 1", ""},
		{WaitFacts{Pending: sends, Unacknowledged: true}, "rank 0 waits for acknowledgements from rank 2", ""},
	} {
		if got := tt.facts.Text(); got != tt.text {
			t.Errorf("says %q\nwant %q", got, tt.text)
		}
		if got := tt.facts.TextAt(4 * time.Second); tt.textAt != "" && got != tt.textAt {
			t.Errorf("says %q\nwant %q", got, tt.textAt)
		}
	}
}

// TestRemainsAtPeer checks that only a send whose SEND_REQUEST a deployed node may keep is left open.
func TestRemainsAtPeer(t *testing.T) {
	open := WaitFacts{Pending: Pending{Wait: handshake.Wait{State: handshake.WaitClear, Remote: 2}, Send: true},
		Link: HandshakeLink}
	if open.RemainsAtPeer() == "" {
		t.Error("a send leaves nothing open")
	}
	for name, change := range map[string]func(*WaitFacts){
		"a receive": func(w *WaitFacts) { w.Send = false }, "waits for " +
			"ACK": func(w *WaitFacts) { w.State = handshake.WaitAck },
		"queued": func(w *WaitFacts) { w.Queued = 1 }, "extended": func(w *WaitFacts) { w.Link = ExtendedLink },
		"numbered": func(w *WaitFacts) { w.Handshake.CanRevoke = true },
	} {
		w := open
		if change(&w); w.RemainsAtPeer() != "" {
			t.Errorf("%s: %s", name, w.RemainsAtPeer())
		}
	}
}
