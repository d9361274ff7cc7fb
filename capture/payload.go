package capture

import (
	"hash/crc32"
	"math"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// data handles DATA with a header.
func (f *flow) data(e *Event, payload []byte, truncated int) {
	f.sent = true
	if f.late != nil && f.msg != nil {
		// DATA that soon follows late belongs to the next message even if its bytes are the same, because a
		// retransmission would not come so soon.
		if e.Time.Sub(f.late.Time) >= duplicateWindow && f.msg.sameData(e, payload) {
			f.wasCopy()
		} else {
			f.wasNext(e)
		}
	}
	m := f.msg
	if m != nil && m.unclear { // answers the revoked CLEAR_TO_SEND
		e.Reason = handshake.ReasonUnsolicited
		return
	}
	if e.fate() == pcapng.Lost && f.dataLost(e, payload) {
		return
	}
	switch {
	case m == nil && f.early.n > 0:
		m = f.open(e)
		f.takeEarly(m)
		m.stale = false
		m.lose("SEND_REQUEST")
	case m == nil && f.retransmitsLast(e, payload):
		f.dataAgain(f.last, e)
		f.redo = true
		m = f.last
	case m == nil:
		m = f.open(e)
		m.lose("SEND_REQUEST and CLEAR_TO_SEND")
	case m.state == requested:
		m.lose("CLEAR_TO_SEND")
	case m.state == receiving || m.state == received:
		f.dataAgain(m, e)
	case m.headless > 0 && e.Time.Sub(m.lastData) >= duplicateWindow, m.lostData > 0:
		f.retransmitted(m, e)
	}
	f.arrives(m, e, protocol.Data)
	first := m.dataPackets == 0 && !e.Retransmitted
	m.Words, m.sum = e.Header.Size, crc32.Checksum(payload, castagnoli)
	m.dataPackets++
	m.longest = max(m.longest, e.Length)
	m.dataPacket = e.Packet
	if !f.redo && !e.Duplicate {
		m.state = receiving
	}
	if first {
		m.datas.sent(e.Time)
		m.step(e, "DATA", true, false)
	}
	f.checkCall(m, e)
	if e.Proto == pcapng.UDP {
		payload = f.t.whole(payload, truncated)
	}
	f.take(m, e, payload, true)
}

// retransmitsLast reports whether DATA without a request retransmits the last message.
func (f *flow) retransmitsLast(e *Event, payload []byte) bool {
	return f.last != nil && f.last.sameData(e, payload)
}

// sameData reports whether DATA retransmits the DATA of the message.
func (m *message) sameData(e *Event, payload []byte) bool {
	return m.dataPackets > 0 && m.Words == e.Header.Size && m.sum == crc32.Checksum(payload, castagnoli)
}

// dataAgain handles a DATA header of a message whose DATA was seen before.
func (f *flow) dataAgain(m *message, e *Event) {
	if e.isCopy(e.Time.Sub(m.lastData)) {
		f.copied(m, e)
		return
	}
	f.retransmitted(m, e)
	switch {
	case !m.ack.IsZero():
		m.lose("ACK")
	case m.state == received:
		m.lose("DATA or its ACK")
	default:
		f.loseDatagram(m)
	}
}

// payload handles payload without a header, or a datagram that must be payload.
func (f *flow) payload(e *Event, b []byte, truncated int) {
	e.Kind = PayloadEvent
	m := f.current()
	if m != nil && m.unclear { // of DATA that answers the revoked CLEAR_TO_SEND
		e.Message, e.Reason = m.ID, handshake.ReasonUnexpectedPayload
		return
	}
	if m != nil && e.fate() == pcapng.Lost {
		e.Message = m.ID
		m.lostPacket(e, datagramOfData)
		return
	}
	if m != nil && m.state == cleared {
		// The datagram with the header is not in the recording.
		m.headless++
		m.headlessBytes += int64(len(b) + truncated)
		m.lastData = e.Time
		m.lose(firstOfData)
		e.Message, e.Reason = m.ID, handshake.ReasonUnexpectedPayload
		return
	}
	if m == nil || f.pair == nil {
		e.Reason = handshake.ReasonUnexpectedPayload
		if m == nil && f.last != nil && e.Time.Sub(f.last.lastData) < duplicateWindow {
			// This is the remainder of a duplicate, or a surplus datagram of the message.
			e.Message, e.Duplicate = f.last.ID, true
		}
		return
	}
	sum := crc32.Checksum(b, castagnoli)
	same := len(b) > 0 && sum == f.sum && len(b)+truncated == f.length && e.Time.Sub(m.lastData) < duplicateWindow
	if same {
		m.duplicateAt = e.Packet
	}
	f.sum, f.length = sum, len(b)+truncated
	if w, _ := f.pair.RecvWait(); w.State != handshake.Receiving {
		f.surplus(m, e, same)
		return
	}
	f.take(m, e, f.t.whole(b, truncated), false)
	if e.InData && e.Proto == pcapng.UDP {
		f.continued(m, sum, truncated)
	}
}

// surplus explains payload that arrives for a message after all of its payload.
func (f *flow) surplus(m *message, e *Event, same bool) {
	e.Message, e.Reason = m.ID, handshake.ReasonUnexpectedPayload
	if m.state != received || m.explained || e.Proto == pcapng.TCP {
		return
	}
	m.explained = true
	if same {
		e.Duplicate = true
		m.verdict("a datagram of DATA was delivered twice")
		f.t.find(DuplicatePacket, e, "the network delivered the last datagram of message %d from rank %d to "+
			"rank %d twice", m.ID, m.Src, m.Dst).about(m, e.Packet)
		return
	}
	m.verdict("size mismatch")
	f.t.find(SizeMismatch, e, "message %d from rank %d to rank %d announces %d words, but more bytes arrived", m.ID,
		m.Src, m.Dst, m.Words).about(m, e.Packet)
}

// whole returns payload at its full length: zeros replace the bytes that the snapshot length cut off.
func (t *Tracker) whole(b []byte, truncated int) []byte {
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
func (f *flow) take(m *message, e *Event, b []byte, begins bool) {
	now := f.t.instant(e.Time)
	e.Message, e.InData, e.DataPacket = m.ID, true, m.dataPacket
	e.Header.Src, e.Header.Dst, e.HasRanks = uint32(m.Src), uint32(m.Dst), true
	e.Total = int64(m.Words) * protocol.WordLen
	var reason handshake.Reason
	if begins {
		f.ready(m, now, e.Proto == pcapng.TCP)
		reason = f.feed(now, e, m, b)
	} else {
		w, _ := f.pair.RecvWait()
		e.Offset = w.Got
		f.acts = f.pair.Payload(now, b, f.acts[:0])
		reason = f.place(e, b)
	}
	m.lastData = e.Time
	m.data(e)
	switch {
	case reason != handshake.ReasonNone:
	case begins:
		f.began(m, e)
	default:
		m.arrival.datagrams++
		m.arrival.bytes += e.Bytes
	}
	switch {
	case reason == handshake.ReasonLength,
		reason == handshake.ReasonGap && protocol.CPUShape().Skips(e.Total-e.Offset, int64(len(b))):
		e.InData, e.Reason = false, reason
		f.badLength(m, e, int64(len(b)), begins)
	case reason != handshake.ReasonNone:
		e.InData, e.Reason = false, reason
	case e.Completes:
		if !f.redo {
			m.state, m.dataEnd = received, e.Time
			if m.firstDataEnd.IsZero() {
				m.firstDataEnd = e.Time
			}
		}
		f.redo = f.redo && m == f.last
		f.t.padding(f.from, m, e)
	}
}

// ready puts the receiving half into its state after CLEAR_TO_SEND.
func (f *flow) ready(m *message, now handshake.Instant, reliable bool) {
	if f.pair == nil || f.pair.Config().Reliable != reliable || f.pair.Config().Remote != uint32(m.Src) ||
		f.pair.Config().Local != uint32(m.Dst) {
		f.pair = handshake.New(handshake.Config{
			Local: uint32(m.Dst), Remote: uint32(m.Src), Profile: f.t.opts.Profile, Reliable: reliable,
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
	f.t.opts.Profile.Put(f.header[:], request)
	f.acts = f.pair.Datagram(now, f.header[:], f.acts[:0])
}

// feed passes a DATA header and its payload to the receiving half.
func (f *flow) feed(now handshake.Instant, e *Event, m *message, b []byte) handshake.Reason {
	h := e.Header
	h.Call, h.Type, h.Size = m.call, protocol.Data, m.Words
	f.t.data = f.t.opts.Profile.Append(f.t.data[:0], h)
	if e.Proto == pcapng.TCP {
		f.acts = f.pair.Header(now, f.t.data, f.acts[:0])
		return f.place(e, nil)
	}
	f.t.data = append(f.t.data, b...)
	f.acts = f.pair.Datagram(now, f.t.data, f.acts[:0])
	return f.place(e, b)
}

// place determines the position of payload, or why it was dropped, from the actions of the receiving half.
func (f *flow) place(e *Event, b []byte) handshake.Reason {
	reason := handshake.ReasonNone
	for _, a := range f.acts {
		switch a.Kind {
		case handshake.Copy:
			e.Bytes = int64(len(a.Payload))
			e.Offset = a.Offset
		case handshake.RecvDone:
			e.Completes = true
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

// badLength explains a datagram of unexpected length.
func (f *flow) badLength(m *message, e *Event, n int64, begins bool) {
	if m.explained {
		return
	}
	m.explained = true
	left := e.Total - e.Offset
	switch {
	case begins:
		m.state, m.dataEnd = received, e.Time
		m.verdict("size mismatch")
		f.t.find(SizeMismatch, e, "DATA from rank %d announces %d words, %d bytes, but its datagram carries %d", m.Src,
			m.Words, e.Total, n).about(m, e.Packet)
	case protocol.CPUShape().Skips(left, n):
		padding := (n - left) & (protocol.LineLen - 1)
		f.lastTooSoon(m, n-padding)
	case m.duplicateAt != 0:
		m.verdict("a datagram of DATA was delivered twice")
		f.t.find(DuplicatePacket, e, "the network delivered a datagram of message %d from rank %d to rank %d twice: "+
			"the duplicate cannot be distinguished from the next part, so that the data is corrupt, or retransmitted%s",
			m.ID, m.Src, m.Dst, f.harm(m, "", "the copy", "")).about(m, m.duplicateAt)
	default:
		m.verdict("size mismatch")
		f.t.find(SizeMismatch, e, "message %d from rank %d to rank %d: %d bytes were left of %d, but the datagram "+
			"carries %d", m.ID, m.Src, m.Dst, left, e.Total, n).about(m, e.Packet)
	}
}

// lastTooSoon records that the last datagram of a message, with n bytes, arrived although an earlier one is missing.
func (f *flow) lastTooSoon(m *message, n int64) {
	m.arrival.datagrams++
	m.arrival.bytes += n
	m.arrival.tail = true
	f.loseDatagram(m)
}
