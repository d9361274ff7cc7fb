package capture

import (
	"net/netip"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The extended profile needs no state machine, because its packets are self-describing: the tracker counts packets and
// remembers open messages.

const (
	// maxOldSessions is the number of earlier sessions remembered for each rank (E6).
	maxOldSessions = 4
	// maxOpenMessages is the maximum number of open messages of all pairs together. The tracker ignores further
	// messages.
	maxOpenMessages = 1 << 17
)

// extFlow tracks the packets sent from one address to another, and the messages that these packets carry.
type extFlow struct {
	tracker  *Tracker
	from, to netip.AddrPort
	counts   ExtendedPair
	// session is the source's current session, and earlierSessions its previous ones, newest first. seenNumbers and
	// isClosed belong to the current session; isClosed is set once the source has announced its end.
	session         protocol.Session
	earlierSessions [maxOldSessions]protocol.Session
	seenNumbers     numberSet
	openMessages    map[uint32]*extMessage
	// Packets that were retransmitted, lost or duplicated.
	retransmitted, lost, duplicated packetSample
	// hellos counts the HELLOs that name no session of the peer. lastHello is the time of the last one.
	hellos    packetSample
	lastHello time.Time
	// back is the flow in the opposite direction. plainBack is the opposite flow of the other profiles.
	back      *extFlow
	plainBack *flow
	// knownLosses counts the packets that were lost according to joined recordings. The last of them was lost between
	// the vantage points lostFrom and lostTo.
	knownLosses      packetSample
	lostFrom, lostTo string
	isClosed         bool
	// hasGaps is true if the recorder cut off some packets of the pair entirely, in which case a missing packet does
	// not prove a loss.
	hasGaps bool
}

// packetSample counts packets and keeps the numbers of the first few as examples.
type packetSample struct {
	n     int64
	list  []int64
	first time.Time
}

func (s *packetSample) add(e *Event) {
	if s.n == 0 {
		s.first = e.Time
	}
	if s.n++; len(s.list) < maxPackets {
		s.list = append(s.list, e.Packet)
	}
}

// extMessage is a message in progress.
type extMessage struct {
	number                      uint32
	length, comm, tag           uint32
	eager, requestSeen, cleared bool
	acceptedLen                 uint32 // length accepted by the receiver
	receivedBytes               uint64
	firstPacket                 int64
	beginTime, last             time.Time
	matchTime                   time.Time // time of CLEAR_TO_SEND
	lastByteSeen                bool      // the last byte was recorded
	beforeRecording             bool
}

// onPacket processes a valid packet.
func (f *extFlow) onPacket(event *Event, back *extFlow) {
	extended := event.Extended
	header := &extended.Header
	f.counts.Src, f.counts.Dst = header.Src, header.Dst
	f.counts.Packets++
	if !f.enterSession(event, back) {
		return
	}
	if header.Flags&protocol.FlagRetransmit != 0 {
		f.counts.Retransmissions++
		event.Retransmitted = true
	}
	if header.Type == protocol.Ack {
		f.counts.Acks++
		if header.Flags&protocol.FlagHello != 0 && header.PeerSession == 0 {
			f.hellos.add(event)
			f.lastHello = event.Time
		}
	}
	if event.fate() == pcapng.FateLost { // never reached its receiver
		f.knownLosses.add(event)
		f.lostFrom, f.lostTo = event.Trail.From, event.Trail.To
		return
	}
	if header.Type == protocol.Error && header.Code() == protocol.CodeClose {
		f.onClose(event, back)
		return
	}
	if !header.IsNumbered() {
		return
	}
	seen, behind := f.seenNumbers.add(header.Number)
	switch {
	case event.Retransmitted && seen:
		f.retransmitted.add(event)
	case event.Retransmitted:
		// The packet that this one retransmits is not in the recording.
		f.counts.Lost++
		f.lost.add(event)
	case seen:
		f.counts.Duplicates++
		f.duplicated.add(event)
		event.Duplicate = true
	case behind:
		f.counts.OutOfOrder++
		extended.OutOfOrder = true
	}
	if seen {
		return
	}
	switch header.Type {
	case protocol.SendRequest, protocol.Data:
		f.onRequestOrData(event)
	case protocol.ClearToSend:
		back.onClear(event)
	case protocol.Error:
		f.onError(event, back)
	case protocol.Ack: // ACKs are not numbered
	}
}

// enterSession records the session of a packet. It returns false if the packet belongs to an earlier session, because
// ranks drop such packets.
func (f *extFlow) enterSession(event *Event, back *extFlow) bool {
	header := &event.Extended.Header
	if header.Session == f.session {
		return true
	}
	if slices.Contains(f.earlierSessions[:], header.Session) && header.Session != 0 {
		event.Extended.OldSession = true
		f.counts.OldSession++
		return false
	}
	event.Extended.NewSession = true
	f.counts.Sessions++
	if f.session != 0 {
		f.tracker.addFinding(SessionChanged, event,
			"rank %d has a new session with rank %d: it was restarted, or has given rank %d up; %s",
			header.Src, header.Dst, header.Dst, endedMessagesText(len(f.openMessages)+len(back.openMessages)))
		copy(f.earlierSessions[1:], f.earlierSessions[:])
		f.earlierSessions[0] = f.session
		f.dropOpen()
		back.dropOpen()
	}
	f.session, f.seenNumbers, f.isClosed = header.Session, numberSet{}, false
	return true
}

// onRequestOrData handles a SEND_REQUEST or DATA packet. The first such packet of a message opens the message.
func (f *extFlow) onRequestOrData(event *Event) {
	header := &event.Extended.Header
	msg := f.openMessage(event, header.Message)
	if msg == nil {
		return
	}
	msg.length, msg.comm, msg.tag, msg.last = header.Length, header.Comm, header.Tag, event.Time
	if header.Type == protocol.SendRequest {
		msg.requestSeen = true
	} else {
		msg.eager = msg.eager || header.Flags&protocol.FlagEager != 0
		// The message's SEND_REQUEST was sent before the recording began.
		msg.beforeRecording = !msg.eager && !msg.requestSeen
		msg.receivedBytes += uint64(event.Extended.Payload)
		msg.lastByteSeen = msg.lastByteSeen || uint64(header.Offset)+uint64(event.Extended.Payload) == uint64(header.Length)
		f.counts.Bytes += int64(event.Extended.Payload)
	}
	f.finishIfComplete(msg)
}

// onClear handles a CLEAR_TO_SEND, which answers a SEND_REQUEST of this flow.
func (f *extFlow) onClear(event *Event) {
	h := &event.Extended.Header
	m := f.openMessages[h.Message]
	if m == nil {
		return
	}
	m.cleared, m.acceptedLen, m.last, m.matchTime = true, h.Length, event.Time, event.Time
	f.finishIfComplete(m)
}

// onError handles an ERROR packet sent in the direction of flow f.
func (f *extFlow) onError(event *Event, back *extFlow) {
	header := &event.Extended.Header
	switch header.Code() {
	case protocol.CodeCanceled:
		if m := back.openMessages[header.Message]; m != nil {
			back.counts.Canceled++
			back.endMessage(m, MessageCanceled)
		}
	case protocol.CodeTooLong:
		back.counts.Refused++
		if m := back.openMessages[header.Message]; m != nil {
			f.tracker.addFinding(RefusedMessage, event,
				"rank %d refused message %d of rank %d: its %d bytes are more than it takes", header.Src,
				header.Message, header.Dst, m.length).
				setPackets([]int64{m.firstPacket, event.Packet})
			back.endMessage(m, MessageTooLong)
			return
		}
		f.tracker.addFinding(RefusedMessage, event, "rank %d refused message %d of rank %d: it is longer than it takes",
			header.Src, header.Message,
			header.Dst)
	case protocol.CodeAborted:
		if m := f.openMessages[header.Message]; m != nil {
			f.counts.Aborted++
			f.endMessage(m, MessageAborted)
		}
	case protocol.CodeCancel, protocol.CodeClose:
	}
}

// openMessage returns the open message with the given number, and creates it if necessary. It returns nil for number 0,
// and if too many messages are open.
func (f *extFlow) openMessage(event *Event, number uint32) *extMessage {
	if m := f.openMessages[number]; m != nil || number == 0 {
		return m
	}
	if f.tracker.extOpenMessages >= maxOpenMessages {
		f.counts.NotFollowed++
		return nil
	}
	f.counts.Messages++
	m := &extMessage{number: number, firstPacket: event.Packet, beginTime: event.Time}
	f.openMessages[number] = m
	f.tracker.extOpenMessages++
	return m
}

// finishIfComplete ends the message if all of its bytes were recorded.
func (f *extFlow) finishIfComplete(msg *extMessage) {
	want := msg.length
	switch {
	case msg.cleared:
		want = msg.acceptedLen
	case msg.requestSeen && !msg.eager:
		return // not matched yet
	}
	if msg.receivedBytes < uint64(want) && !(msg.beforeRecording && msg.lastByteSeen) {
		return
	}
	f.counts.Complete++
	f.endMessage(msg, MessageComplete)
}

// endMessage reports a message and forgets it, so that the number of open messages stays bounded.
func (f *extFlow) endMessage(m *extMessage, o Outcome) {
	f.report(m, o)
	delete(f.openMessages, m.number)
	f.tracker.extOpenMessages--
}

// dropOpen ends all open messages with the outcome SessionEnded.
func (f *extFlow) dropOpen() {
	f.reportAll(SessionEnded)
	f.counts.Ended += int64(len(f.openMessages))
	f.tracker.extOpenMessages -= len(f.openMessages)
	clear(f.openMessages)
}

// onClose handles an ERROR with CodeClose. It reports only the first one of a session.
func (f *extFlow) onClose(event *Event, back *extFlow) {
	if f.isClosed {
		return
	}
	f.isClosed = true
	h := &event.Extended.Header
	f.tracker.addFinding(ClosedByPeer, event, "rank %d closes its session with rank %d: it shuts down; %s", h.Src, h.Dst,
		endedMessagesText(len(f.openMessages)+len(back.openMessages)))
	f.dropOpen()
	back.dropOpen()
}

// onCorrupt handles a packet with a defect, such as a wrong checksum. Every rank drops such a packet.
func (f *extFlow) onCorrupt(event *Event) {
	f.counts.Packets++
	defect := event.Extended.Defect
	if defect.Kind == protocol.DefectChecksum {
		f.counts.Corrupt++
		f.tracker.addFinding(CorruptPacket, event, "from %v: %v", event.Src, defect.Err())
		return
	}
	f.counts.Bad++
	f.tracker.addFinding(BadHeader, event, "from %v: %v", event.Src, defect.Err())
}
