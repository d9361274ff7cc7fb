package capture

import (
	"hash/crc32"
	"math"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// data handles DATA with a header.
func (f *flow) onData(e *Event, payload []byte, truncated int) {
	f.hasSent = true
	if f.lateRequest != nil && f.msg != nil {
		// DATA that soon follows late belongs to the next message even if its bytes are the same, because a
		// retransmission would not come so soon.
		if e.Time.Sub(f.lateRequest.Time) >= duplicateWindow && f.msg.sameData(e, payload) {
			f.markLateDuplicate()
		} else {
			f.startLateMessage(e)
		}
	}
	m := f.msg
	if m != nil && m.clearRevoked { // answers the revoked CLEAR_TO_SEND
		e.Reason = handshake.ReasonUnsolicited
		return
	}
	if e.fate() == pcapng.FateLost && f.onLostData(e, payload) {
		return
	}
	switch {
	case m == nil && f.earlyClears.n > 0:
		m = f.newMessage(e)
		f.assignEarlyClears(m)
		m.clearedByStale = false
		m.inferLoss("SEND_REQUEST")
	case m == nil && f.retransmitsLast(e, payload):
		f.onRepeatedData(f.previous, e)
		f.retransmitting = true
		m = f.previous
	case m == nil:
		m = f.newMessage(e)
		m.inferLoss("SEND_REQUEST and CLEAR_TO_SEND")
	case m.state == requested:
		m.inferLoss("CLEAR_TO_SEND")
	case m.state == receiving || m.state == received:
		f.onRepeatedData(m, e)
	case m.headlessPackets > 0 && e.Time.Sub(m.lastData) >= duplicateWindow, m.lostDataHeaders > 0:
		f.onRetransmission(m, e)
	}
	f.recordArrival(m, e, protocol.Data)
	first := m.dataPackets == 0 && !e.Retransmitted
	m.Words, m.sum = e.Header.Size, crc32.Checksum(payload, castagnoli)
	m.dataPackets++
	m.longestDatagram = max(m.longestDatagram, e.Length)
	m.dataPacket = e.Packet
	if !f.retransmitting && !e.Duplicate {
		m.state = receiving
	}
	if first {
		m.dataSends.recordSend(e.Time)
		m.addStep(e, "DATA", true, false)
	}
	f.checkDatatype(m, e)
	if e.Proto == pcapng.UDP {
		payload = f.tracker.padTruncated(payload, truncated)
	}
	f.feedPayload(m, e, payload, true)
}

// retransmitsLast reports whether DATA without a request retransmits the last message.
func (f *flow) retransmitsLast(e *Event, payload []byte) bool {
	return f.previous != nil && f.previous.sameData(e, payload)
}

// sameData reports whether DATA retransmits the DATA of the message.
func (m *message) sameData(e *Event, payload []byte) bool {
	return m.dataPackets > 0 && m.Words == e.Header.Size && m.sum == crc32.Checksum(payload, castagnoli)
}

// onRepeatedData handles a DATA header of a message whose DATA was seen before.
func (f *flow) onRepeatedData(m *message, e *Event) {
	if e.isCopy(e.Time.Sub(m.lastData)) {
		f.markDuplicate(m, e)
		return
	}
	f.onRetransmission(m, e)
	switch {
	case !m.ack.IsZero():
		m.inferLoss("ACK")
	case m.state == received:
		m.inferLoss("DATA or its ACK")
	default:
		f.inferDataLoss(m)
	}
}

// onPayload handles payload without a header, or a datagram that must be payload.
func (f *flow) onPayload(e *Event, b []byte, truncated int) {
	e.Kind = PayloadEvent
	m := f.current()
	if m != nil && m.clearRevoked { // of DATA that answers the revoked CLEAR_TO_SEND
		e.Message, e.Reason = m.ID, handshake.ReasonUnexpectedPayload
		return
	}
	if m != nil && e.fate() == pcapng.FateLost {
		e.Message = m.ID
		m.recordLoss(e, dataDatagram)
		return
	}
	if m != nil && m.state == cleared {
		// The datagram with the header is not in the recording.
		m.headlessPackets++
		m.headlessBytes += int64(len(b) + truncated)
		m.lastData = e.Time
		m.inferLoss(firstDataDatagram)
		e.Message, e.Reason = m.ID, handshake.ReasonUnexpectedPayload
		return
	}
	if m == nil || f.pair == nil {
		e.Reason = handshake.ReasonUnexpectedPayload
		if m == nil && f.previous != nil && e.Time.Sub(f.previous.lastData) < duplicateWindow {
			// This is the remainder of a duplicate, or a surplus datagram of the message.
			e.Message, e.Duplicate = f.previous.ID, true
		}
		return
	}
	sum := crc32.Checksum(b, castagnoli)
	same := len(b) > 0 && sum == f.lastChecksum && len(b)+truncated == f.lastLength && e.Time.Sub(m.lastData) < duplicateWindow
	if same {
		m.duplicatePacket = e.Packet
	}
	f.lastChecksum, f.lastLength = sum, len(b)+truncated
	if w, _ := f.pair.RecvWait(); w.State != handshake.Receiving {
		f.explainSurplus(m, e, same)
		return
	}
	f.feedPayload(m, e, f.tracker.padTruncated(b, truncated), false)
	if e.IsData && e.Proto == pcapng.UDP {
		f.addContinuation(m, sum, truncated)
	}
}

// explainSurplus explains payload that arrives for a message after all of its payload.
func (f *flow) explainSurplus(m *message, e *Event, same bool) {
	e.Message, e.Reason = m.ID, handshake.ReasonUnexpectedPayload
	if m.state != received || m.explained || e.Proto == pcapng.TCP {
		return
	}
	m.explained = true
	if same {
		e.Duplicate = true
		m.setProblem("a datagram of DATA was delivered twice")
		f.tracker.addFinding(DuplicatePacket, e, "the network delivered the last datagram of message %d from rank %d to "+
			"rank %d twice", m.ID, m.Src, m.Dst).relateTo(m, e.Packet)
		return
	}
	m.setProblem("size mismatch")
	f.tracker.addFinding(SizeMismatch, e, "message %d from rank %d to rank %d announces %d words, but more bytes arrived", m.ID,
		m.Src, m.Dst, m.Words).relateTo(m, e.Packet)
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

// take passes payload to the receiving half, which determines its position in the message.
func (f *flow) feedPayload(m *message, e *Event, b []byte, begins bool) {
	now := f.tracker.instant(e.Time)
	e.Message, e.IsData, e.DataPacket = m.ID, true, m.dataPacket
	e.Header.Src, e.Header.Dst, e.HasRanks = uint32(m.Src), uint32(m.Dst), true
	e.Total = int64(m.Words) * protocol.WordLen
	var reason handshake.Reason
	if begins {
		f.prepareReceive(m, now, e.Proto == pcapng.TCP)
		reason = f.feedHeader(now, e, m, b)
	} else {
		w, _ := f.pair.RecvWait()
		e.Offset = w.Got
		f.acts = f.pair.Payload(now, b, f.acts[:0])
		reason = f.locatePayload(e, b)
	}
	m.lastData = e.Time
	m.addPayload(e)
	switch {
	case reason != handshake.ReasonNone:
	case begins:
		f.startData(m, e)
	default:
		m.dataProgress.datagrams++
		m.dataProgress.bytes += e.Bytes
	}
	switch {
	case reason == handshake.ReasonLength,
		reason == handshake.ReasonGap && protocol.CPUShape().ImpliesGap(e.Total-e.Offset, int64(len(b))):
		e.IsData, e.Reason = false, reason
		f.explainLength(m, e, int64(len(b)), begins)
	case reason != handshake.ReasonNone:
		e.IsData, e.Reason = false, reason
	case e.IsLastPiece:
		if !f.retransmitting {
			m.state, m.dataEnd = received, e.Time
			if m.firstDataEnd.IsZero() {
				m.firstDataEnd = e.Time
			}
		}
		f.retransmitting = f.retransmitting && m == f.previous
		f.tracker.checkPadding(f.from, m, e)
	}
}

// prepareReceive puts the receiving half into its state after CLEAR_TO_SEND.
func (f *flow) prepareReceive(m *message, now handshake.Instant, reliable bool) {
	if f.pair == nil || f.pair.Config().Reliable != reliable || f.pair.Config().Remote != uint32(m.Src) ||
		f.pair.Config().Local != uint32(m.Dst) {
		f.pair = handshake.New(handshake.Config{
			Local: uint32(m.Dst), Remote: uint32(m.Src), Profile: f.tracker.opts.Profile, Reliable: reliable,
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
	request := protocol.Header{Src: uint32(m.Src), Dst: uint32(m.Dst), Call: m.call, Type: protocol.SendRequest,
		Tag: uint8(m.Tag)}
	f.tracker.opts.Profile.Put(f.header[:], request)
	f.acts = f.pair.Datagram(now, f.header[:], f.acts[:0])
}

// feedHeader passes a DATA header and its payload to the receiving half.
func (f *flow) feedHeader(now handshake.Instant, e *Event, m *message, b []byte) handshake.Reason {
	h := e.Header
	h.Call, h.Type, h.Size = m.call, protocol.Data, m.Words
	f.tracker.data = f.tracker.opts.Profile.Append(f.tracker.data[:0], h)
	if e.Proto == pcapng.TCP {
		f.acts = f.pair.Header(now, f.tracker.data, f.acts[:0])
		return f.locatePayload(e, nil)
	}
	f.tracker.data = append(f.tracker.data, b...)
	f.acts = f.pair.Datagram(now, f.tracker.data, f.acts[:0])
	return f.locatePayload(e, b)
}

// place determines the position of payload, or why it was dropped, from the actions of the receiving half.
func (f *flow) locatePayload(e *Event, b []byte) handshake.Reason {
	reason := handshake.ReasonNone
	for _, a := range f.acts {
		switch a.Kind {
		case handshake.Copy:
			e.Bytes = int64(len(a.Payload))
			e.Offset = a.Offset
		case handshake.RecvDone:
			e.IsLastPiece = true
		case handshake.Drop:
			reason = a.Reason
		case handshake.Transmit, handshake.TransmitData, handshake.SendDone, handshake.Note:
		}
	}
	if reason == handshake.ReasonNone {
		e.Padding = len(b) - int(e.Bytes)
	}
	return reason
}

// explainLength explains a datagram of unexpected length.
func (f *flow) explainLength(m *message, e *Event, n int64, begins bool) {
	if m.explained {
		return
	}
	m.explained = true
	left := e.Total - e.Offset
	switch {
	case begins:
		m.state, m.dataEnd = received, e.Time
		m.setProblem("size mismatch")
		f.tracker.addFinding(SizeMismatch, e, "DATA from rank %d announces %d words, %d bytes, but its datagram carries %d", m.Src,
			m.Words, e.Total, n).relateTo(m, e.Packet)
	case protocol.CPUShape().ImpliesGap(left, n):
		padding := (n - left) & (protocol.LineLen - 1)
		f.recordEarlyTail(m, n-padding)
	case m.duplicatePacket != 0:
		m.setProblem("a datagram of DATA was delivered twice")
		f.tracker.addFinding(DuplicatePacket, e, "the network delivered a datagram of message %d from rank %d to rank %d twice: "+
			"the duplicate cannot be distinguished from the next part, so that the data is corrupt, or retransmitted%s",
			m.ID, m.Src, m.Dst, f.harmText(m, "", "the copy", "")).relateTo(m, m.duplicatePacket)
	default:
		m.setProblem("size mismatch")
		f.tracker.addFinding(SizeMismatch, e, "message %d from rank %d to rank %d: %d bytes were left of %d, but the datagram "+
			"carries %d", m.ID, m.Src, m.Dst, left, e.Total, n).relateTo(m, e.Packet)
	}
}

// recordEarlyTail records that the last datagram of a message, with n bytes, arrived although an earlier one is missing.
func (f *flow) recordEarlyTail(m *message, n int64) {
	m.dataProgress.datagrams++
	m.dataProgress.bytes += n
	m.dataProgress.tailReceived = true
	f.inferDataLoss(m)
}
