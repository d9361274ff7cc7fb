package capture

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// knownLoss is a packet that was lost between the vantage points from and to, as joined recordings prove.
type knownLoss struct {
	packet         int64
	what, from, to string
}

// Names used for a lost continuation datagram, and for a lost datagram with the DATA header.
const (
	dataDatagram      = "a datagram of DATA"
	firstDataDatagram = "the first datagram of DATA"
)

// recordLoss records that a packet of the message was lost.
func (m *message) recordLoss(event *Event, what string) {
	if len(m.knownLosses) < maxPackets {
		m.knownLosses = append(m.knownLosses, knownLoss{event.Packet, what, event.Trail.From, event.Trail.To})
	}
	if len(m.retransmits) < maxPackets && event.Packet != m.firstPacket {
		m.retransmits = appendNew(m.retransmits, event.Packet)
	}
	m.lastRetransmit = event.Time
}

// recordArrival counts a packet with a header in arrivals, unless the packet was lost. An answer proves that the packet
// it answers arrived: if all recorded copies of that packet counted as lost, a recording lacks one that arrived. In
// this case, recordArrival counts these losses as unrecorded packets and returns true.
func (f *flow) recordArrival(msg *message, e *Event, typ protocol.Type) (lacking bool) {
	if e.fate() != pcapng.FateLost {
		msg.arrivals[typ]++
	}
	before := len(msg.knownLosses)
	switch typ {
	case protocol.ClearToSend:
		f.countUnrecorded(msg, protocol.SendRequest.String(), msg.arrivals[protocol.SendRequest] == 0)
	case protocol.Data:
		f.countUnrecorded(msg, protocol.ClearToSend.String(), msg.arrivals[protocol.ClearToSend] == 0)
	case protocol.Ack:
		f.countUnrecorded(msg, protocol.Data.String(), msg.arrivals[protocol.Data] == 0)
		// after a retransmission, an FPGA may have stored the second header as payload instead
		f.countUnrecorded(msg, dataDatagram, msg.dataSends.n == 0)
	case protocol.SendRequest, protocol.Error:
	}
	return len(msg.knownLosses) < before
}

// countUnrecorded moves the losses with the given name from m.knownLosses to Tracker.unrecorded. It does nothing if
// arrived is false.
func (f *flow) countUnrecorded(m *message, what string, arrived bool) {
	if !arrived || len(m.knownLosses) == 0 {
		return
	}
	m.knownLosses = slices.DeleteFunc(m.knownLosses, func(loss knownLoss) bool {
		if loss.what != what {
			return false
		}
		s := f.tracker.unrecorded[loss.to]
		if s == nil {
			s = &packetSample{}
			if f.tracker.unrecorded == nil {
				f.tracker.unrecorded = map[string]*packetSample{}
			}
			f.tracker.unrecorded[loss.to] = s
		}
		s.add(&Event{Packet: loss.packet, Time: f.tracker.now})
		return true
	})
}

// reportUnrecorded reports packets missing from a recording although an answer proves that they arrived there.
func (t *Tracker) reportUnrecorded() {
	for _, name := range slices.Sorted(maps.Keys(t.unrecorded)) {
		s := t.unrecorded[name]
		t.addFinding(LostPacket, &Event{Time: s.first, Packet: s.list[0]}, "%s lacks %s that arrived, as answers show",
			name, formatCount(s.n, "packet")).setPackets(s.list)
	}
}

// knownLossText lists the lost packets of the message, grouped by name and by the two vantage points between which they
// were lost.
func (m *message) knownLossText() string {
	var texts []string
	for i, loss := range m.knownLosses {
		same := func(h knownLoss) bool { return h.what == loss.what && h.from == loss.from && h.to == loss.to }
		if slices.IndexFunc(m.knownLosses, same) != i {
			continue
		}
		var list []int64
		for _, h := range m.knownLosses[i:] {
			if same(h) {
				list = append(list, h.packet)
			}
		}
		noun, verb := "packet", "was"
		if len(list) > 1 {
			noun, verb = "packets", "were"
		}
		texts = append(texts,
			fmt.Sprintf("%s (%s %s) %s lost between %s and %s", loss.what, noun, formatNumbers(list), verb, loss.from, loss.to))
	}
	return strings.Join(texts, "; ")
}

// findKnownLosses reports the lost packets of a message.
func (f *flow) findKnownLosses(m *message) {
	m.setProblem(m.knownLosses[0].what + " lost")
	f.tracker.addMessageFinding(LostPacket, m, "message %d from rank %d to rank %d: %s%s",
		m.ID, m.Src, m.Dst, m.knownLossText(), f.retransmissionText(m))
}

// isLastPacketLost reports whether the wait is explained by the loss of the message's last packet.
func (m *message) isLastPacketLost() bool {
	return len(m.knownLosses) > 0 && m.knownLosses[len(m.knownLosses)-1].packet >= m.lastPacket
}

// allRequestsLost reports whether all SEND_REQUESTs of the message were lost.
func (m *message) allRequestsLost() bool {
	n := 0
	for _, g := range m.knownLosses {
		if g.what == "SEND_REQUEST" {
			n++
		}
	}
	return n > 0 && n == min(m.requestSends.n+1, maxPackets)
}

// onLostData handles a lost datagram with a DATA header. It returns false if the datagram's message is unknown.
func (f *flow) onLostData(event *Event, payload []byte) bool {
	msg := f.msg
	switch {
	case msg == nil && f.retransmitsLast(event, payload):
		msg = f.previous
	case msg == nil || msg.state == requested:
		return false
	}
	f.recordArrival(msg, event, protocol.Data)
	again := msg.dataPackets+msg.lostDataHeaders > 0
	msg.Words = event.Header.Size
	msg.lostDataHeaders++
	if msg.firstDataEnd.IsZero() { // the sender starts to wait
		msg.firstDataEnd = event.Time
	}
	if again {
		f.onRetransmission(msg, event)
	} else {
		msg.dataSends.recordSend(event.Time)
		msg.addStep(event, "DATA", true, false)
	}
	event.Reason = handshake.ReasonNone
	return true
}
