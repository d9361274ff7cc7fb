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

// duplicateWindow is the time after a packet within which an equal packet counts as a duplicate made by the network. A
// later equal packet is a retransmission. The window is half of the shortest retransmission timeout of any node.
const duplicateWindow = 50 * time.Millisecond

// flow tracks the messages sent in one direction of a conversation. SEND_REQUEST and DATA travel from address from to
// address to; CLEAR_TO_SEND and ACK travel in the opposite direction.
type flow struct {
	tracker  *Tracker
	from, to netip.AddrPort
	reverse  *flow // the messages of the other direction
	// pair is the state machine that a live receiver would run. It determines the position of a datagram's payload in
	// the message.
	pair      *handshake.Pair
	node      *identity // the node at from
	hasSent   bool      // a message has been seen
	lastHeard time.Time // time of its last recorded datagram
	// ipFragments is true once IP fragmentation of this flow was reported. ackedLen is the length of the longest
	// datagram in all acknowledged messages.
	ipFragments bool
	ackedLen    int
	// lateRequest is a SEND_REQUEST seen before the ACK of the current message. It is either a late copy of the current
	// message's SEND_REQUEST or the first packet of the next message.
	lateRequest *Event

	msg            *message // in progress
	previous       *message // ended, but may still be copied or retransmitted
	retransmitting bool     // DATA of previous is being retransmitted
	// minNumber is one more than the number of the last revoked SEND_REQUEST.
	minNumber uint32
	// earlyClears describes the CLEAR_TO_SEND packets for which no SEND_REQUEST has been recorded so far.
	earlyClears earlyClears
	// lastChecksum and lastLength are the checksum and length of the last continuation datagram. sums is reusable
	// memory for the checksums of a message.
	lastChecksum uint32
	lastLength   int
	sums         []uint32
	// unsolicited is the finding held back about a CLEAR_TO_SEND or ACK that may have wedged the sender (trap 2 of the
	// protocol document).
	unsolicited *Finding

	acts   []handshake.Action
	header [protocol.HeaderLen]byte
}

// earlyClears describes CLEAR_TO_SEND packets for which no SEND_REQUEST was recorded.
type earlyClears struct {
	n           int
	first, last time.Time
	packets     []int64
	header      protocol.Header
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// expectsPayload reports whether a datagram is payload of the current message, without a header. It applies the rules
// that package handshake applies in a live rank.
func (f *flow) expectsPayload(unit *pcapng.Unit, header protocol.Header, defect protocol.Defect) bool {
	msg := f.current()
	if msg == nil || f.pair == nil {
		return false
	}
	w, _ := f.pair.RecvWait()
	if w.State != handshake.Receiving {
		return false
	}
	length := len(unit.Data) + unit.Truncated
	left := int64(w.Words)*protocol.WordLen - w.Got
	if !defect.OK() {
		// A datagram without a valid header is a corrupt packet, not payload, if it resembles a header and has the
		// length of a header, unless exactly that length of payload is left.
		return !(length == protocol.HeaderLen && left != protocol.HeaderLen && resemblesHeader(unit.Data))
	}
	ours := header.Src == uint32(msg.Src) && header.Dst == uint32(msg.Dst)
	switch {
	case !ours:
		return true
	case length == protocol.HeaderLen:
		return left == protocol.HeaderLen
	case header.Type == protocol.Data && header.Size == msg.Words:
		return crc32.Checksum(unit.Data[protocol.HeaderLen:], castagnoli) != msg.sum
	}
	return true
}

// current returns the message to which a payload without a header would belong.
func (f *flow) current() *message {
	if f.retransmitting {
		return f.previous
	}
	return f.msg
}

// onRequest handles a SEND_REQUEST.
func (f *flow) onRequest(event *Event) {
	f.hasSent, f.retransmitting = true, false
	f.reportUnsolicited()
	f.startLateMessage(event)
	switch m := f.msg; {
	case m != nil && f.onRepeatedRequest(m, event):
	case m == nil && f.previous != nil && event.fate() == pcapng.FateCopied:
		f.markDuplicate(f.previous, event)
	default:
		f.startMessage(event)
	}
}

// startMessage begins a message with its SEND_REQUEST.
func (f *flow) startMessage(event *Event) {
	msg := f.newMessage(event)
	f.recordArrival(msg, event, protocol.SendRequest)
	msg.request = event.Time
	msg.addStep(event, "SEND_REQUEST", true, false)
	if o := f.reverse.msg; o != nil && o.state == requested && !o.crossed {
		o.crossed, msg.crossed = true, true
		f.tracker.addFinding(CrossedRequests, event,
			"ranks %d and %d both asked to send, and neither had cleared the other", o.Src,
			msg.Src).
			relateTo(o, o.firstPacket, event.Packet)
	}
	if f.earlyClears.n > 0 {
		f.tracker.addFinding(StaleHeader, event, "rank %d sent CLEAR_TO_SEND without a request of rank %d: it answered a "+
			"retransmitted SEND_REQUEST of an earlier message", msg.Dst, msg.Src).
			relateTo(msg, f.earlyClears.packets...)
		f.assignEarlyClears(msg)
	}
}

// startLateMessage starts the next message with lateRequest. It infers that the ACK of the current message is not in
// the recording, because the sender has moved on to the next message.
func (f *flow) startLateMessage(e *Event) {
	late, msg := f.lateRequest, f.msg
	if late == nil || msg == nil {
		return
	}
	if e.Header.Type == protocol.SendRequest && e.Time.Sub(late.Time) < duplicateWindow {
		return // another copy
	}
	f.lateRequest = nil
	msg.inferLoss("ACK")
	f.endMessage(msg, late, false)
	f.startMessage(late)
}

// markLateDuplicate marks lateRequest as a duplicate of the current message's SEND_REQUEST.
func (f *flow) markLateDuplicate() {
	late := f.lateRequest
	f.lateRequest = nil
	f.markDuplicate(f.msg, late)
}

// onRepeatedRequest handles a SEND_REQUEST that arrives while a message is in progress. It returns false if the
// SEND_REQUEST belongs to a new message.
func (f *flow) onRepeatedRequest(msg *message, event *Event) bool {
	since := event.Time.Sub(msg.lastRequest)
	if msg.clearRevoked && msg.state == requested { // its CLEAR_TO_SEND was revoked
		msg.clearRevoked = false
		msg.lastRequest = event.Time
		msg.requestSends = retransmissions{}
		msg.requestSends.recordSend(event.Time)
		msg.addStep(event, "SEND_REQUEST", true, false)
		return true
	}
	if event.Header.Size > msg.requestNumber && msg.state != received { // the revocation of msg is not in the recording
		msg.setProblem("withdrawn by its sender")
		msg.requestRevoked = true
		f.endMessage(msg, event, false)
		return false
	}
	switch msg.state {
	case requested, cleared:
		if msg.crossed && msg.state == requested && f.reverse.msg == nil {
			// An FPGA discarded this request because of a message in the other direction, which is now complete.
			f.onRetransmission(msg, event)
			break
		}
		if event.isCopy(since) {
			f.markDuplicate(msg, event)
			break
		}
		if msg.state == requested && since > newCallGap && msg.requestSends.n >= deployedRetransmissions {
			msg.nextCall, msg.nextCallPacket = event.Time, event.Packet
			f.endMessage(msg, event, false)
			return false
		}
		f.onRetransmission(msg, event)
		if msg.state == cleared && event.Time.Sub(msg.lastClear) >= duplicateWindow {
			msg.inferLoss("CLEAR_TO_SEND")
		}
	case receiving:
		if event.isCopy(event.Time.Sub(msg.lastData)) {
			f.markDuplicate(msg, event)
			break
		}
		msg.setProblem("broken off by a new request")
		f.inferDataLoss(msg)
		f.endMessage(msg, event, false)
		return false
	default:
		if event.fate() == pcapng.FateCopied {
			f.markDuplicate(msg, event)
			return true
		}
		if event.isCopy(since) && f.lateRequest == nil {
			f.lateRequest = new(*event)
			f.lateRequest.Data, f.lateRequest.Trail = nil, nil
		}
		if f.lateRequest != nil && event.isCopy(since) {
			event.Message, event.Duplicate = msg.ID, true
			return true
		}
		// The sender completes one message before it begins the next, so it must have received an ACK that was not
		// recorded.
		msg.inferLoss("ACK")
		f.endMessage(msg, event, false)
		return false
	}
	msg.lastRequest = event.Time
	return true
}

// onClear handles a CLEAR_TO_SEND.
func (f *flow) onClear(event *Event) {
	f.reportUnsolicited()
	f.startLateMessage(event)
	msg := f.msg
	if msg != nil && int(event.Header.Src) != msg.Dst { // not the rank that was asked; already reported
		event.Reason = handshake.ReasonSourceRank
		return
	}
	if f.minNumber > 0 && event.Header.Size < f.minNumber || msg != nil && msg.clearRevoked {
		event.Reason = handshake.ReasonStale // answers a revoked SEND_REQUEST
		return
	}
	if msg == nil && f.previous != nil && event.fate() == pcapng.FateCopied {
		f.markDuplicate(f.previous, event)
		f.holdUnsolicited()
		return
	}
	if msg == nil {
		f.retransmitting = false
		if f.earlyClears.n == 0 {
			f.earlyClears.first, f.earlyClears.header = event.Time, event.Header
		}
		f.earlyClears.n++
		f.earlyClears.last = event.Time
		if len(f.earlyClears.packets) < maxPackets {
			f.earlyClears.packets = append(f.earlyClears.packets, event.Packet)
		}
		event.Reason = handshake.ReasonStale
		return
	}
	f.recordArrival(msg, event, protocol.ClearToSend)
	switch since := event.Time.Sub(msg.lastClear); {
	case msg.state == requested:
		msg.state, msg.clear = cleared, event.Time
		msg.addStep(event, "CLEAR_TO_SEND", false, false)
		f.checkDatatype(msg, event)
	case event.isCopy(since):
		f.markDuplicate(msg, event)
		f.holdUnsolicited()
	default:
		f.onRetransmission(msg, event)
		if msg.state == received {
			msg.inferLoss("DATA")
		}
	}
	msg.lastClear = event.Time
}

// assignEarlyClears adds the early CLEAR_TO_SEND packets to the message that they answered.
func (f *flow) assignEarlyClears(msg *message) {
	msg.state, msg.clear, msg.lastClear = cleared, f.earlyClears.first, f.earlyClears.last
	msg.Retransmissions += f.earlyClears.n - 1
	msg.clearedByStale = true
	for i, packet := range f.earlyClears.packets {
		if len(msg.Steps) < msg.keep {
			at := f.earlyClears.first
			if i > 0 {
				at = f.earlyClears.last
			}
			msg.Steps = append(msg.Steps,
				Step{Packet: packet, Packets: 1, Time: at, End: at, Type: "CLEAR_TO_SEND", Retransmitted: i > 0})
		}
	}
	f.earlyClears = earlyClears{packets: f.earlyClears.packets[:0]}
}

// onAck handles an ACK.
func (f *flow) onAck(event *Event) {
	msg := f.msg
	if f.lateRequest != nil && msg != nil {
		f.markLateDuplicate()
	}
	switch {
	case msg != nil && int(event.Header.Src) != msg.Dst:
		event.Reason = handshake.ReasonSourceRank
		return
	case msg == nil && f.retransmitting:
		// This ACK answers a retransmission of the last message.
		f.retransmitting = false
		f.recordArrival(f.previous, event, protocol.Ack)
		f.onRetransmission(f.previous, event)
		return
	case msg == nil && f.previous != nil && event.isCopy(event.Time.Sub(f.previous.ack)),
		msg != nil && f.previous != nil && msg.state == requested && event.fate() == pcapng.FateCopied:
		f.markDuplicate(f.previous, event)
		f.holdUnsolicited()
		return
	case msg == nil || msg.state == requested:
		event.Reason = handshake.ReasonStale
		finding := f.tracker.addFinding(StaleHeader, event, "rank %d sent ACK to rank %d, which had sent it nothing",
			event.Header.Src,
			event.Header.Dst)
		if msg != nil {
			finding.relateTo(msg, event.Packet)
		}
		f.holdUnsolicited()
		return
	case len(msg.knownLosses) > 0 && f.recordArrival(msg, event, protocol.Ack):
		if msg.inferredLoss == firstDataDatagram || msg.inferredLoss == dataDatagram {
			msg.inferredLoss, msg.progressAtLoss = "", nil
		}
	case msg.state == cleared:
		msg.inferLoss("DATA")
	case msg.state == receiving && !msg.explained:
		f.inferDataLoss(msg)
	}
	if len(msg.knownLosses) == 0 {
		f.recordArrival(msg, event, protocol.Ack)
	}
	msg.ack = event.Time
	f.ackedLen = max(f.ackedLen, msg.longestDatagram)
	msg.addStep(event, "ACK", false, false)
	f.checkDatatype(msg, event)
	if msg.dataEnd.IsZero() {
		msg.dataEnd = msg.lastData
	}
	f.endMessage(msg, event, true)
}

// markDuplicate marks an event as a duplicate.
func (f *flow) markDuplicate(msg *message, event *Event) {
	event.Message, event.Duplicate = msg.ID, true
	msg.addStep(event, event.Header.Type.String(), event.Header.Type == protocol.SendRequest ||
		event.Header.Type == protocol.Data, true)
	harm := ""
	if event.Header.Type == protocol.Data && msg.isFragmented() {
		// From here on, this duplicate explains all surplus payload.
		msg.explained = true
		msg.setProblem("DATA was delivered twice")
		harm = fmt.Sprintf(", and has %d datagrams", f.shape().NumDatagrams(msg.Words)) +
			f.harmText(msg, "", "the second header", "")
	}
	text := fmt.Sprintf("within %v", duplicateWindow)
	if event.fate() == pcapng.FateCopied {
		text = fmt.Sprintf("at %s: its copy was made behind %s", event.Trail.To, event.Trail.From)
	}
	f.tracker.addFinding(DuplicatePacket, event, "%v arrived twice %s%s", event.Header, text, harm).relateTo(msg,
		event.Packet)
}

// checkDatatype checks that an answer names the same datatype as the request.
func (f *flow) checkDatatype(msg *message, event *Event) {
	call := event.Header.Call
	if call.IsRecv() {
		call = call.Counterpart()
	}
	if call == msg.call || msg.hasTypeMismatch {
		return
	}
	msg.hasTypeMismatch = true
	msg.setProblem("INT against FLOAT")
	f.tracker.addFinding(DatatypeMismatch, event, "rank %d sends with %v, but %v says %v: INT never matches FLOAT",
		msg.Src, msg.call,
		event.Header.Type, event.Header.Call).relateTo(msg, msg.firstPacket, event.Packet)
}
