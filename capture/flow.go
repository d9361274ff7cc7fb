package capture

import (
	"fmt"
	"hash/crc32"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// duplicateWindow is the longest time after a packet at which an equal packet counts as a duplicate: half of the
// shortest time-out of any node. If the equal packet comes later, it is a retransmission.
const duplicateWindow = 50 * time.Millisecond

// flow tracks the messages sent in one direction of a conversation. SEND_REQUEST and DATA travel from address from to
// address to; CLEAR_TO_SEND and ACK travel in the opposite direction.
type flow struct {
	tracker  *Tracker
	from, to netip.AddrPort
	reverse  *flow // the messages of the other direction
	// pair is the receiving half of a live rank. It decides which bytes of which message a datagram carries.
	pair      *handshake.Pair
	node      *identity // the node at from
	hasSent   bool      // a message has been seen
	lastHeard time.Time // time of its last recorded datagram
	// findIPFragments is true once the flow's RunIP fragmentation has been reported. acked is the length of the longest
	// datagram of an acknowledged message.
	ipFragments bool
	ackedLen    int
	// lateRequest is a SEND_REQUEST seen while the current message lacks its ACK. It is either a late copy of the current
	// message's SEND_REQUEST or the first packet of the next message.
	lateRequest *Event

	msg            *message // in progress
	previous       *message // the previous message, for its copies and retransmissions
	retransmitting bool     // DATA of last is being retransmitted
	// withdrawn is one more than the number of the last revoked SEND_REQUEST.
	minNumber uint32
	// earlyClears counts CLEAR_TO_SENDs that answer no SEND_REQUEST seen so far.
	earlyClears earlyClears
	// lastChecksum and length are the checksum and length of the last continuation datagram. sums is reusable memory for the
	// checksums of a message.
	lastChecksum uint32
	lastLength   int
	sums         []uint32
	// unsolicited is the held finding about a CLEAR_TO_SEND or ACK that may have wedged the sender (trap 2).
	unsolicited *Finding

	acts   []handshake.Action
	header [protocol.HeaderLen]byte
}

// earlyClears describes CLEAR_TO_SENDs that answer no recorded SEND_REQUEST.
type earlyClears struct {
	n           int
	first, last time.Time
	packets     []int64
	header      protocol.Header
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// expectsPayload reports whether a datagram has no header and is payload of the current message. It decides as package
// handshake does in a live rank.
func (f *flow) expectsPayload(u *pcapng.Unit, h protocol.Header, defect protocol.Defect) bool {
	m := f.current()
	if m == nil || f.pair == nil {
		return false
	}
	w, _ := f.pair.RecvWait()
	if w.State != handshake.Receiving {
		return false
	}
	length := len(u.Data) + u.Truncated
	left := int64(w.Words)*protocol.WordLen - w.Got
	if !defect.OK() {
		// A datagram with a corrupt header counts as a packet if it resembles a packet and has a length at which
		// payload is not expected here.
		return !(length == protocol.HeaderLen && left != protocol.HeaderLen && resemblesHeader(u.Data))
	}
	ours := h.Src == uint32(m.Src) && h.Dst == uint32(m.Dst)
	switch {
	case !ours:
		return true
	case length == protocol.HeaderLen:
		return left == protocol.HeaderLen
	case h.Type == protocol.Data && h.Size == m.Words:
		return crc32.Checksum(u.Data[protocol.HeaderLen:], castagnoli) != m.sum
	}
	return true
}

// current returns the message to which payload without a header would belong.
func (f *flow) current() *message {
	if f.retransmitting {
		return f.previous
	}
	return f.msg
}

// onRequest handles a SEND_REQUEST.
func (f *flow) onRequest(e *Event) {
	f.hasSent, f.retransmitting = true, false
	f.reportUnsolicited()
	f.startLateMessage(e)
	switch m := f.msg; {
	case m != nil && f.onRepeatedRequest(m, e):
	case m == nil && f.previous != nil && e.fate() == pcapng.FateCopied:
		f.markDuplicate(f.previous, e)
	default:
		f.startMessage(e)
	}
}

// next begins a message with its SEND_REQUEST.
func (f *flow) startMessage(e *Event) {
	m := f.newMessage(e)
	f.recordArrival(m, e, protocol.SendRequest)
	m.request = e.Time
	m.addStep(e, "SEND_REQUEST", true, false)
	if o := f.reverse.msg; o != nil && o.state == requested && !o.crossed {
		o.crossed, m.crossed = true, true
		f.tracker.addFinding(CrossedRequests, e, "ranks %d and %d both asked to send, and neither had cleared the other", o.Src,
			m.Src).
			relateTo(o, o.firstPacket, e.Packet)
	}
	if f.earlyClears.n > 0 {
		f.tracker.addFinding(StaleHeader, e, "rank %d sent CLEAR_TO_SEND without a request of rank %d: it answered a "+
			"retransmitted SEND_REQUEST of an earlier message", m.Dst, m.Src).
			relateTo(m, f.earlyClears.packets...)
		f.assignEarlyClears(m)
	}
}

// startLateMessage decides that late began the next message, because the sender continues with that message. The ACK of the
// current message is not in the recording.
func (f *flow) startLateMessage(e *Event) {
	late, m := f.lateRequest, f.msg
	if late == nil || m == nil {
		return
	}
	if e.Header.Type == protocol.SendRequest && e.Time.Sub(late.Time) < duplicateWindow {
		return // another copy
	}
	f.lateRequest = nil
	m.inferLoss("ACK")
	f.endMessage(m, late, false)
	f.startMessage(late)
}

// markLateDuplicate decides that late was a copy of the current message's SEND_REQUEST.
func (f *flow) markLateDuplicate() {
	late := f.lateRequest
	f.lateRequest = nil
	f.markDuplicate(f.msg, late)
}

// onRepeatedRequest handles a SEND_REQUEST that arrives while a message is in progress. It returns false if the
// SEND_REQUEST begins a new message.
func (f *flow) onRepeatedRequest(m *message, e *Event) bool {
	since := e.Time.Sub(m.lastRequest)
	if m.clearRevoked && m.state == requested { // its CLEAR_TO_SEND was revoked
		m.clearRevoked = false
		m.lastRequest = e.Time
		m.requestSends = retransmissions{}
		m.requestSends.recordSend(e.Time)
		m.addStep(e, "SEND_REQUEST", true, false)
		return true
	}
	if e.Header.Size > m.requestNumber && m.state != received { // the revocation of m is not in the recording
		m.setProblem("withdrawn by its sender")
		m.requestRevoked = true
		f.endMessage(m, e, false)
		return false
	}
	switch m.state {
	case requested, cleared:
		if m.crossed && m.state == requested && f.reverse.msg == nil {
			// A message in the other direction made an FPGA forget this request, and is now done.
			f.onRetransmission(m, e)
			break
		}
		if e.isCopy(since) {
			f.markDuplicate(m, e)
			break
		}
		if m.state == requested && since > newCallGap && m.requestSends.n >= deployedRetransmissions {
			m.nextCall, m.nextCallPacket = e.Time, e.Packet
			f.endMessage(m, e, false)
			return false
		}
		f.onRetransmission(m, e)
		if m.state == cleared && e.Time.Sub(m.lastClear) >= duplicateWindow {
			m.inferLoss("CLEAR_TO_SEND")
		}
	case receiving:
		if e.isCopy(e.Time.Sub(m.lastData)) {
			f.markDuplicate(m, e)
			break
		}
		m.setProblem("broken off by a new request")
		f.inferDataLoss(m)
		f.endMessage(m, e, false)
		return false
	default:
		if e.fate() == pcapng.FateCopied {
			f.markDuplicate(m, e)
			return true
		}
		if e.isCopy(since) && f.lateRequest == nil {
			f.lateRequest = new(*e)
			f.lateRequest.Data, f.lateRequest.Trail = nil, nil
		}
		if f.lateRequest != nil && e.isCopy(since) {
			e.Message, e.Duplicate = m.ID, true
			return true
		}
		// The peer does one thing at a time, so it must have received the ACK, which is not in the recording.
		m.inferLoss("ACK")
		f.endMessage(m, e, false)
		return false
	}
	m.lastRequest = e.Time
	return true
}

// onClear handles a CLEAR_TO_SEND.
func (f *flow) onClear(e *Event) {
	f.reportUnsolicited()
	f.startLateMessage(e)
	m := f.msg
	if m != nil && int(e.Header.Src) != m.Dst { // not the rank that was asked; already reported
		e.Reason = handshake.ReasonSourceRank
		return
	}
	if f.minNumber > 0 && e.Header.Size < f.minNumber || m != nil && m.clearRevoked {
		e.Reason = handshake.ReasonStale // answers a revoked SEND_REQUEST
		return
	}
	if m == nil && f.previous != nil && e.fate() == pcapng.FateCopied {
		f.markDuplicate(f.previous, e)
		f.holdUnsolicited()
		return
	}
	if m == nil {
		f.retransmitting = false
		if f.earlyClears.n == 0 {
			f.earlyClears.first, f.earlyClears.header = e.Time, e.Header
		}
		f.earlyClears.n++
		f.earlyClears.last = e.Time
		if len(f.earlyClears.packets) < maxPackets {
			f.earlyClears.packets = append(f.earlyClears.packets, e.Packet)
		}
		e.Reason = handshake.ReasonStale
		return
	}
	f.recordArrival(m, e, protocol.ClearToSend)
	switch since := e.Time.Sub(m.lastClear); {
	case m.state == requested:
		m.state, m.clear = cleared, e.Time
		m.addStep(e, "CLEAR_TO_SEND", false, false)
		f.checkDatatype(m, e)
	case e.isCopy(since):
		f.markDuplicate(m, e)
		f.holdUnsolicited()
	default:
		f.onRetransmission(m, e)
		if m.state == received {
			m.inferLoss("DATA")
		}
	}
	m.lastClear = e.Time
}

// assignEarlyClears assigns the early CLEAR_TO_SENDs to a message.
func (f *flow) assignEarlyClears(m *message) {
	m.state, m.clear, m.lastClear = cleared, f.earlyClears.first, f.earlyClears.last
	m.Retransmissions += f.earlyClears.n - 1
	m.clearedByStale = true
	for i, packet := range f.earlyClears.packets {
		if len(m.Steps) < m.keep {
			at := f.earlyClears.first
			if i > 0 {
				at = f.earlyClears.last
			}
			m.Steps = append(m.Steps,
				Step{Packet: packet, Packets: 1, Time: at, End: at, Type: "CLEAR_TO_SEND", Retransmitted: i > 0})
		}
	}
	f.earlyClears = earlyClears{packets: f.earlyClears.packets[:0]}
}

// onAck handles an ACK.
func (f *flow) onAck(e *Event) {
	m := f.msg
	if f.lateRequest != nil && m != nil {
		f.markLateDuplicate()
	}
	switch {
	case m != nil && int(e.Header.Src) != m.Dst:
		e.Reason = handshake.ReasonSourceRank
		return
	case m == nil && f.retransmitting:
		// This is the ACK of the last message's retransmission.
		f.retransmitting = false
		f.recordArrival(f.previous, e, protocol.Ack)
		f.onRetransmission(f.previous, e)
		return
	case m == nil && f.previous != nil && e.isCopy(e.Time.Sub(f.previous.ack)),
		m != nil && f.previous != nil && m.state == requested && e.fate() == pcapng.FateCopied:
		f.markDuplicate(f.previous, e)
		f.holdUnsolicited()
		return
	case m == nil || m.state == requested:
		e.Reason = handshake.ReasonStale
		finding := f.tracker.addFinding(StaleHeader, e, "rank %d sent ACK to rank %d, which had sent it nothing", e.Header.Src,
			e.Header.Dst)
		if m != nil {
			finding.relateTo(m, e.Packet)
		}
		f.holdUnsolicited()
		return
	case len(m.knownLosses) > 0 && f.recordArrival(m, e, protocol.Ack):
		if m.inferredLoss == firstDataDatagram || m.inferredLoss == dataDatagram {
			m.inferredLoss, m.progressAtLoss = "", nil
		}
	case m.state == cleared:
		m.inferLoss("DATA")
	case m.state == receiving && !m.explained:
		f.inferDataLoss(m)
	}
	if len(m.knownLosses) == 0 {
		f.recordArrival(m, e, protocol.Ack)
	}
	m.ack = e.Time
	f.ackedLen = max(f.ackedLen, m.longestDatagram)
	m.addStep(e, "ACK", false, false)
	f.checkDatatype(m, e)
	if m.dataEnd.IsZero() {
		m.dataEnd = m.lastData
	}
	f.endMessage(m, e, true)
}

// markDuplicate marks an event as a duplicate.
func (f *flow) markDuplicate(m *message, e *Event) {
	e.Message, e.Duplicate = m.ID, true
	m.addStep(e, e.Header.Type.String(), e.Header.Type == protocol.SendRequest || e.Header.Type == protocol.Data, true)
	harm := ""
	if e.Header.Type == protocol.Data && m.isFragmented() {
		// The duplicate explains all surplus payload from here on.
		m.explained = true
		m.setProblem("DATA was delivered twice")
		harm = fmt.Sprintf(", and has %d datagrams", f.shape().NumDatagrams(m.Words)) +
			f.harmText(m, "", "the second header", "")
	}
	text := fmt.Sprintf("within %v", duplicateWindow)
	if e.fate() == pcapng.FateCopied {
		text = fmt.Sprintf("at %s: its copy was made behind %s", e.Trail.To, e.Trail.From)
	}
	f.tracker.addFinding(DuplicatePacket, e, "%v arrived twice %s%s", e.Header, text, harm).relateTo(m, e.Packet)
}

// checkDatatype compares the datatype of an answer with the datatype of the request.
func (f *flow) checkDatatype(m *message, e *Event) {
	call := e.Header.Call
	if call.IsRecv() {
		call = call.Counterpart()
	}
	if call == m.call || m.hasTypeMismatch {
		return
	}
	m.hasTypeMismatch = true
	m.setProblem("INT against FLOAT")
	f.tracker.addFinding(DatatypeMismatch, e, "rank %d sends with %v, but %v says %v: INT never matches FLOAT", m.Src, m.call,
		e.Header.Type, e.Header.Call).relateTo(m, m.firstPacket, e.Packet)
}
