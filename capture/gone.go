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

// knownLoss is a packet that was lost between two vantage points, as several recordings show.
type knownLoss struct {
	packet         int64
	what, from, to string
}

// Descriptions of the loss of a continuation datagram, and of the datagram with the header.
const (
	dataDatagram      = "a datagram of DATA"
	firstDataDatagram = "the first datagram of DATA"
)

// recordLoss records a lost packet of the message.
func (m *message) recordLoss(e *Event, what string) {
	if len(m.knownLosses) < maxPackets {
		m.knownLosses = append(m.knownLosses, knownLoss{e.Packet, what, e.Trail.From, e.Trail.To})
	}
	if len(m.retransmits) < maxPackets && e.Packet != m.firstPacket {
		m.retransmits = appendNew(m.retransmits, e.Packet)
	}
	m.lastRetransmit = e.Time
}

// recordArrival records a packet with a header that arrived, or may have arrived. Its arrival proves that the packet that it
// answers arrived as well. The result is true if all known copies of that packet counted as lost, which means that they
// are missing from a recording.
func (f *flow) recordArrival(m *message, e *Event, typ protocol.Type) (lacking bool) {
	if e.fate() != pcapng.FateLost {
		m.arrivals[typ]++
	}
	before := len(m.knownLosses)
	switch typ {
	case protocol.ClearToSend:
		f.countUnrecorded(m, protocol.SendRequest.String(), m.arrivals[protocol.SendRequest] == 0)
	case protocol.Data:
		f.countUnrecorded(m, protocol.ClearToSend.String(), m.arrivals[protocol.ClearToSend] == 0)
	case protocol.Ack:
		f.countUnrecorded(m, protocol.Data.String(), m.arrivals[protocol.Data] == 0)
		f.countUnrecorded(m, dataDatagram, m.dataSends.n == 0) // otherwise an FPGA may have stored a second header as payload
	case protocol.SendRequest, protocol.Error:
	}
	return len(m.knownLosses) < before
}

// countUnrecorded removes the packets described by what from m.gone and counts them as unrecorded. It does nothing if arrived is
// false.
func (f *flow) countUnrecorded(m *message, what string, arrived bool) {
	if !arrived || len(m.knownLosses) == 0 {
		return
	}
	m.knownLosses = slices.DeleteFunc(m.knownLosses, func(g knownLoss) bool {
		if g.what != what {
			return false
		}
		s := f.tracker.unrecorded[g.to]
		if s == nil {
			s = &packetSample{}
			if f.tracker.unrecorded == nil {
				f.tracker.unrecorded = map[string]*packetSample{}
			}
			f.tracker.unrecorded[g.to] = s
		}
		s.add(&Event{Packet: g.packet, Time: f.tracker.now})
		return true
	})
}

// reportUnrecorded reports packets that are missing from a recording although an answer proves that they arrived there.
func (t *Tracker) reportUnrecorded() {
	for _, name := range slices.Sorted(maps.Keys(t.unrecorded)) {
		s := t.unrecorded[name]
		t.addFinding(LostPacket, &Event{Time: s.first, Packet: s.list[0]}, "%s lacks %s that had arrived, as answers show",
			name, formatCount(s.n, "packet")).setPackets(s.list)
	}
}

// knownLossText lists the lost packets of the message, grouped by the places between which they were lost.
func (m *message) knownLossText() string {
	var texts []string
	for i, g := range m.knownLosses {
		same := func(h knownLoss) bool { return h.what == g.what && h.from == g.from && h.to == g.to }
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
			fmt.Sprintf("%s (%s %s) %s lost between %s and %s", g.what, noun, formatNumbers(list), verb, g.from, g.to))
	}
	return strings.Join(texts, "; ")
}

// findKnownLosses reports the lost packets of a message.
func (f *flow) findKnownLosses(m *message) {
	m.setProblem(m.knownLosses[0].what + " lost")
	f.tracker.addMessageFinding(LostPacket, m, "message %d from rank %d to rank %d: %s%s",
		m.ID, m.Src, m.Dst, m.knownLossText(), f.retransmissionText(m))
}

// isLastPacketLost reports whether the last packet of the message was lost. If so, the loss explains the wait.
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

// onLostData handles a lost datagram with the header of DATA. It returns false if the message of the datagram is not
// known.
func (f *flow) onLostData(e *Event, payload []byte) bool {
	m := f.msg
	switch {
	case m == nil && f.retransmitsLast(e, payload):
		m = f.previous
	case m == nil || m.state == requested:
		return false
	}
	f.recordArrival(m, e, protocol.Data)
	again := m.dataPackets+m.lostDataHeaders > 0
	m.Words = e.Header.Size
	m.lostDataHeaders++
	if m.firstDataEnd.IsZero() { // the sender starts to wait
		m.firstDataEnd = e.Time
	}
	if again {
		f.onRetransmission(m, e)
	} else {
		m.dataSends.recordSend(e.Time)
		m.addStep(e, "DATA", true, false)
	}
	e.Reason = handshake.ReasonNone
	return true
}
