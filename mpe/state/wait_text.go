package state

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Pending is an operation that has not ended, and the wait that it is in.
type Pending struct {
	handshake.Wait
	// Send is the direction. Posted: it is a receive that no message has matched;
	// AnySource: from any source, and Remote is undefined.
	Send, Posted, AnySource bool
	// Queued is how many operations of the same pair and direction are ahead of one
	// whose handshake has not begun.
	Queued int
	// Call is the collective call that waits for Remote by shared buffers, without a message; nil otherwise.
	Call *collective.Origin
}

// WaitFacts has what a wait is put into words by. An engine copies it with its lock held; the words are made without.
type WaitFacts struct {
	Pending
	// Began is when the operation was posted, and Tag and Comm are those by which it matches.
	Began handshake.Instant
	Tag   int
	Comm  uint32
	// Of is the collective call that a message belongs to, if InCall.
	Of     collective.Origin
	InCall bool
	// Detached: the call of a send has ended, and its transfer goes on. Discarded: its program has ended.
	Detached, Discarded bool
	// Unacknowledged: no message waits, but packets that end earlier ones.
	Unacknowledged bool
	// Link says which of Handshake and Extended has the peer's part.
	Link      LinkKind
	Handshake HandshakeFacts
	Extended  ExtendedFacts
}

// LinkKind is the kind of state machine that a peer has.
type LinkKind uint8

// The kinds of links. NoLink: the wait is for this rank, or for any.
const (
	NoLink LinkKind = iota
	HandshakeLink
	ExtendedLink
)

// HandshakeFacts are what is known of a peer of the cloudfpga or v0.9 profile.
type HandshakeFacts struct {
	Profile protocol.Profile
	Address string
	// Heard: a packet has arrived. Foreign: packets of the extended profile arrive.
	Heard, Foreign bool
	// AsksOnce: the peer asks to send once only, and may have asked before this process started.
	AsksOnce bool
	// Numbered: the peer learns that a send was cancelled.
	Numbered bool
	// Ahead is the receive that the pair has, if Receiving; its message is discarded if Discards. SendDiscarded: the
	// pair's send is one of a program that has ended.
	Ahead                              handshake.Wait
	Receiving, Discards, SendDiscarded bool
}

// ExtendedFacts are what is known of a peer of the extended profile.
type ExtendedFacts struct {
	// Send is the state of a send.
	Send extended.SendState
	// Connected: a packet has arrived. Otherwise Version is that of packets of another version, or 0.
	Connected bool
	Version   byte
	// NoCredit: the peer accepts no more messages for now.
	NoCredit bool
}

// Text puts the wait into words, without its age.
func (w *WaitFacts) Text() string {
	if w.Unacknowledged {
		return fmt.Sprintf("rank %d has sent rank %d what it has not acknowledged", w.Local, w.Remote)
	}
	text := w.TextAt(w.Since)
	switch {
	case w.Call != nil:
	case w.InCall:
		text += w.Of.OfCall()
	case w.Detached && w.Discarded:
		text += ", of a program that has ended"
	case w.Detached:
		text += ", whose call has returned"
	}
	return text
}

// TextAt puts the wait into words, as of now. As of its beginning, its age is left out.
func (w *WaitFacts) TextAt(now handshake.Instant) string {
	var s string
	switch {
	case w.Call != nil:
		s = fmt.Sprintf("rank %d %s rank %d%s", w.Local, handshake.WaitsFor(now-w.Since), w.Remote, w.Call.OfAwait())
	case w.Link == ExtendedLink:
		s = w.Extended.text(w, now)
	case w.Link == HandshakeLink:
		s = w.Handshake.text(w, now)
	case w.Posted:
		s = w.posted(now)
	default:
		s = fmt.Sprintf("rank %d has sent itself a message with tag %d, and %s a receive of it", w.Local, w.Tag,
			handshake.WaitsFor(now-w.Since))
	}
	if w.Queued > 0 {
		others := "others"
		if w.Queued == 1 {
			others = "other"
		}
		if now > w.Since {
			others += fmt.Sprintf(" for %v", handshake.Round(now-w.Began))
		}
		s = fmt.Sprintf("queued behind %d %s, and %s", w.Queued, others, s)
	}
	return s
}

// LeavesOpen returns what a send of a profile without cancellation leaves at its peer when it ends after its
// SEND_REQUEST, or "": a deployed node keeps that, and answers it when it receives.
func (w *WaitFacts) LeavesOpen() string {
	if !w.Send || w.State != handshake.WaitClear || w.Queued > 0 || w.Link != HandshakeLink || w.Handshake.Numbered {
		return ""
	}
	return fmt.Sprintf("rank %d keeps the SEND_REQUEST if it has arrived: when it receives from rank %d, it waits "+
		"for DATA until "+
		"rank %d sends another message of this datatype: send one, or restart its program or role", w.Remote, w.Local,
		w.Local)
}

// posted puts into words that no message has matched a receive.
func (w *WaitFacts) posted(now handshake.Instant) string {
	source, tag, comm, of := int(w.Remote), w.Tag, w.Comm, ""
	if w.AnySource {
		source = int(match.AnySource)
	}
	if w.InCall { // the tag says nothing to a reader: see E51
		tag, comm, of = int(match.AnyTag), 0, w.Of.Of()
	}
	return fmt.Sprintf("rank %d %s a message%s%s", w.Local, handshake.WaitsFor(now-w.Since), DescribeMatch(source, tag,
		comm), of)
}

// DescribeMatch puts what a receive waits for into words.
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

func (h *HandshakeFacts) text(w *WaitFacts, now handshake.Instant) string {
	const discarded = ", for an operation that was aborted: it is discarded"
	s := w.Describe(now) + h.silence(w)
	switch {
	case w.State == handshake.Held && h.Discards:
		return s + discarded
	case w.Queued > 0 && h.SendDiscarded:
		return s + ", of a program that has ended"
	case !w.Posted || !h.Receiving:
		return s
	}
	// The receive is behind that one.
	if now == w.Since { // without ages
		now = h.Ahead.Since
	}
	s = h.Ahead.Describe(now)
	if h.Discards {
		s += discarded
	}
	return s
}

// silence says what is known of a peer whose packets do not arrive, or are of another profile.
func (h *HandshakeFacts) silence(w *WaitFacts) string {
	switch {
	case h.Foreign:
		return fmt.Sprintf("; rank %d sends packets of profile extended, and profile %v is configured for it here: "+
			"give both sides the same profile", w.Remote, h.Profile)
	case h.Heard || h.Address == "" || w.State == handshake.Held:
		return ""
	}
	s := "; no packet has ever come from " + h.Address
	if !w.Send && h.AsksOnce {
		s += fmt.Sprintf(". If rank %d asked to send before this process started, it asks no more: restart its role "+
			"or program", w.Remote)
	}
	return s
}

func (x *ExtendedFacts) text(w *WaitFacts, now handshake.Instant) string {
	switch {
	case w.Send:
		return x.send(w, now)
	case !w.Posted:
		return w.Describe(now)
	}
	s := w.posted(now)
	switch {
	case x.Connected:
	case x.Version != 0:
		s += "; " + x.otherVersion(w.Remote)
	default:
		s += fmt.Sprintf("; no packet has ever come from rank %d", w.Remote)
	}
	return s
}

// otherVersion says what the versions of both sides are, and what to do.
func (x *ExtendedFacts) otherVersion(rank uint32) string {
	return fmt.Sprintf("rank %d speaks version 0x%02x of the extended profile, and this rank version 0x%02x: use "+
		"the same release of zrlmpid for both",
		rank, x.Version, protocol.ExtVersion)
}

func (x *ExtendedFacts) send(w *WaitFacts, now handshake.Instant) string {
	st := &x.Send
	waitsFor, holds := handshake.WaitsFor(now-st.Since), handshake.HoldsSend(st.Remote, now-st.Since)
	switch st.State {
	case extended.WaitClear:
		of := fmt.Sprintf(" with tag %d", st.Tag)
		if w.InCall {
			of = w.Of.Of()
		}
		return fmt.Sprintf("rank %d %s rank %d to post the receive of %d bytes%s", st.Local, waitsFor, st.Remote,
			st.Length, of)
	case extended.Canceling:
		return fmt.Sprintf("rank %d %s rank %d to confirm that a message of %d bytes is cancelled", st.Local, waitsFor,
			st.Remote, st.Length)
	case extended.Eager, extended.Sending:
		return fmt.Sprintf("rank %d %s ACK from rank %d (%d of %d bytes are acknowledged)", st.Local, waitsFor,
			st.Remote, st.Done, st.Length)
	}
	switch {
	case !x.Connected && x.Version != 0:
		return fmt.Sprintf("rank %d %s an answer from rank %d: %s", st.Local, waitsFor, st.Remote,
			x.otherVersion(st.Remote))
	case !x.Connected:
		return fmt.Sprintf("rank %d %s an answer from rank %d; no packet has ever come from it", st.Local, waitsFor,
			st.Remote)
	case x.NoCredit:
		return fmt.Sprintf("rank %d %s: as many of its messages as rank %d allows wait there for receives", st.Local,
			holds, st.Remote)
	}
	return fmt.Sprintf("rank %d %s, behind others", st.Local, holds)
}

// LeftOpen is an operation with a peer that a program left open when it ended.
type LeftOpen uint8

// The operations that are left open.
const (
	LeftNothing LeftOpen = iota
	// LeftSend: the peer may ask for its DATA, or has not acknowledged it.
	LeftSend
	// LeftReceive: the peer was cleared to send a message.
	LeftReceive
	// LeftNext: a message that begins now is for the program that is gone.
	LeftNext
)

// text puts the operation into words; empty for none.
func (l LeftOpen) text(rank int) string {
	switch l {
	case LeftSend:
		return fmt.Sprintf("a send of a program that has ended is open: rank %d may ask for its DATA, or has not "+
			"acknowledged it", rank)
	case LeftReceive:
		return fmt.Sprintf("rank %d was cleared to send a message to an operation that was aborted: it is "+
			"discarded", rank)
	case LeftNext:
		return fmt.Sprintf("a message of rank %d that begins now is for a program that has ended: it is "+
			"discarded", rank)
	}
	return ""
}
