package capture

import (
	"net/netip"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Tracking of the extended profile. Its packets describe themselves, so no state machine is needed: the tracker counts
// packets and keeps open messages.

const (
	// maxOldSessions is the number of earlier sessions remembered for each rank (E6).
	maxOldSessions = 4
	// maxOpenMessages is the maximum number of open messages of all pairs together. Further messages are not followed.
	maxOpenMessages = 1 << 17
)

// extFlow tracks the packets from one address to another, and the messages sent in this direction.
type extFlow struct {
	tracker         *Tracker
	from, to        netip.AddrPort
	counts          ExtendedPair
	session         protocol.Session
	earlierSessions [maxOldSessions]protocol.Session
	seenNumbers     numberSet
	openMessages    map[uint32]*extMessage
	// retransmitted, lost and copied count the retransmitted, lost and duplicated packets and list the first ones.
	retransmitted, lost, duplicated packetSample
	// knownLosses counts packets that were lost between the vantage points lostFrom and lostTo, as several recordings show.
	knownLosses      packetSample
	lostFrom, lostTo string
	isClosed         bool
	// hasGaps is true if packets of the pair were on the wire but are not in the recording, which therefore cannot show
	// losses.
	hasGaps bool
}

// packetSample counts packets and keeps the numbers of the first ones.
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

// packet processes a valid packet.
func (f *extFlow) onPacket(e *Event, back *extFlow) {
	x := e.Extended
	h := &x.Header
	f.counts.Src, f.counts.Dst = h.Src, h.Dst
	f.counts.Packets++
	if !f.enterSession(e, back) {
		return
	}
	if h.Flags&protocol.FlagRetransmit != 0 {
		f.counts.Retransmissions++
		e.Retransmitted = true
	}
	if h.Type == protocol.Ack {
		f.counts.Acks++
	}
	if e.fate() == pcapng.FateLost { // never reached its receiver
		f.knownLosses.add(e)
		f.lostFrom, f.lostTo = e.Trail.From, e.Trail.To
		return
	}
	if h.Type == protocol.Error && h.Code() == protocol.CodeClose {
		f.onClose(e, back)
		return
	}
	if !h.IsNumbered() {
		return
	}
	seen, behind := f.seenNumbers.add(h.Number)
	switch {
	case e.Retransmitted && seen:
		f.retransmitted.add(e)
	case e.Retransmitted:
		// The original of this retransmission is not in the recording.
		f.counts.Lost++
		f.lost.add(e)
	case seen:
		f.counts.Duplicates++
		f.duplicated.add(e)
		e.Duplicate = true
	case behind:
		f.counts.OutOfOrder++
		x.OutOfOrder = true
	}
	if seen {
		return
	}
	switch h.Type {
	case protocol.SendRequest, protocol.Data:
		f.onRequestOrData(e)
	case protocol.ClearToSend:
		back.onClear(e)
	case protocol.Error:
		f.onError(e, back)
	case protocol.Ack: // ACKs are not numbered
	}
}

// enterSession records the sessions named by a packet. It returns false if the packet belongs to an earlier session, in
// which case ranks drop it.
func (f *extFlow) enterSession(e *Event, back *extFlow) bool {
	h := &e.Extended.Header
	if h.Session == f.session {
		return true
	}
	if slices.Contains(f.earlierSessions[:], h.Session) && h.Session != 0 {
		e.Extended.OldSession = true
		f.counts.OldSession++
		return false
	}
	e.Extended.NewSession = true
	f.counts.Sessions++
	if f.session != 0 {
		f.tracker.addFinding(SessionChanged, e,
			"rank %d has a new session with rank %d: it was restarted, or has given rank %d up; %s",
			h.Src, h.Dst, h.Dst, endedMessagesText(len(f.openMessages)+len(back.openMessages)))
		copy(f.earlierSessions[1:], f.earlierSessions[:])
		f.earlierSessions[0] = f.session
		f.dropOpen()
		back.dropOpen()
	}
	f.session, f.seenNumbers, f.isClosed = h.Session, numberSet{}, false
	return true
}

// onRequestOrData handles a SEND_REQUEST or DATA packet, the first of which begins a message.
func (f *extFlow) onRequestOrData(e *Event) {
	h := &e.Extended.Header
	m := f.openMessage(e, h.Message)
	if m == nil {
		return
	}
	m.length, m.comm, m.tag, m.last = h.Length, h.Comm, h.Tag, e.Time
	if h.Type == protocol.SendRequest {
		m.requestSeen = true
	} else {
		m.eager = m.eager || h.Flags&protocol.FlagEager != 0
		// The message's SEND_REQUEST was sent before the recording began.
		m.beforeRecording = !m.eager && !m.requestSeen
		m.receivedBytes += uint64(e.Extended.Payload)
		m.lastByteSeen = m.lastByteSeen || uint64(h.Offset)+uint64(e.Extended.Payload) == uint64(h.Length)
		f.counts.Bytes += int64(e.Extended.Payload)
	}
	f.finishIfComplete(m)
}

// matched handles a CLEAR_TO_SEND, the answer to a SEND_REQUEST of this flow.
func (f *extFlow) onClear(e *Event) {
	h := &e.Extended.Header
	m := f.openMessages[h.Message]
	if m == nil {
		return
	}
	m.cleared, m.acceptedLen, m.last, m.matchTime = true, h.Length, e.Time, e.Time
	f.finishIfComplete(m)
}

// onError handles an ERROR sent in direction f.
func (f *extFlow) onError(e *Event, back *extFlow) {
	h := &e.Extended.Header
	switch h.Code() {
	case protocol.CodeCanceled:
		if m := back.openMessages[h.Message]; m != nil {
			back.counts.Canceled++
			back.endMessage(m, MessageCanceled)
		}
	case protocol.CodeTooLong:
		back.counts.Refused++
		if m := back.openMessages[h.Message]; m != nil {
			f.tracker.addFinding(RefusedMessage, e, "rank %d refused message %d of rank %d: its %d bytes are more than it takes", h.Src,
				h.Message, h.Dst, m.length).
				setPackets([]int64{m.firstPacket, e.Packet})
			back.endMessage(m, MessageTooLong)
			return
		}
		f.tracker.addFinding(RefusedMessage, e, "rank %d refused message %d of rank %d: it is longer than it takes", h.Src, h.Message,
			h.Dst)
	case protocol.CodeAborted:
		if m := f.openMessages[h.Message]; m != nil {
			f.counts.Aborted++
			f.endMessage(m, MessageAborted)
		}
	case protocol.CodeCancel, protocol.CodeClose:
	}
}

// openMessage returns the open message with the given number, which it creates if necessary. It returns nil if too many
// messages are open.
func (f *extFlow) openMessage(e *Event, number uint32) *extMessage {
	if m := f.openMessages[number]; m != nil || number == 0 {
		return m
	}
	if f.tracker.extOpenMessages >= maxOpenMessages {
		f.counts.NotFollowed++
		return nil
	}
	f.counts.Messages++
	m := &extMessage{number: number, firstPacket: e.Packet, beginTime: e.Time}
	f.openMessages[number] = m
	f.tracker.extOpenMessages++
	return m
}

// finishIfComplete removes the message if all of its bytes have been recorded.
func (f *extFlow) finishIfComplete(m *extMessage) {
	want := m.length
	switch {
	case m.cleared:
		want = m.acceptedLen
	case m.requestSeen && !m.eager:
		return // not matched yet
	}
	if m.receivedBytes < uint64(want) && !(m.beforeRecording && m.lastByteSeen) {
		return
	}
	f.counts.Complete++
	f.endMessage(m, MessageComplete)
}

func (f *extFlow) endMessage(m *extMessage, o Outcome) {
	f.report(m, o)
	delete(f.openMessages, m.number)
	f.tracker.extOpenMessages--
}

// drop ends all open messages because their session ended.
func (f *extFlow) dropOpen() {
	f.reportAll(SessionEnded)
	f.counts.Ended += int64(len(f.openMessages))
	f.tracker.extOpenMessages -= len(f.openMessages)
	clear(f.openMessages)
}

// onClose handles ERROR with CodeClose, which is not retransmitted.
func (f *extFlow) onClose(e *Event, back *extFlow) {
	if f.isClosed {
		return
	}
	f.isClosed = true
	h := &e.Extended.Header
	f.tracker.addFinding(ClosedByPeer, e, "rank %d closes its session with rank %d: it shuts down; %s", h.Src, h.Dst,
		endedMessagesText(len(f.openMessages)+len(back.openMessages)))
	f.dropOpen()
	back.dropOpen()
}

// onCorrupt handles a packet with a defect, such as a wrong checksum. Every rank drops such a packet.
func (f *extFlow) onCorrupt(e *Event) {
	f.counts.Packets++
	d := e.Extended.Defect
	if d.Kind == protocol.DefectChecksum {
		f.counts.Corrupt++
		f.tracker.addFinding(CorruptPacket, e, "from %v: %v", e.Src, d.Err())
		return
	}
	f.counts.Bad++
	f.tracker.addFinding(BadHeader, e, "from %v: %v", e.Src, d.Err())
}
