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
	// oldSessions is the number of earlier sessions remembered for each rank (E6).
	oldSessions = 4
	// maxOpenMessages is the maximum number of open messages of all pairs together. Further messages are not followed.
	maxOpenMessages = 1 << 17
)

// extFlow tracks the packets from one address to another, and the messages sent in this direction.
type extFlow struct {
	t        *Tracker
	from, to netip.AddrPort
	counts   ExtendedPair
	session  protocol.Session
	old      [oldSessions]protocol.Session
	numbers  numberSet
	open     map[uint32]*extMessage
	// retransmitted, lost and copied count the retransmitted, lost and duplicated packets and list the first ones.
	retransmitted, lost, copied packetSample
	// gone counts packets that were lost between the vantage points goneFrom and goneTo, as several recordings show.
	gone             packetSample
	goneFrom, goneTo string
	bye              bool
	// blind is true if packets of the pair were on the wire but are not in the recording, which therefore cannot show
	// losses.
	blind bool
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
	number                uint32
	length, comm, tag     uint32
	eager, asked, cleared bool
	takes                 uint32 // length accepted by the receiver
	got                   uint64
	firstPacket           int64
	begun, last           time.Time
	matched               time.Time // time of CLEAR_TO_SEND
	end                   bool      // the last byte was recorded
	beforeRecording       bool
}

// packet processes a valid packet.
func (f *extFlow) packet(e *Event, back *extFlow) {
	x := e.Extended
	h := &x.Header
	f.counts.Src, f.counts.Dst = h.Src, h.Dst
	f.counts.Packets++
	if !f.inSession(e, back) {
		return
	}
	if h.Flags&protocol.FlagRetransmit != 0 {
		f.counts.Retransmissions++
		e.Retransmitted = true
	}
	if h.Type == protocol.Ack {
		f.counts.Acks++
	}
	if e.fate() == pcapng.Lost { // never reached its receiver
		f.gone.add(e)
		f.goneFrom, f.goneTo = e.Trail.From, e.Trail.To
		return
	}
	if h.Type == protocol.Error && h.Code() == protocol.CodeClose {
		f.closed(e, back)
		return
	}
	if !h.Numbered() {
		return
	}
	seen, behind := f.numbers.add(h.Number)
	switch {
	case e.Retransmitted && seen:
		f.retransmitted.add(e)
	case e.Retransmitted:
		// The original of this retransmission is not in the recording.
		f.counts.Lost++
		f.lost.add(e)
	case seen:
		f.counts.Duplicates++
		f.copied.add(e)
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
		f.begins(e)
	case protocol.ClearToSend:
		back.matched(e)
	case protocol.Error:
		f.failed(e, back)
	case protocol.Ack: // ACKs are not numbered
	}
}

// inSession records the sessions named by a packet. It returns false if the packet belongs to an earlier session, in
// which case ranks drop it.
func (f *extFlow) inSession(e *Event, back *extFlow) bool {
	h := &e.Extended.Header
	if h.Session == f.session {
		return true
	}
	if slices.Contains(f.old[:], h.Session) && h.Session != 0 {
		e.Extended.OldSession = true
		f.counts.OldSession++
		return false
	}
	e.Extended.NewSession = true
	f.counts.Sessions++
	if f.session != 0 {
		f.t.find(SessionChanged, e,
			"rank %d has a new session with rank %d: it was restarted, or has given rank %d up; %s",
			h.Src, h.Dst, h.Dst, begunText(len(f.open)+len(back.open)))
		copy(f.old[1:], f.old[:])
		f.old[0] = f.session
		f.drop()
		back.drop()
	}
	f.session, f.numbers, f.bye = h.Session, numberSet{}, false
	return true
}

// begins handles a SEND_REQUEST or DATA packet, the first of which begins a message.
func (f *extFlow) begins(e *Event) {
	h := &e.Extended.Header
	m := f.message(e, h.Message)
	if m == nil {
		return
	}
	m.length, m.comm, m.tag, m.last = h.Length, h.Comm, h.Tag, e.Time
	if h.Type == protocol.SendRequest {
		m.asked = true
	} else {
		m.eager = m.eager || h.Flags&protocol.FlagEager != 0
		// The message's SEND_REQUEST was sent before the recording began.
		m.beforeRecording = !m.eager && !m.asked
		m.got += uint64(e.Extended.Payload)
		m.end = m.end || uint64(h.Offset)+uint64(e.Extended.Payload) == uint64(h.Length)
		f.counts.Bytes += int64(e.Extended.Payload)
	}
	f.finish(m)
}

// matched handles a CLEAR_TO_SEND, the answer to a SEND_REQUEST of this flow.
func (f *extFlow) matched(e *Event) {
	h := &e.Extended.Header
	m := f.open[h.Message]
	if m == nil {
		return
	}
	m.cleared, m.takes, m.last, m.matched = true, h.Length, e.Time, e.Time
	f.finish(m)
}

// failed handles an ERROR sent in direction f.
func (f *extFlow) failed(e *Event, back *extFlow) {
	h := &e.Extended.Header
	switch h.Code() {
	case protocol.CodeCanceled:
		if m := back.open[h.Message]; m != nil {
			back.counts.Canceled++
			back.remove(m, Canceled)
		}
	case protocol.CodeTooLong:
		back.counts.Refused++
		if m := back.open[h.Message]; m != nil {
			f.t.find(Refused, e, "rank %d refused message %d of rank %d: its %d bytes are more than it takes", h.Src,
				h.Message, h.Dst, m.length).
				packets([]int64{m.firstPacket, e.Packet})
			back.remove(m, TooLong)
			return
		}
		f.t.find(Refused, e, "rank %d refused message %d of rank %d: it is longer than it takes", h.Src, h.Message,
			h.Dst)
	case protocol.CodeAborted:
		if m := f.open[h.Message]; m != nil {
			f.counts.Aborted++
			f.remove(m, Aborted)
		}
	case protocol.CodeCancel, protocol.CodeClose:
	}
}

// message returns the open message with the given number, which it creates if necessary. It returns nil if too many
// messages are open.
func (f *extFlow) message(e *Event, number uint32) *extMessage {
	if m := f.open[number]; m != nil || number == 0 {
		return m
	}
	if f.t.extOpen >= maxOpenMessages {
		f.counts.NotFollowed++
		return nil
	}
	f.counts.Messages++
	m := &extMessage{number: number, firstPacket: e.Packet, begun: e.Time}
	f.open[number] = m
	f.t.extOpen++
	return m
}

// finish removes the message if all of its bytes have been recorded.
func (f *extFlow) finish(m *extMessage) {
	want := m.length
	switch {
	case m.cleared:
		want = m.takes
	case m.asked && !m.eager:
		return // not matched yet
	}
	if m.got < uint64(want) && !(m.beforeRecording && m.end) {
		return
	}
	f.counts.Complete++
	f.remove(m, Complete)
}

func (f *extFlow) remove(m *extMessage, o Outcome) {
	f.report(m, o)
	delete(f.open, m.number)
	f.t.extOpen--
}

// drop ends all open messages because their session ended.
func (f *extFlow) drop() {
	f.reportAll(SessionEnded)
	f.counts.Ended += int64(len(f.open))
	f.t.extOpen -= len(f.open)
	clear(f.open)
}

// closed handles ERROR with CodeClose, which is not retransmitted.
func (f *extFlow) closed(e *Event, back *extFlow) {
	if f.bye {
		return
	}
	f.bye = true
	h := &e.Extended.Header
	f.t.find(ClosedByPeer, e, "rank %d closes its session with rank %d: it shuts down; %s", h.Src, h.Dst,
		begunText(len(f.open)+len(back.open)))
	f.drop()
	back.drop()
}

// corrupt handles a packet with a defect, such as a wrong checksum. Every rank drops such a packet.
func (f *extFlow) corrupt(e *Event) {
	f.counts.Packets++
	d := e.Extended.Defect
	if d.Kind == protocol.DefectChecksum {
		f.counts.Corrupt++
		f.t.find(Corrupt, e, "from %v: %v", e.Src, d.Err())
		return
	}
	f.counts.Bad++
	f.t.find(BadHeader, e, "from %v: %v", e.Src, d.Err())
}
