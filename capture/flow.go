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
	t        *Tracker
	from, to netip.AddrPort
	back     *flow // the messages of the other direction
	// pair is the receiving half of a live rank. It decides which bytes of which message a datagram carries.
	pair  *handshake.Pair
	node  *identity // the node at from
	sent  bool      // a message has been seen
	heard time.Time // time of its last recorded datagram
	// ipFragments is true once the flow's IP fragmentation has been reported. acked is the length of the longest
	// datagram of an acknowledged message.
	ipFragments bool
	acked       int
	// late is a SEND_REQUEST seen while the current message lacks its ACK. It is either a late copy of the current
	// message's SEND_REQUEST or the first packet of the next message.
	late *Event

	msg  *message // in progress
	last *message // the previous message, for its copies and retransmissions
	redo bool     // DATA of last is being retransmitted
	// withdrawn is one more than the number of the last revoked SEND_REQUEST.
	withdrawn uint32
	// early counts CLEAR_TO_SENDs that answer no SEND_REQUEST seen so far.
	early clears
	// sum and length are the checksum and length of the last continuation datagram. sums is reusable memory for the
	// checksums of a message.
	sum    uint32
	length int
	sums   []uint32
	// unsolicited is the held finding about a CLEAR_TO_SEND or ACK that may have wedged the sender (trap 2).
	unsolicited *Finding

	acts   []handshake.Action
	header [protocol.HeaderLen]byte
}

// clears describes CLEAR_TO_SENDs that answer no recorded SEND_REQUEST.
type clears struct {
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
		return !(length == protocol.HeaderLen && left != protocol.HeaderLen && almostHeader(u.Data))
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
	if f.redo {
		return f.last
	}
	return f.msg
}

// request handles a SEND_REQUEST.
func (f *flow) request(e *Event) {
	f.sent, f.redo = true, false
	f.reportUnsolicited()
	f.wasNext(e)
	switch m := f.msg; {
	case m != nil && f.requestedAgain(m, e):
	case m == nil && f.last != nil && e.fate() == pcapng.Copied:
		f.copied(f.last, e)
	default:
		f.next(e)
	}
}

// next begins a message with its SEND_REQUEST.
func (f *flow) next(e *Event) {
	m := f.open(e)
	f.arrives(m, e, protocol.SendRequest)
	m.request = e.Time
	m.step(e, "SEND_REQUEST", true, false)
	if o := f.back.msg; o != nil && o.state == requested && !o.crossed {
		o.crossed, m.crossed = true, true
		f.t.find(CrossedRequests, e, "ranks %d and %d both asked to send, and neither had cleared the other", o.Src,
			m.Src).
			about(o, o.firstPacket, e.Packet)
	}
	if f.early.n > 0 {
		f.t.find(StaleHeader, e, "rank %d sent CLEAR_TO_SEND without a request of rank %d: it answered a "+
			"retransmitted SEND_REQUEST of an earlier message", m.Dst, m.Src).
			about(m, f.early.packets...)
		f.takeEarly(m)
	}
}

// wasNext decides that late began the next message, because the sender continues with that message. The ACK of the
// current message is not in the recording.
func (f *flow) wasNext(e *Event) {
	late, m := f.late, f.msg
	if late == nil || m == nil {
		return
	}
	if e.Header.Type == protocol.SendRequest && e.Time.Sub(late.Time) < duplicateWindow {
		return // another copy
	}
	f.late = nil
	m.lose("ACK")
	f.end(m, late, false)
	f.next(late)
}

// wasCopy decides that late was a copy of the current message's SEND_REQUEST.
func (f *flow) wasCopy() {
	late := f.late
	f.late = nil
	f.copied(f.msg, late)
}

// requestedAgain handles a SEND_REQUEST that arrives while a message is in progress. It returns false if the
// SEND_REQUEST begins a new message.
func (f *flow) requestedAgain(m *message, e *Event) bool {
	since := e.Time.Sub(m.lastRequest)
	if m.unclear && m.state == requested { // its CLEAR_TO_SEND was revoked
		m.unclear = false
		m.lastRequest = e.Time
		m.requests = retransmissions{}
		m.requests.sent(e.Time)
		m.step(e, "SEND_REQUEST", true, false)
		return true
	}
	if e.Header.Size > m.number && m.state != received { // the revocation of m is not in the recording
		m.verdict("withdrawn by its sender")
		m.withdrawn = true
		f.end(m, e, false)
		return false
	}
	switch m.state {
	case requested, cleared:
		if m.crossed && m.state == requested && f.back.msg == nil {
			// A message in the other direction made an FPGA forget this request, and is now done.
			f.retransmitted(m, e)
			break
		}
		if e.isCopy(since) {
			f.copied(m, e)
			break
		}
		if m.state == requested && since > newCall && m.requests.n >= deployedRetransmissions {
			m.next, m.nextPacket = e.Time, e.Packet
			f.end(m, e, false)
			return false
		}
		f.retransmitted(m, e)
		if m.state == cleared && e.Time.Sub(m.lastClear) >= duplicateWindow {
			m.lose("CLEAR_TO_SEND")
		}
	case receiving:
		if e.isCopy(e.Time.Sub(m.lastData)) {
			f.copied(m, e)
			break
		}
		m.verdict("broken off by a new request")
		f.loseDatagram(m)
		f.end(m, e, false)
		return false
	default:
		if e.fate() == pcapng.Copied {
			f.copied(m, e)
			return true
		}
		if e.isCopy(since) && f.late == nil {
			f.late = new(*e)
			f.late.Data, f.late.Trail = nil, nil
		}
		if f.late != nil && e.isCopy(since) {
			e.Message, e.Duplicate = m.ID, true
			return true
		}
		// The peer does one thing at a time, so it must have received the ACK, which is not in the recording.
		m.lose("ACK")
		f.end(m, e, false)
		return false
	}
	m.lastRequest = e.Time
	return true
}

// clear handles a CLEAR_TO_SEND.
func (f *flow) clear(e *Event) {
	f.reportUnsolicited()
	f.wasNext(e)
	m := f.msg
	if m != nil && int(e.Header.Src) != m.Dst { // not the rank that was asked; already reported
		e.Reason = handshake.ReasonSourceRank
		return
	}
	if f.withdrawn > 0 && e.Header.Size < f.withdrawn || m != nil && m.unclear {
		e.Reason = handshake.ReasonStale // answers a revoked SEND_REQUEST
		return
	}
	if m == nil && f.last != nil && e.fate() == pcapng.Copied {
		f.copied(f.last, e)
		f.holdUnsolicited()
		return
	}
	if m == nil {
		f.redo = false
		if f.early.n == 0 {
			f.early.first, f.early.header = e.Time, e.Header
		}
		f.early.n++
		f.early.last = e.Time
		if len(f.early.packets) < maxPackets {
			f.early.packets = append(f.early.packets, e.Packet)
		}
		e.Reason = handshake.ReasonStale
		return
	}
	f.arrives(m, e, protocol.ClearToSend)
	switch since := e.Time.Sub(m.lastClear); {
	case m.state == requested:
		m.state, m.clear = cleared, e.Time
		m.step(e, "CLEAR_TO_SEND", false, false)
		f.checkCall(m, e)
	case e.isCopy(since):
		f.copied(m, e)
		f.holdUnsolicited()
	default:
		f.retransmitted(m, e)
		if m.state == received {
			m.lose("DATA")
		}
	}
	m.lastClear = e.Time
}

// takeEarly assigns the early CLEAR_TO_SENDs to a message.
func (f *flow) takeEarly(m *message) {
	m.state, m.clear, m.lastClear = cleared, f.early.first, f.early.last
	m.Retransmissions += f.early.n - 1
	m.stale = true
	for i, packet := range f.early.packets {
		if len(m.Steps) < m.keep {
			at := f.early.first
			if i > 0 {
				at = f.early.last
			}
			m.Steps = append(m.Steps,
				Step{Packet: packet, Packets: 1, Time: at, End: at, Type: "CLEAR_TO_SEND", Retransmitted: i > 0})
		}
	}
	f.early = clears{packets: f.early.packets[:0]}
}

// ack handles an ACK.
func (f *flow) ack(e *Event) {
	m := f.msg
	if f.late != nil && m != nil {
		f.wasCopy()
	}
	switch {
	case m != nil && int(e.Header.Src) != m.Dst:
		e.Reason = handshake.ReasonSourceRank
		return
	case m == nil && f.redo:
		// This is the ACK of the last message's retransmission.
		f.redo = false
		f.arrives(f.last, e, protocol.Ack)
		f.retransmitted(f.last, e)
		return
	case m == nil && f.last != nil && e.isCopy(e.Time.Sub(f.last.ack)),
		m != nil && f.last != nil && m.state == requested && e.fate() == pcapng.Copied:
		f.copied(f.last, e)
		f.holdUnsolicited()
		return
	case m == nil || m.state == requested:
		e.Reason = handshake.ReasonStale
		finding := f.t.find(StaleHeader, e, "rank %d sent ACK to rank %d, which had sent it nothing", e.Header.Src,
			e.Header.Dst)
		if m != nil {
			finding.about(m, e.Packet)
		}
		f.holdUnsolicited()
		return
	case len(m.gone) > 0 && f.arrives(m, e, protocol.Ack):
		if m.lost == firstOfData || m.lost == datagramOfData {
			m.lost, m.broken = "", nil
		}
	case m.state == cleared:
		m.lose("DATA")
	case m.state == receiving && !m.explained:
		f.loseDatagram(m)
	}
	if len(m.gone) == 0 {
		f.arrives(m, e, protocol.Ack)
	}
	m.ack = e.Time
	f.acked = max(f.acked, m.longest)
	m.step(e, "ACK", false, false)
	f.checkCall(m, e)
	if m.dataEnd.IsZero() {
		m.dataEnd = m.lastData
	}
	f.end(m, e, true)
}

// copied marks an event as a duplicate.
func (f *flow) copied(m *message, e *Event) {
	e.Message, e.Duplicate = m.ID, true
	m.step(e, e.Header.Type.String(), e.Header.Type == protocol.SendRequest || e.Header.Type == protocol.Data, true)
	harm := ""
	if e.Header.Type == protocol.Data && m.fragmented() {
		// The duplicate explains all surplus payload from here on.
		m.explained = true
		m.verdict("DATA was delivered twice")
		harm = fmt.Sprintf(", and has %d datagrams", f.shape().Datagrams(m.Words)) +
			f.harm(m, "", "the second header", "")
	}
	text := fmt.Sprintf("within %v", duplicateWindow)
	if e.fate() == pcapng.Copied {
		text = fmt.Sprintf("at %s: its copy was made behind %s", e.Trail.To, e.Trail.From)
	}
	f.t.find(DuplicatePacket, e, "%v arrived twice %s%s", e.Header, text, harm).about(m, e.Packet)
}

// checkCall compares the datatype of an answer with the datatype of the request.
func (f *flow) checkCall(m *message, e *Event) {
	call := e.Header.Call
	if call.IsRecv() {
		call = call.Counterpart()
	}
	if call == m.call || m.mixed {
		return
	}
	m.mixed = true
	m.verdict("INT against FLOAT")
	f.t.find(DatatypeMismatch, e, "rank %d sends with %v, but %v says %v: INT never matches FLOAT", m.Src, m.call,
		e.Header.Type, e.Header.Call).about(m, m.firstPacket, e.Packet)
}
