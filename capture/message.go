package capture

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxPackets is the maximum number of packet numbers listed in a finding.
const maxPackets = 16

// messagePhase is the phase of a message.
type messagePhase uint8

const (
	// requested: only SEND_REQUEST was recorded so far.
	requested messagePhase = iota
	// cleared: CLEAR_TO_SEND was recorded.
	cleared
	receiving // part of DATA was received
	received  // all of DATA was received
)

// message is a Message in progress.
type message struct {
	Message
	call        protocol.Call
	state       messagePhase
	firstPacket int64
	// keep is the maximum number of steps recorded in Message.Steps.
	keep int

	request, clear, dataEnd, ack     time.Time
	firstDataEnd                     time.Time // dataEnd without retransmissions
	lastRequest, lastClear, lastData time.Time
	dataPackets                      int
	longestDatagram                  int // of DATA, in bytes
	dataPacket                       int64
	sum                              uint32 // of the payload in the first datagram
	duplicatePacket                  int64  // continuation datagram that equals the previous one
	retransmits                      []int64
	lastRetransmit                   time.Time
	inferredLoss                     string // name of a packet that must have been lost
	// problem is the first problem found. It becomes the verdict.
	problem                                  string
	clearedByStale, crossed, hasTypeMismatch bool
	// requestNumber is the number of the message's SEND_REQUEST (P28). clearRevoked is true while the last
	// CLEAR_TO_SEND is revoked and no new SEND_REQUEST has followed. requestRevoked is true if the SEND_REQUEST was
	// revoked.
	requestNumber                uint32
	clearRevoked, requestRevoked bool
	// explained is set once a finding explains an unexpected length, so that later datagrams cause no second finding.
	explained, reported bool
	// nextCall and nextCallPacket are the time and packet of the sender's next call, if this call was never cleared.
	nextCall       time.Time
	nextCallPacket int64
	// requestSends and dataSends record when the sender transmitted SEND_REQUEST and DATA.
	requestSends, dataSends retransmissions
	dataProgress            dataProgress
	// progressAtLoss is the progress of DATA when the loss of a datagram was detected. isCompared is true once a
	// difference between a retransmission and progressAtLoss was found. lostDatagram is then the number of the lost
	// datagram, counted from 1, or 0 if unknown.
	progressAtLoss *dataProgress
	lostDatagram   int64
	isCompared     bool
	// headlessPackets and headlessBytes count the continuation datagrams recorded without the datagram that contains
	// the header.
	headlessPackets, headlessBytes int64
	lastPacket                     int64 // last packet with a header
	// knownLosses lists the packets that joined recordings prove lost. lostDataHeaders counts the lost DATA headers.
	// arrivedRequest is the packet number of the last SEND_REQUEST proved delivered, and arrivedIn the last recording
	// that contains it.
	knownLosses     []knownLoss
	lostDataHeaders int
	arrivedRequest  int64
	arrivedIn       string
	// arrivals counts the packets with a header that were not proved lost, by packet type.
	arrivals [protocol.Error + 1]int
}

// retransmissions counts the retransmissions of a packet since the sender's current schedule of timeouts began.
type retransmissions struct {
	n    int
	last time.Time
	gap  time.Duration
}

// recordSend records a transmission. The timeouts of a schedule grow, so a gap shorter than half of the preceding gap
// shows that the previous transmission began a new schedule, for example because the program was restarted.
func (r *retransmissions) recordSend(at time.Time) {
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

// newMessage begins a message with its first packet, event.
func (f *flow) newMessage(event *Event) *message {
	f.reportLast()
	f.tracker.messages++
	call := event.Header.Call
	if call.IsRecv() {
		call = call.Counterpart()
	}
	msg := &message{
		Message: Message{
			ID: f.tracker.messages, Src: int(event.Header.Src), Dst: int(event.Header.Dst), Call: call.String(),
			Tag: int(event.Header.Tag), Start: f.tracker.seconds(event.Time),
		},
		call: call, firstPacket: event.Packet, keep: f.tracker.opts.KeepSteps, lastRequest: event.Time,
	}
	if event.Header.Type == protocol.SendRequest {
		msg.requestNumber = event.Header.Size
		msg.requestSends.recordSend(event.Time)
	}
	f.msg, f.retransmitting, f.lastChecksum, f.lastLength = msg, false, 0, 0
	event.Message = msg.ID
	return msg
}

// onRetransmission records a retransmission.
func (f *flow) onRetransmission(msg *message, event *Event) {
	switch event.Header.Type {
	case protocol.SendRequest:
		f.recordArrival(msg, event, protocol.SendRequest)
		msg.requestSends.recordSend(event.Time)
		f.tracker.ranks.recordRetransmits(f.from, msg.requestSends.n)
	case protocol.Data:
		msg.dataSends.recordSend(event.Time)
	}
	msg.Retransmissions++
	msg.lastRetransmit = event.Time
	event.Message, event.Retransmitted = msg.ID, true
	if len(msg.retransmits) < maxPackets {
		msg.retransmits = append(msg.retransmits, event.Packet)
	}
	msg.addStep(event, event.Header.Type.String(), event.Header.Type == protocol.SendRequest ||
		event.Header.Type == protocol.Data, true)
}

// inferLoss records that a packet must have been lost. It records only the first loss, because later ones are its
// consequences.
func (m *message) inferLoss(what string) {
	if m.inferredLoss == "" {
		m.inferredLoss = what
	}
}

// setProblem records a problem of the message, unless an earlier one was recorded.
func (m *message) setProblem(text string) {
	if m.problem == "" {
		m.problem = text
	}
}

// addStep adds a packet to the list of the message's steps.
func (m *message) addStep(event *Event, typ string, fromSender, retransmitted bool) {
	event.Message, m.lastPacket = m.ID, event.Packet
	switch event.fate() {
	case pcapng.FateLost:
		m.recordLoss(event, typ)
	case pcapng.FateDelivered:
		if event.Header.Type == protocol.SendRequest {
			m.arrivedRequest, m.arrivedIn = event.Packet, event.Trail.Sightings[len(event.Trail.Sightings)-1].Recording
		}
	case pcapng.FateUnknown, pcapng.FateCopied:
	}
	if len(m.Steps) >= m.keep {
		return
	}
	m.Steps = append(m.Steps, Step{
		Packet: event.Packet, Packets: 1, Time: event.Time, End: event.Time, Type: typ, FromSender: fromSender,
		Retransmitted: retransmitted,
	})
}

// addPayload adds a piece of payload to the message's last DATA step.
func (m *message) addPayload(event *Event) {
	for i := len(m.Steps) - 1; i >= 0; i-- {
		if s := &m.Steps[i]; s.Type == "DATA" {
			if s.Packet != event.Packet {
				s.Packets++
			}
			s.End = event.Time
			s.Bytes += event.Bytes
			return
		}
	}
}

// endMessage closes a message. reportLast reports it when the next message of the flow begins, because its packets may
// be retransmitted until then.
func (f *flow) endMessage(m *message, e *Event, complete bool) {
	e.Message = m.ID
	if m.Complete = complete; !complete {
		m.EndTime = e.Time
	}
	f.msg, f.previous = nil, m
	if f.pair != nil && !f.pair.RecvIdle() {
		f.pair = nil // still waiting for a part that was not recorded
	}
}

// reportLast reports the last closed message and explains its retransmissions.
func (f *flow) reportLast() {
	msg := f.previous
	if msg == nil || msg.reported {
		return
	}
	msg.reported = true
	switch {
	case !msg.nextCall.IsZero():
		f.findAbandoned(msg)
	case msg.requestRevoked:
	case len(msg.knownLosses) > 0:
		f.findKnownLosses(msg)
	case msg.inferredLoss != "":
		msg.setProblem(msg.inferredLoss + " lost")
		f.tracker.addMessageFinding(LostPacket, msg,
			"message %d from rank %d to rank %d: %s was lost, or is not in the recording%s%s",
			msg.ID, msg.Src, msg.Dst, msg.inferredLoss, f.lossText(msg), f.retransmissionText(msg))
	case msg.Retransmissions > 0 && !msg.clearedByStale && !msg.crossed:
		msg.setProblem("retransmitted")
		f.tracker.addMessageFinding(RetransmittedPacket, msg, "message %d from rank %d to rank %d: no answer in time%s",
			msg.ID, msg.Src,
			msg.Dst, f.retransmissionText(msg))
	}
	if msg.clearedByStale {
		msg.setProblem("cleared by a stale CLEAR_TO_SEND")
	}
	f.reportMessage(msg)
}

// lossText describes how much of a message arrived in spite of a lost datagram.
func (f *flow) lossText(msg *message) string {
	switch {
	case msg.progressAtLoss != nil:
		return "; " + f.progressText(msg, msg.progressAtLoss)
	case msg.headlessPackets > 0:
		return fmt.Sprintf("; %s (%d bytes) arrived without it", formatCount(msg.headlessPackets, "continuation datagram"),
			msg.headlessBytes)
	}
	return ""
}

func (f *flow) retransmissionText(msg *message) string {
	switch {
	case msg.Retransmissions == 0:
		return ""
	case msg.dataPackets > 1 && msg.isFragmented():
		text := fmt.Sprintf("; %s retransmitted, DATA of several datagrams among them", packetsWere(msg.Retransmissions))
		return text + f.harmText(msg, "where a part of it was received, ", "the second header",
			", if not much more than 100 ms have passed since the last datagram")
	}
	return fmt.Sprintf("; %s retransmitted", packetsWere(msg.Retransmissions))
}

// isFragmented reports whether the message has continuation datagrams.
func (m *message) isFragmented() bool {
	return int64(m.Words)*protocol.WordLen > protocol.MaxDatagram-protocol.HeaderLen
}

func packetsWere(n int) string {
	if n == 1 {
		return "1 packet was"
	}
	return fmt.Sprintf("%d packets were", n)
}

// reportMessage fills in the verdict and phases of a message and calls OnMessage.
func (f *flow) reportMessage(msg *message) {
	if msg.Verdict = msg.problem; msg.Verdict == "" {
		msg.Verdict = "ok"
	}
	msg.Phases = Phases{
		RequestToClear: secondsBetween(msg.request, msg.clear),
		ClearToData:    secondsBetween(msg.clear, msg.dataEnd),
		DataToAck:      secondsBetween(msg.dataEnd, msg.ack),
		Total:          secondsBetween(msg.request, msg.ack),
	}
	if f.tracker.opts.OnMessage != nil {
		f.tracker.opts.OnMessage(&msg.Message)
	}
	msg.Steps = nil
}

// secondsBetween returns the time from a to b in seconds, or nil if one of them is unknown or b is before a.
func secondsBetween(a, b time.Time) *float64 {
	if a.IsZero() || b.IsZero() || b.Before(a) {
		return nil
	}
	return new(b.Sub(a).Seconds())
}
