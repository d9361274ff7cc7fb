package capture

import (
	"hash/crc32"
	"math"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// copyWindow is how soon a packet must come after the one that it equals to be a
// copy made by the network: half of the shortest time-out of any node. Later, it
// was sent again.
const copyWindow = 50 * time.Millisecond

// flow is the messages of one direction of a conversation: SEND_REQUEST and DATA
// go from from to to, CLEAR_TO_SEND and ACK come back.
type flow struct {
	t        *Tracker
	from, to netip.AddrPort
	back     *flow // the messages of the other direction
	// pair is the receiver's half of a live rank. It tells which bytes of
	// which message a datagram carries.
	pair *handshake.Pair
	sent bool // a message has been seen

	msg  *message // in progress
	last *message // the one before, for copies and repeats of it
	redo bool     // DATA of last is being repeated
	// early are CLEAR_TO_SENDs that answer no request so far.
	early clears
	// sum and length are those of the last bare datagram.
	sum    uint32
	length int
	// unasked is a copy of a CLEAR_TO_SEND or ACK to the sender, which may
	// have wedged it: trap 2.
	unasked *Finding

	acts   []handshake.Action
	header [protocol.HeaderLen]byte
}

// clears are CLEAR_TO_SENDs that wait for an explanation.
type clears struct {
	n           int
	first, last time.Time
	packets     []int64
	header      protocol.Header
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// expectsPayload decides whether a datagram is bare payload of the message in
// progress, as package handshake does for a live rank.
func (f *flow) expectsPayload(u *Unit, h protocol.Header, defect protocol.Defect) bool {
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
		// A packet with a damaged header is still one, if a packet could
		// be here and no payload of its length.
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

// current is the message that payload belongs to.
func (f *flow) current() *message {
	if f.redo {
		return f.last
	}
	return f.msg
}

// request takes a SEND_REQUEST.
func (f *flow) request(e *Event) {
	f.sent, f.redo = true, false
	f.settleUnasked()
	if m := f.msg; m != nil && f.requestedAgain(m, e) {
		return
	}
	m := f.open(e)
	m.request = e.Time
	m.step(e, "SEND_REQUEST", true, false)
	if o := f.back.msg; o != nil && o.state == requested && !o.crossed {
		o.crossed, m.crossed = true, true
		f.t.find(CrossedRequests, e, "ranks %d and %d both asked to send, and neither had cleared the other", o.Src, m.Src).
			about(o, o.firstPacket, e.Packet)
	}
	if f.early.n > 0 {
		f.t.find(StaleHeader, e, "rank %d sent CLEAR_TO_SEND without a request of rank %d: it answered a repeated SEND_REQUEST of an earlier message", m.Dst, m.Src).
			about(m, f.early.packets...)
		f.takeEarly(m)
	}
}

// requestedAgain handles a SEND_REQUEST while a message is in progress. It
// reports false if a new message begins.
func (f *flow) requestedAgain(m *message, e *Event) bool {
	since := e.Time.Sub(m.lastRequest)
	switch m.state {
	case requested, cleared:
		if m.crossed && m.state == requested && f.back.msg == nil {
			// The other side's message is done, and has made an FPGA
			// forget this request.
			m.repeated(e)
			break
		}
		if since < copyWindow {
			f.copied(m, e)
			break
		}
		m.repeated(e)
		if m.state == cleared && e.Time.Sub(m.lastClear) >= copyWindow {
			m.lose("CLEAR_TO_SEND")
		}
	case receiving:
		if e.Time.Sub(m.lastData) < copyWindow {
			f.copied(m, e)
			break
		}
		m.verdict("broken off by a new request")
		f.end(m, e, false)
		return false
	default:
		// The peer does one thing at a time: it has the ACK that is not in
		// the recording.
		m.lose("ACK")
		f.end(m, e, false)
		return false
	}
	m.lastRequest = e.Time
	return true
}

// clear takes a CLEAR_TO_SEND.
func (f *flow) clear(e *Event) {
	f.settleUnasked()
	m := f.msg
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
	switch since := e.Time.Sub(m.lastClear); {
	case m.state == requested:
		m.state, m.clear = cleared, e.Time
		m.step(e, "CLEAR_TO_SEND", false, false)
		f.checkCall(m, e)
	case since < copyWindow:
		f.copied(m, e)
		f.holdUnasked()
	default:
		m.repeated(e)
		if m.state == received {
			m.lose("DATA")
		}
	}
	m.lastClear = e.Time
}

// takeEarly gives a message the CLEAR_TO_SENDs that came before it.
func (f *flow) takeEarly(m *message) {
	m.state, m.clear, m.lastClear = cleared, f.early.first, f.early.last
	m.Repeats += f.early.n - 1
	m.stale = true
	f.early = clears{packets: f.early.packets[:0]}
}

// data takes DATA with a header.
func (f *flow) data(e *Event, payload []byte, truncated int) {
	f.sent = true
	m := f.msg
	switch {
	case m == nil && f.early.n > 0:
		m = f.open(e)
		f.takeEarly(m)
		m.stale = false
		m.lose("SEND_REQUEST")
	case m == nil && f.repeatsLast(e, payload):
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
	case m.headless && e.Time.Sub(m.lastData) >= copyWindow:
		m.repeated(e)
	}
	first := m.dataPackets == 0
	m.Words, m.sum = e.Header.Size, crc32.Checksum(payload, castagnoli)
	m.dataPackets++
	m.dataPacket = e.Packet
	if !f.redo {
		m.state = receiving
	}
	if first {
		m.step(e, "DATA", true, false)
	}
	f.checkCall(m, e)
	if e.Proto == UDP {
		payload = f.t.whole(payload, truncated)
	}
	f.take(m, e, payload, true)
}

// repeatsLast reports whether DATA without a request is the last message again.
func (f *flow) repeatsLast(e *Event, payload []byte) bool {
	l := f.last
	return l != nil && l.dataPackets > 0 && l.Words == e.Header.Size && l.sum == crc32.Checksum(payload, castagnoli)
}

// dataAgain handles DATA of a message that has had it.
func (f *flow) dataAgain(m *message, e *Event) {
	if e.Time.Sub(m.lastData) < copyWindow {
		f.copied(m, e)
		return
	}
	m.repeated(e)
	switch {
	case !m.ack.IsZero():
		m.lose("ACK")
	case m.state == received:
		m.lose("DATA or its ACK")
	default:
		m.lose("a datagram of DATA")
	}
}

// payload takes bare payload, or what must be some.
func (f *flow) payload(e *Event, b []byte, truncated int) {
	e.Kind = PayloadEvent
	m := f.current()
	if m != nil && m.state == cleared {
		// The datagram with the header is not in the recording.
		m.headless, m.lastData = true, e.Time
		m.lose("the first datagram of DATA")
		e.Message, e.Reason = m.ID, handshake.ReasonStray
		return
	}
	if m == nil || f.pair == nil {
		e.Reason = handshake.ReasonStray
		if m == nil && f.last != nil && e.Time.Sub(f.last.lastData) < copyWindow {
			// The rest of a copy, or of a message of which one datagram
			// too many arrived.
			e.Message, e.Duplicate = f.last.ID, true
		}
		return
	}
	sum := crc32.Checksum(b, castagnoli)
	same := sum == f.sum && len(b)+truncated == f.length && e.Time.Sub(m.lastData) < copyWindow
	if same {
		m.copyAt = e.Packet
	}
	f.sum, f.length = sum, len(b)+truncated
	if w, _ := f.pair.RecvWait(); w.State != handshake.Receiving {
		f.surplus(m, e, same)
		return
	}
	f.take(m, e, f.t.whole(b, truncated), false)
}

// surplus explains payload of a message that expects none any more.
func (f *flow) surplus(m *message, e *Event, same bool) {
	e.Message, e.Reason = m.ID, handshake.ReasonStray
	if m.state != received || m.explained || e.Proto == TCP {
		return
	}
	m.explained = true
	if same {
		e.Duplicate = true
		m.verdict("a datagram of DATA was delivered twice")
		f.t.find(DuplicatePacket, e, "the network delivered the last datagram of message %d from rank %d to rank %d twice", m.ID, m.Src, m.Dst).about(m, e.Packet)
		return
	}
	m.verdict("size mismatch")
	f.t.find(SizeMismatch, e, "message %d from rank %d to rank %d announces %d words, but more bytes arrived", m.ID, m.Src, m.Dst, m.Words).about(m, e.Packet)
}

// whole returns payload with the bytes that the snapshot length cut off, as
// zeros.
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

// take has the receiver's half place payload in its message.
func (f *flow) take(m *message, e *Event, b []byte, begins bool) {
	now := f.t.instant(e.Time)
	e.Message, e.InData, e.DataPacket = m.ID, true, m.dataPacket
	e.Header.Src, e.Header.Dst, e.HasRanks = uint32(m.Src), uint32(m.Dst), true
	e.Total = int64(m.Words) * protocol.WordLen
	var reason handshake.Reason
	if begins {
		f.ready(m, now, e.Proto == TCP)
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
	case reason == handshake.ReasonLength:
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

// ready puts the receiver's half into the state of one that has cleared.
func (f *flow) ready(m *message, now handshake.Instant, reliable bool) {
	if f.pair == nil || f.pair.Config().Reliable != reliable || f.pair.Config().Remote != uint32(m.Src) || f.pair.Config().Local != uint32(m.Dst) {
		f.pair = handshake.New(handshake.Config{
			Local: uint32(m.Dst), Remote: uint32(m.Src), Profile: f.t.opts.Profile, Reliable: reliable,
			Habits: handshake.Habits{IgnoreDestination: true}, Shape: protocol.CPUShape(),
			Timing: handshake.Timing{FragmentGap: copyWindow}, MaxWords: math.MaxUint32,
		})
	}
	if w, _ := f.pair.RecvWait(); w.State == handshake.WaitData || w.State == handshake.Receiving {
		return
	}
	f.pair.Reset()
	if f.pair.RecvIdle() {
		f.acts, _ = f.pair.Recv(now, handshake.RecvOp{Words: math.MaxUint32, Any: true, AnyTag: true}, f.acts[:0])
	}
	request := protocol.Header{Src: uint32(m.Src), Dst: uint32(m.Dst), Call: m.call, Type: protocol.SendRequest, Tag: uint8(m.Tag)}
	f.t.opts.Profile.Put(f.header[:], request)
	f.acts = f.pair.Datagram(now, f.header[:], f.acts[:0])
}

// feed gives the receiver's half a DATA header and what follows it.
func (f *flow) feed(now handshake.Instant, e *Event, m *message, b []byte) handshake.Reason {
	h := e.Header
	h.Call, h.Type, h.Size = m.call, protocol.Data, m.Words
	f.t.data = f.t.opts.Profile.Append(f.t.data[:0], h)
	if e.Proto == TCP {
		f.acts = f.pair.Header(now, f.t.data, f.acts[:0])
		return f.place(e, nil)
	}
	f.t.data = append(f.t.data, b...)
	f.acts = f.pair.Datagram(now, f.t.data, f.acts[:0])
	return f.place(e, b)
}

// place reads from the receiver's actions what became of payload.
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

// badLength explains a datagram that does not fit its place.
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
		f.t.find(SizeMismatch, e, "DATA from rank %d announces %d words, %d bytes, but its datagram carries %d", m.Src, m.Words, e.Total, n).about(m, e.Packet)
	case m.copyAt != 0:
		m.verdict("a datagram of DATA was delivered twice")
		f.t.find(DuplicatePacket, e, "the network delivered a datagram of message %d from rank %d to rank %d twice: nothing tells the copy from the next part, so the data is damaged or sent again", m.ID, m.Src, m.Dst).about(m, m.copyAt)
	case n < left && (left-n)%protocol.MaxDatagram == 0:
		m.lose("a datagram of DATA")
	default:
		m.verdict("size mismatch")
		f.t.find(SizeMismatch, e, "message %d from rank %d to rank %d: %d bytes were left of %d, but the datagram carries %d", m.ID, m.Src, m.Dst, left, e.Total, n).about(m, e.Packet)
	}
}

// ack takes an ACK.
func (f *flow) ack(e *Event) {
	m := f.msg
	switch {
	case m == nil && f.redo:
		// The answer to a repeat of the last message.
		f.redo = false
		f.last.repeated(e)
		return
	case m == nil && f.last != nil && e.Time.Sub(f.last.ack) < copyWindow:
		f.copied(f.last, e)
		f.holdUnasked()
		return
	case m == nil || m.state == requested:
		e.Reason = handshake.ReasonStale
		finding := f.t.find(StaleHeader, e, "rank %d sent ACK to rank %d, which had sent it nothing", e.Header.Src, e.Header.Dst)
		if m != nil {
			finding.about(m, e.Packet)
		}
		f.holdUnasked()
		return
	case m.state == cleared:
		m.lose("DATA")
	case m.state == receiving && !m.explained:
		m.lose("a datagram of DATA")
	}
	m.ack, m.ackPacket = e.Time, e.Packet
	m.step(e, "ACK", false, false)
	f.checkCall(m, e)
	if m.dataEnd.IsZero() {
		m.dataEnd = m.lastData
	}
	f.end(m, e, true)
}

// copied marks an event as a copy made by the network.
func (f *flow) copied(m *message, e *Event) {
	e.Message, e.Duplicate = m.ID, true
	m.step(e, e.Header.Type.String(), e.Header.Type == protocol.SendRequest || e.Header.Type == protocol.Data, true)
	f.t.find(DuplicatePacket, e, "%v arrived twice within %v", e.Header, copyWindow).about(m, e.Packet)
}

// checkCall compares an answer's datatype with the request's.
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
	f.t.find(DatatypeMismatch, e, "rank %d sends with %v, but %v says %v: INT never matches FLOAT", m.Src, m.call, e.Header.Type, e.Header.Call).about(m, m.firstPacket, e.Packet)
}
