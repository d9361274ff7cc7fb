package state

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Pending describes a pending operation and what it waits for.
type Pending struct {
	handshake.Wait
	// Send distinguishes sends from receives. Posted marks a receive that no message has matched. AnySource marks a
	// receive from any source, for which Remote is undefined.
	Send, Posted, AnySource bool
	// Queued is the number of operations ahead of this one in the same direction, or 0 once its handshake has begun.
	Queued int
	// Call is the collective call of an operation that waits for Remote in shared buffers, without a message. It is nil
	// for other operations.
	Call *collective.Origin
}

// WaitFacts holds the facts that describe a wait. An engine copies them with its lock held; formatting the description
// then needs no lock.
type WaitFacts struct {
	Pending
	// PostedAt is the time at which the operation was posted. Tag and Comm are the tag and communicator that it matches
	// by.
	PostedAt handshake.Instant
	Tag      int
	Comm     uint32
	// If InCall is set, CallOrigin is the collective call that the message belongs to.
	CallOrigin collective.Origin
	InCall     bool
	// Detached means that a send continues although its call has returned. Discarded means that the operation's program
	// no longer exists.
	Detached, Discarded bool
	// Unacknowledged means that no message is waiting, but that the peer has not acknowledged the last packets of
	// earlier messages.
	Unacknowledged bool
	// Link determines whether Handshake or Extended holds the facts about the peer.
	Link      LinkKind
	Handshake HandshakeFacts
	Extended  ExtendedFacts
}

// LinkKind is the kind of state machine that a link to a peer uses.
type LinkKind uint8

// These are the kinds of links. NoLink marks a wait for this rank itself, or for any rank.
const (
	NoLink LinkKind = iota
	HandshakeLink
	ExtendedLink
)

// HandshakeFacts holds the facts that explain a wait for a peer of the cloudfpga or v0.9 profile.
type HandshakeFacts struct {
	Profile protocol.Profile
	Address string
	// HasReceived means that a packet from the peer was received. ForeignProfile means that the peer sends packets of
	// the extended profile.
	HasReceived, ForeignProfile bool
	// RequestsOnce means that the peer sends SEND_REQUEST only once, possibly before this process started.
	RequestsOnce bool
	// CanRevoke means that the profile has a packet that notifies the peer of a cancelled send.
	CanRevoke bool
	// If Receiving is set, CurrentRecv is the receive in the handshake pair, and RecvDiscarded means that its message
	// will be discarded. SendDiscarded means that the send in the pair belongs to a program that no longer exists.
	CurrentRecv                             handshake.Wait
	Receiving, RecvDiscarded, SendDiscarded bool
}

// ExtendedFacts holds the facts that explain a wait for a peer of the extended profile.
type ExtendedFacts struct {
	// Send is the state of a send.
	Send extended.SendState
	// Connected means that a packet of this protocol version was received. If not, Version is the protocol version of
	// the peer's packets, or 0 if there were none.
	Connected bool
	Version   byte
	// NoCredit means that the peer accepts no more messages for now.
	NoCredit bool
}

// Text describes the wait, without its duration.
func (w *WaitFacts) Text() string {
	if w.Unacknowledged {
		return fmt.Sprintf("rank %d waits for acknowledgements from rank %d", w.Local, w.Remote)
	}
	text := w.TextAt(w.Since)
	switch {
	case w.Call != nil:
	case w.InCall:
		text += w.CallOrigin.CallSuffix()
	case w.Detached && w.Discarded:
		text += ", of a program that no longer exists"
	case w.Detached:
		text += ", whose call has returned"
	}
	return text
}

// TextAt describes the wait as it is at the time now. If now is the beginning of the wait, TextAt omits the duration.
func (w *WaitFacts) TextAt(now handshake.Instant) string {
	var s string
	switch {
	case w.Call != nil:
		s = fmt.Sprintf("rank %d %s rank %d%s", w.Local, handshake.DescribeWait(now-w.Since), w.Remote, w.Call.AwaitSuffix())
	case w.Link == ExtendedLink:
		s = w.Extended.describe(w, now)
	case w.Link == HandshakeLink:
		s = w.Handshake.describe(w, now)
	case w.Posted:
		s = w.describePosted(now)
	default:
		s = fmt.Sprintf("rank %d has sent itself a message with tag %d, and %s a receive of it", w.Local, w.Tag,
			handshake.DescribeWait(now-w.Since))
	}
	if w.Queued > 0 {
		others := "others"
		if w.Queued == 1 {
			others = "other"
		}
		if now > w.Since {
			others += fmt.Sprintf(" for %v", handshake.Round(now-w.PostedAt))
		}
		s = fmt.Sprintf("queued behind %d %s, and %s", w.Queued, others, s)
	}
	return s
}

// RemainsAtPeer describes the effect on the peer if a send ends after its SEND_REQUEST and the profile has no
// cancellation: a deployed node keeps the request, and answers it when it receives. It returns "" if the peer keeps
// nothing.
func (w *WaitFacts) RemainsAtPeer() string {
	if !w.Send || w.State != handshake.WaitClear || w.Queued > 0 || w.Link != HandshakeLink || w.Handshake.CanRevoke {
		return ""
	}
	return fmt.Sprintf("rank %d keeps the SEND_REQUEST if it has received it: when it receives from rank %d, it waits "+
		"for DATA until "+
		"rank %d sends another message of this datatype: send one, or restart its program or role", w.Remote, w.Local,
		w.Local)
}

// describePosted describes what a receive that no message has matched is waiting for.
func (w *WaitFacts) describePosted(now handshake.Instant) string {
	source, tag, comm, of := int(w.Remote), w.Tag, w.Comm, ""
	if w.AnySource {
		source = int(match.AnySource)
	}
	if w.InCall { // the tag is meaningless to a reader: see E51
		tag, comm, of = int(match.AnyTag), 0, w.CallOrigin.MessageSuffix()
	}
	return fmt.Sprintf("rank %d %s a message%s%s", w.Local, handshake.DescribeWait(now-w.Since), DescribeMatch(source, tag,
		comm), of)
}

// DescribeMatch describes the source, tag and communicator that a receive matches: " from rank 2 with tag 7".
func DescribeMatch(source, tag int, comm uint32) string {
	s := " from any rank"
	if source != int(match.AnySource) {
		s = fmt.Sprintf(" from rank %d", source)
	}
	if tag != int(match.AnyTag) {
		s += fmt.Sprintf(" with tag %d", tag)
	}
	if comm != 0 {
		s += fmt.Sprintf(" in communicator %d", comm)
	}
	return s
}

func (h *HandshakeFacts) describe(facts *WaitFacts, now handshake.Instant) string {
	const discarded = ", for an operation that was aborted: it is discarded"
	s := facts.Describe(now) + h.silenceText(facts)
	switch {
	case facts.State == handshake.Held && h.RecvDiscarded:
		return s + discarded
	case facts.Queued > 0 && h.SendDiscarded:
		return s + ", of a program that no longer exists"
	case !facts.Posted || !h.Receiving:
		return s
	}
	// The receive is queued behind CurrentRecv.
	if now == facts.Since { // without ages
		now = h.CurrentRecv.Since
	}
	s = h.CurrentRecv.Describe(now)
	if h.RecvDiscarded {
		s += discarded
	}
	return s
}

// silenceText describes a peer that has never sent a usable packet, because it is silent or uses another profile.
func (h *HandshakeFacts) silenceText(facts *WaitFacts) string {
	switch {
	case h.ForeignProfile:
		return fmt.Sprintf("; rank %d sends packets of profile extended, and profile %v is configured for it here: "+
			"give both sides the same profile", facts.Remote, h.Profile)
	case h.HasReceived || h.Address == "" || facts.State == handshake.Held:
		return ""
	}
	s := "; no packet was ever received from " + h.Address
	if !facts.Send && h.RequestsOnce {
		s += fmt.Sprintf(". If rank %d asked to send before this process started, it asks no more: restart its role "+
			"or program", facts.Remote)
	}
	return s
}

func (x *ExtendedFacts) describe(facts *WaitFacts, now handshake.Instant) string {
	switch {
	case facts.Send:
		return x.describeSend(facts, now)
	case !facts.Posted:
		return facts.Describe(now)
	}
	s := facts.describePosted(now)
	switch {
	case x.Connected:
	case x.Version != 0:
		s += "; " + x.versionMismatch(facts.Remote)
	default:
		s += fmt.Sprintf("; no packet was ever received from rank %d", facts.Remote)
	}
	return s
}

// versionMismatch describes the protocol versions of both sides, and suggests a remedy.
func (x *ExtendedFacts) versionMismatch(rank uint32) string {
	return fmt.Sprintf("rank %d speaks version 0x%02x of the extended profile, and this rank version 0x%02x: use "+
		"the same release of zrlmpid for both",
		rank, x.Version, protocol.ExtVersion)
}

func (x *ExtendedFacts) describeSend(facts *WaitFacts, now handshake.Instant) string {
	st := &x.Send
	waitsFor, holds := handshake.DescribeWait(now-st.Since), handshake.DescribeHold(st.Remote, now-st.Since)
	switch st.State {
	case extended.WaitClear:
		of := fmt.Sprintf(" with tag %d", st.Tag)
		if facts.InCall {
			of = facts.CallOrigin.MessageSuffix()
		}
		return fmt.Sprintf("rank %d %s rank %d to post the receive of %d bytes%s", st.Local, waitsFor, st.Remote,
			st.Length, of)
	case extended.Canceling:
		return fmt.Sprintf("rank %d %s rank %d to confirm that a message of %d bytes is cancelled", st.Local, waitsFor,
			st.Remote, st.Length)
	case extended.Eager, extended.Sending:
		return fmt.Sprintf("rank %d %s ACK from rank %d (%d of %d bytes are acknowledged)", st.Local, waitsFor,
			st.Remote, st.BytesDone, st.Length)
	}
	switch {
	case !x.Connected && x.Version != 0:
		return fmt.Sprintf("rank %d %s an answer from rank %d: %s", st.Local, waitsFor, st.Remote,
			x.versionMismatch(st.Remote))
	case !x.Connected:
		return fmt.Sprintf("rank %d %s an answer from rank %d; no packet was ever received from it", st.Local, waitsFor,
			st.Remote)
	case x.NoCredit:
		return fmt.Sprintf("rank %d %s: as many of its messages as rank %d allows wait there for receives", st.Local,
			holds, st.Remote)
	}
	return fmt.Sprintf("rank %d %s, behind others", st.Local, holds)
}

// Unfinished is the kind of operation with a peer that an earlier program left unfinished.
type Unfinished uint8

// Operations left open.
const (
	UnfinishedNone Unfinished = iota
	// UnfinishedSend is a send whose DATA the peer may still request, or has not acknowledged.
	UnfinishedSend
	// UnfinishedRecv is a receive whose sender has already been cleared to send.
	UnfinishedRecv
	// UnfinishedNext means that the next message from the peer is meant for the earlier program.
	UnfinishedNext
)

// text describes the operation. It returns "" for UnfinishedNone.
func (l Unfinished) text(rank int) string {
	switch l {
	case UnfinishedSend:
		return fmt.Sprintf("a send of a program that no longer exists is open: rank %d may ask for its DATA, or has not "+
			"acknowledged it", rank)
	case UnfinishedRecv:
		return fmt.Sprintf("rank %d was cleared to send a message to an operation that was aborted: it is "+
			"discarded", rank)
	case UnfinishedNext:
		return fmt.Sprintf("a message of rank %d that begins now is for a program that no longer exists: it is "+
			"discarded", rank)
	}
	return ""
}
