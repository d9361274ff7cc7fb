package capture

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxPackets is the maximum number of packet numbers listed in a finding.
const maxPackets = 16

// progress is the phase of a message.
type progress uint8

const (
	requested progress = iota
	cleared
	receiving // some of DATA has arrived
	received  // all of DATA has arrived
)

// message is a Message in progress.
type message struct {
	Message
	call        protocol.Call
	state       progress
	firstPacket int64
	keep        int

	request, clear, dataEnd, ack     time.Time
	firstDataEnd                     time.Time // dataEnd without retransmissions
	lastRequest, lastClear, lastData time.Time
	dataPackets                      int
	longest                          int // longest datagram of DATA, in bytes
	dataPacket                       int64
	sum                              uint32 // of the payload in the first datagram
	duplicateAt                      int64  // continuation datagram that equals the previous one
	again                            []int64
	lastAgain                        time.Time
	lost                             string // name of a packet that must have been lost
	verdicts                         string
	stale, crossed, mixed            bool
	// number is the number of the message's SEND_REQUEST (P28). unclear is true if the CLEAR_TO_SEND was revoked and no
	// SEND_REQUEST followed. withdrawn is true if the SEND_REQUEST was revoked.
	number              uint32
	unclear, withdrawn  bool
	explained, reported bool
	// next and nextPacket are the time and packet of the sender's next call, if the sender made one without being
	// cleared.
	next       time.Time
	nextPacket int64
	// requests and datas track the sender's transmissions of SEND_REQUEST and DATA.
	requests, datas retransmissions
	arrival         arrival
	// broken is the part that had been received when the loss of a datagram of DATA was detected. compared is true once
	// a retransmission was compared with it; gap is then the number of the lost datagram, counted from 1, if known.
	broken   *arrival
	gap      int64
	compared bool
	// headless and headlessBytes count continuation datagrams received without the datagram that has the header.
	headless, headlessBytes int64
	lastPacket              int64 // last packet with a header
	// gone lists the packets that were lost as several recordings show; lostData counts the lost DATA headers. arrived
	// is the last SEND_REQUEST that was shown to have arrived, and arrivedAt is its time.
	gone      []gonePacket
	lostData  int
	arrived   int64
	arrivedAt string
	// came counts, by type, the packets that arrived or may have arrived.
	came [protocol.Error + 1]int
}

// retransmissions counts the packets of one kind sent since the sender's schedule of time-outs began.
type retransmissions struct {
	n    int
	last time.Time
	gap  time.Duration
}

// sent records a packet. The time-outs of a schedule grow. If the time since the previous packet is less than half of
// the time before that, the previous packet was the first of a new schedule, for example because the program was
// restarted.
func (r *retransmissions) sent(at time.Time) {
	gap := at.Sub(r.last)
	switch {
	case r.last.IsZero():
	case gap < r.gap/2:
		r.n, r.gap = 1, gap
	default:
		r.n, r.gap = r.n+1, gap
	}
	r.last = at
}

// open begins a message with the event of its first packet.
func (f *flow) open(e *Event) *message {
	f.reportLast()
	f.t.messages++
	call := e.Header.Call
	if call.IsRecv() {
		call = call.Counterpart()
	}
	m := &message{
		Message: Message{
			ID: f.t.messages, Src: int(e.Header.Src), Dst: int(e.Header.Dst), Call: call.String(),
			Tag: int(e.Header.Tag), Start: f.t.seconds(e.Time),
		},
		call: call, firstPacket: e.Packet, keep: f.t.opts.KeepSteps, lastRequest: e.Time,
	}
	if e.Header.Type == protocol.SendRequest {
		m.number = e.Header.Size
		m.requests.sent(e.Time)
	}
	f.msg, f.redo, f.sum, f.length = m, false, 0, 0
	e.Message = m.ID
	return m
}

// retransmitted records a retransmission.
func (f *flow) retransmitted(m *message, e *Event) {
	switch e.Header.Type {
	case protocol.SendRequest:
		f.arrives(m, e, protocol.SendRequest)
		m.requests.sent(e.Time)
		f.t.ranks.retransmitted(f.from, m.requests.n)
	case protocol.Data:
		m.datas.sent(e.Time)
	}
	m.Retransmissions++
	m.lastAgain = e.Time
	e.Message, e.Retransmitted = m.ID, true
	if len(m.again) < maxPackets {
		m.again = append(m.again, e.Packet)
	}
	m.step(e, e.Header.Type.String(), e.Header.Type == protocol.SendRequest || e.Header.Type == protocol.Data, true)
}

// lose records a packet that must have been lost. Only the first counts: it caused the others.
func (m *message) lose(what string) {
	if m.lost == "" {
		m.lost = what
	}
}

// verdict records a problem of the message. Only the first counts.
func (m *message) verdict(text string) {
	if m.verdicts == "" {
		m.verdicts = text
	}
}

// step adds a packet to the steps of the message.
func (m *message) step(e *Event, typ string, fromSender, retransmitted bool) {
	e.Message, m.lastPacket = m.ID, e.Packet
	switch e.fate() {
	case pcapng.Lost:
		m.lostPacket(e, typ)
	case pcapng.Delivered:
		if e.Header.Type == protocol.SendRequest {
			m.arrived, m.arrivedAt = e.Packet, e.Trail.Seen[len(e.Trail.Seen)-1].Recording
		}
	case pcapng.FateUnknown, pcapng.Copied:
	}
	if len(m.Steps) >= m.keep {
		return
	}
	m.Steps = append(m.Steps, Step{
		Packet: e.Packet, Packets: 1, Time: e.Time, End: e.Time, Type: typ, FromSender: fromSender,
		Retransmitted: retransmitted,
	})
}

// data adds payload to its DATA step.
func (m *message) data(e *Event) {
	for i := len(m.Steps) - 1; i >= 0; i-- {
		if s := &m.Steps[i]; s.Type == "DATA" {
			if s.Packet != e.Packet {
				s.Packets++
			}
			s.End = e.Time
			s.Bytes += e.Bytes
			return
		}
	}
}

// end closes a message. The message is reported when the next message of the flow begins, because its packets may be
// retransmitted until then.
func (f *flow) end(m *message, e *Event, complete bool) {
	e.Message = m.ID
	if m.Complete = complete; !complete {
		m.Ended = e.Time
	}
	f.msg, f.last = nil, m
	if f.pair != nil && !f.pair.RecvIdle() {
		f.pair = nil // still waiting for a part that was not recorded
	}
}

// reportLast reports the last closed message and explains its retransmissions.
func (f *flow) reportLast() {
	m := f.last
	if m == nil || m.reported {
		return
	}
	m.reported = true
	switch {
	case !m.next.IsZero():
		f.abandoned(m)
	case m.withdrawn:
	case len(m.gone) > 0:
		f.findGone(m)
	case m.lost != "":
		m.verdict(m.lost + " lost")
		f.t.findIn(LostPacket, m, "message %d from rank %d to rank %d: %s was lost, or is not in the recording%s%s",
			m.ID, m.Src, m.Dst, m.lost, f.lossText(m), f.retransmissionText(m))
	case m.Retransmissions > 0 && !m.stale && !m.crossed:
		m.verdict("retransmitted")
		f.t.findIn(RetransmittedPacket, m, "message %d from rank %d to rank %d: no answer in time%s", m.ID, m.Src,
			m.Dst, f.retransmissionText(m))
	}
	if m.stale {
		m.verdict("cleared by a stale CLEAR_TO_SEND")
	}
	f.report(m)
}

// lossText describes how much of a message with a lost datagram was received.
func (f *flow) lossText(m *message) string {
	switch {
	case m.broken != nil:
		return "; " + f.arrived(m, m.broken)
	case m.headless > 0:
		return fmt.Sprintf("; %s (%d bytes) arrived without it", counted(m.headless, "continuation datagram"),
			m.headlessBytes)
	}
	return ""
}

func (f *flow) retransmissionText(m *message) string {
	switch {
	case m.Retransmissions == 0:
		return ""
	case m.dataPackets > 1 && m.fragmented():
		text := fmt.Sprintf("; %s retransmitted, DATA of several datagrams among them", packetsWere(m.Retransmissions))
		return text + f.harm(m, "where a part of it had arrived, ", "the second header",
			", if not much more than 100 ms have passed since the last datagram")
	}
	return fmt.Sprintf("; %s retransmitted", packetsWere(m.Retransmissions))
}

// fragmented reports whether the message has continuation datagrams.
func (m *message) fragmented() bool {
	return int64(m.Words)*protocol.WordLen > protocol.MaxDatagram-protocol.HeaderLen
}

func packetsWere(n int) string {
	if n == 1 {
		return "1 packet was"
	}
	return fmt.Sprintf("%d packets were", n)
}

// report fills in the verdict and phases of a message and calls OnMessage.
func (f *flow) report(m *message) {
	if m.Verdict = m.verdicts; m.Verdict == "" {
		m.Verdict = "ok"
	}
	m.Phases = Phases{
		RequestToClear: between(m.request, m.clear),
		ClearToData:    between(m.clear, m.dataEnd),
		DataToAck:      between(m.dataEnd, m.ack),
		Total:          between(m.request, m.ack),
	}
	if f.t.opts.OnMessage != nil {
		f.t.opts.OnMessage(&m.Message)
	}
	m.Steps = nil
}

// between returns the time from a to b in seconds, or nil if one of them is unknown or b is before a.
func between(a, b time.Time) *float64 {
	if a.IsZero() || b.IsZero() || b.Before(a) {
		return nil
	}
	return new(b.Sub(a).Seconds())
}
