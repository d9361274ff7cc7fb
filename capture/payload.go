package capture

import (
	"hash/crc32"
	"math"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// onData handles DATA with a header.
func (f *flow) onData(event *Event, payload []byte, truncated int) {
	f.hasSent = true
	if f.lateRequest != nil && f.msg != nil {
		// DATA that soon follows lateRequest belongs to the next message even if its bytes are the same, because a
		// retransmission would not come so soon.
		if event.Time.Sub(f.lateRequest.Time) >= duplicateWindow && f.msg.sameData(event, payload) {
			f.markLateDuplicate()
		} else {
			f.startLateMessage(event)
		}
	}
	msg := f.msg
	if msg != nil && msg.clearRevoked { // answers the revoked CLEAR_TO_SEND
		event.Reason = handshake.ReasonUnsolicited
		return
	}
	if event.fate() == pcapng.FateLost && f.onLostData(event, payload) {
		return
	}
	switch {
	case msg == nil && f.earlyClears.n > 0:
		msg = f.newMessage(event)
		f.assignEarlyClears(msg)
		msg.clearedByStale = false
		msg.inferLoss("SEND_REQUEST")
	case msg == nil && f.retransmitsLast(event, payload):
		f.onRepeatedData(f.previous, event)
		f.retransmitting = true
		msg = f.previous
	case msg == nil:
		msg = f.newMessage(event)
		msg.inferLoss("SEND_REQUEST and CLEAR_TO_SEND")
	case msg.state == requested:
		msg.inferLoss("CLEAR_TO_SEND")
	case msg.state == receiving || msg.state == received:
		f.onRepeatedData(msg, event)
	case msg.headlessPackets > 0 && event.Time.Sub(msg.lastData) >= duplicateWindow, msg.lostDataHeaders > 0:
		f.onRetransmission(msg, event)
	}
	f.recordArrival(msg, event, protocol.Data)
	first := msg.dataPackets == 0 && !event.Retransmitted
	msg.Words, msg.sum = event.Header.Size, crc32.Checksum(payload, castagnoli)
	msg.dataPackets++
	msg.longestDatagram = max(msg.longestDatagram, event.Length)
	msg.dataPacket = event.Packet
	if !f.retransmitting && !event.Duplicate {
		msg.state = receiving
	}
	if first {
		msg.dataSends.recordSend(event.Time)
		msg.addStep(event, "DATA", true, false)
	}
	f.checkDatatype(msg, event)
	if event.Proto == pcapng.UDP {
		payload = f.tracker.padTruncated(payload, truncated)
	}
	f.feedPayload(msg, event, payload, true)
}

// retransmitsLast reports whether DATA for which no SEND_REQUEST was recorded is a retransmission of the previous
// message.
func (f *flow) retransmitsLast(e *Event, payload []byte) bool {
	return f.previous != nil && f.previous.sameData(e, payload)
}

// sameData reports whether a DATA packet has the same size and first bytes of payload as the message's recorded DATA.
func (m *message) sameData(e *Event, payload []byte) bool {
	return m.dataPackets > 0 && m.Words == e.Header.Size && m.sum == crc32.Checksum(payload, castagnoli)
}

// onRepeatedData handles a DATA header of a message whose DATA was seen before.
func (f *flow) onRepeatedData(msg *message, e *Event) {
	if e.isCopy(e.Time.Sub(msg.lastData)) {
		f.markDuplicate(msg, e)
		return
	}
	f.onRetransmission(msg, e)
	switch {
	case !msg.ack.IsZero():
		msg.inferLoss("ACK")
	case msg.state == received:
		msg.inferLoss("DATA or its ACK")
	default:
		f.inferDataLoss(msg)
	}
}

// onPayload handles a datagram, or a piece of a stream, that has no header.
func (f *flow) onPayload(event *Event, b []byte, truncated int) {
	event.Kind = PayloadEvent
	msg := f.current()
	if msg != nil && msg.clearRevoked { // of DATA that answers the revoked CLEAR_TO_SEND
		event.Message, event.Reason = msg.ID, handshake.ReasonUnexpectedPayload
		return
	}
	if msg != nil && event.fate() == pcapng.FateLost {
		event.Message = msg.ID
		msg.recordLoss(event, dataDatagram)
		return
	}
	if msg != nil && msg.state == cleared {
		// The datagram with the header was sent, but is not in the recording.
		msg.headlessPackets++
		msg.headlessBytes += int64(len(b) + truncated)
		msg.lastData = event.Time
		msg.inferLoss(firstDataDatagram)
		event.Message, event.Reason = msg.ID, handshake.ReasonUnexpectedPayload
		return
	}
	if msg == nil || f.pair == nil {
		event.Reason = handshake.ReasonUnexpectedPayload
		if msg == nil && f.previous != nil && event.Time.Sub(f.previous.lastData) < duplicateWindow {
			// This is the remainder of a duplicate, or a surplus datagram of the previous message.
			event.Message, event.Duplicate = f.previous.ID, true
		}
		return
	}
	sum := crc32.Checksum(b, castagnoli)
	same := len(b) > 0 && sum == f.lastChecksum && len(b)+truncated == f.lastLength &&
		event.Time.Sub(msg.lastData) < duplicateWindow
	if same {
		msg.duplicatePacket = event.Packet
	}
	f.lastChecksum, f.lastLength = sum, len(b)+truncated
	if w, _ := f.pair.RecvWait(); w.State != handshake.Receiving {
		f.explainSurplus(msg, event, same)
		return
	}
	f.feedPayload(msg, event, f.tracker.padTruncated(b, truncated), false)
	if event.IsData && event.Proto == pcapng.UDP {
		f.addContinuation(msg, sum, truncated)
	}
}

// explainSurplus reports payload that arrives for a message after its last byte: either a duplicate or more bytes than
// DATA announced.
func (f *flow) explainSurplus(msg *message, event *Event, same bool) {
	event.Message, event.Reason = msg.ID, handshake.ReasonUnexpectedPayload
	if msg.state != received || msg.explained || event.Proto == pcapng.TCP {
		return
	}
	msg.explained = true
	if same {
		event.Duplicate = true
		msg.setProblem("a datagram of DATA was delivered twice")
		f.tracker.addFinding(DuplicatePacket, event, "the network delivered the last datagram of message %d from rank %d to "+
			"rank %d twice", msg.ID, msg.Src, msg.Dst).relateTo(msg, event.Packet)
		return
	}
	msg.setProblem("size mismatch")
	f.tracker.addFinding(SizeMismatch, event,
		"message %d from rank %d to rank %d announces %d words, but more bytes arrived", msg.ID,
		msg.Src, msg.Dst, msg.Words).relateTo(msg, event.Packet)
}

// padTruncated returns payload at its full length: zeros replace the bytes that the snapshot length cut off.
func (t *Tracker) padTruncated(b []byte, truncated int) []byte {
	if truncated == 0 {
		return b
	}
	t.scratch = append(t.scratch[:0], b...)
	for range min(truncated, math.MaxUint16) {
		t.scratch = append(t.scratch, 0)
	}
	return t.scratch
}

// feedPayload passes payload to the state machine f.pair, which determines the position of the payload in the message.
// begins is true if the payload follows a DATA header.
func (f *flow) feedPayload(msg *message, event *Event, b []byte, begins bool) {
	now := f.tracker.instant(event.Time)
	event.Message, event.IsData, event.DataPacket = msg.ID, true, msg.dataPacket
	event.Header.Src, event.Header.Dst, event.HasRanks = uint32(msg.Src), uint32(msg.Dst), true
	event.Total = int64(msg.Words) * protocol.WordLen
	var reason handshake.Reason
	if begins {
		f.prepareReceive(msg, now, event.Proto == pcapng.TCP)
		reason = f.feedHeader(now, event, msg, b)
	} else {
		w, _ := f.pair.RecvWait()
		event.Offset = w.Got
		f.acts = f.pair.Payload(now, b, f.acts[:0])
		reason = f.locatePayload(event, b)
	}
	msg.lastData = event.Time
	msg.addPayload(event)
	switch {
	case reason != handshake.ReasonNone:
	case begins:
		f.startData(msg, event)
	default:
		msg.dataProgress.datagrams++
		msg.dataProgress.bytes += event.Bytes
	}
	switch {
	case reason == handshake.ReasonLength,
		reason == handshake.ReasonGap && protocol.CPUShape().ImpliesGap(event.Total-event.Offset, int64(len(b))):
		event.IsData, event.Reason = false, reason
		f.explainLength(msg, event, int64(len(b)), begins)
	case reason != handshake.ReasonNone:
		event.IsData, event.Reason = false, reason
	case event.IsLastPiece:
		if !f.retransmitting {
			msg.state, msg.dataEnd = received, event.Time
			if msg.firstDataEnd.IsZero() {
				msg.firstDataEnd = event.Time
			}
		}
		f.retransmitting = f.retransmitting && msg == f.previous
		f.tracker.checkPadding(f.from, msg, event)
	}
}

// prepareReceive brings the state machine f.pair into its state after CLEAR_TO_SEND, in which it accepts DATA.
func (f *flow) prepareReceive(msg *message, now handshake.Instant, reliable bool) {
	if f.pair == nil || f.pair.Config().Reliable != reliable || f.pair.Config().Remote != uint32(msg.Src) ||
		f.pair.Config().Local != uint32(msg.Dst) {
		f.pair = handshake.New(handshake.Config{
			Local: uint32(msg.Dst), Remote: uint32(msg.Src), Profile: f.tracker.opts.Profile, Reliable: reliable,
			Quirks: handshake.Quirks{IgnoreDestination: true}, Shape: protocol.CPUShape(),
			Timing: handshake.Timing{FragmentGap: duplicateWindow}, MaxWords: math.MaxUint32,
		})
	}
	if w, _ := f.pair.RecvWait(); w.State == handshake.WaitData || w.State == handshake.Receiving {
		return
	}
	f.pair.Reset()
	if f.pair.RecvIdle() {
		f.acts, _ = f.pair.Recv(now, handshake.RecvOp{Words: math.MaxUint32, Any: true, AnyTag: true}, f.acts[:0])
	}
	request := protocol.Header{Src: uint32(msg.Src), Dst: uint32(msg.Dst), Call: msg.call, Type: protocol.SendRequest,
		Tag: uint8(msg.Tag)}
	f.tracker.opts.Profile.Put(f.header[:], request)
	f.acts = f.pair.Datagram(now, f.header[:], f.acts[:0])
}

// feedHeader passes a DATA header to the state machine f.pair, followed by the payload in the same UDP datagram.
func (f *flow) feedHeader(now handshake.Instant, event *Event, m *message, b []byte) handshake.Reason {
	h := event.Header
	h.Call, h.Type, h.Size = m.call, protocol.Data, m.Words
	f.tracker.data = f.tracker.opts.Profile.Append(f.tracker.data[:0], h)
	if event.Proto == pcapng.TCP {
		f.acts = f.pair.Header(now, f.tracker.data, f.acts[:0])
		return f.locatePayload(event, nil)
	}
	f.tracker.data = append(f.tracker.data, b...)
	f.acts = f.pair.Datagram(now, f.tracker.data, f.acts[:0])
	return f.locatePayload(event, b)
}

// locatePayload sets the position of the event's payload in the message, which the actions of f.pair reveal. If f.pair
// dropped the payload, locatePayload returns the reason.
func (f *flow) locatePayload(event *Event, b []byte) handshake.Reason {
	reason := handshake.ReasonNone
	for _, action := range f.acts {
		switch action.Kind {
		case handshake.Copy:
			event.Bytes = int64(len(action.Payload))
			event.Offset = action.Offset
		case handshake.RecvDone:
			event.IsLastPiece = true
		case handshake.Drop:
			reason = action.Reason
		case handshake.Transmit, handshake.TransmitData, handshake.SendDone, handshake.Note:
		}
	}
	if reason == handshake.ReasonNone {
		event.Padding = len(b) - int(event.Bytes)
	}
	return reason
}

// explainLength reports why a datagram probably has an unexpected length.
func (f *flow) explainLength(msg *message, event *Event, n int64, begins bool) {
	if msg.explained {
		return
	}
	msg.explained = true
	left := event.Total - event.Offset
	switch {
	case begins:
		msg.state, msg.dataEnd = received, event.Time
		msg.setProblem("size mismatch")
		f.tracker.addFinding(SizeMismatch, event,
			"DATA from rank %d announces %d words, %d bytes, but its datagram carries %d", msg.Src,
			msg.Words, event.Total, n).relateTo(msg, event.Packet)
	case protocol.CPUShape().ImpliesGap(left, n):
		padding := (n - left) & (protocol.LineLen - 1)
		f.recordEarlyTail(msg, n-padding)
	case msg.duplicatePacket != 0:
		msg.setProblem("a datagram of DATA was delivered twice")
		f.tracker.addFinding(DuplicatePacket, event,
			"the network delivered a datagram of message %d from rank %d to rank %d twice: "+
				"the duplicate cannot be distinguished from the next part, so that the data is corrupt, or retransmitted%s",
			msg.ID, msg.Src, msg.Dst, f.harmText(msg, "", "the copy", "")).relateTo(msg, msg.duplicatePacket)
	default:
		msg.setProblem("size mismatch")
		f.tracker.addFinding(SizeMismatch, event,
			"message %d from rank %d to rank %d: %d bytes were left of %d, but the datagram "+
				"carries %d", msg.ID, msg.Src, msg.Dst, left, event.Total, n).relateTo(msg, event.Packet)
	}
}

// recordEarlyTail records that the last datagram of a message, with n bytes, arrived although an earlier one is
// missing.
func (f *flow) recordEarlyTail(m *message, n int64) {
	m.dataProgress.datagrams++
	m.dataProgress.bytes += n
	m.dataProgress.tailReceived = true
	f.inferDataLoss(m)
}
