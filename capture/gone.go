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

// gonePacket is a packet that was lost between two vantage points, as several recordings show.
type gonePacket struct {
	packet         int64
	what, from, to string
}

// Descriptions of the loss of a continuation datagram, and of the datagram with the header.
const (
	datagramOfData = "a datagram of DATA"
	firstOfData    = "the first datagram of DATA"
)

// lostPacket records a lost packet of the message.
func (m *message) lostPacket(e *Event, what string) {
	if len(m.gone) < maxPackets {
		m.gone = append(m.gone, gonePacket{e.Packet, what, e.Trail.From, e.Trail.To})
	}
	if len(m.again) < maxPackets && e.Packet != m.firstPacket {
		m.again = appendNew(m.again, e.Packet)
	}
	m.lastAgain = e.Time
}

// arrives records a packet with a header that arrived, or may have arrived. Its arrival proves that the packet that it
// answers arrived as well. The result is true if all known copies of that packet counted as lost, which means that they
// are missing from a recording.
func (f *flow) arrives(m *message, e *Event, typ protocol.Type) (lacking bool) {
	if e.fate() != pcapng.Lost {
		m.came[typ]++
	}
	before := len(m.gone)
	switch typ {
	case protocol.ClearToSend:
		f.lacks(m, protocol.SendRequest.String(), m.came[protocol.SendRequest] == 0)
	case protocol.Data:
		f.lacks(m, protocol.ClearToSend.String(), m.came[protocol.ClearToSend] == 0)
	case protocol.Ack:
		f.lacks(m, protocol.Data.String(), m.came[protocol.Data] == 0)
		f.lacks(m, datagramOfData, m.datas.n == 0) // otherwise an FPGA may have stored a second header as payload
	case protocol.SendRequest, protocol.Error:
	}
	return len(m.gone) < before
}

// lacks removes the packets described by what from m.gone and counts them as unrecorded. It does nothing if arrived is
// false.
func (f *flow) lacks(m *message, what string, arrived bool) {
	if !arrived || len(m.gone) == 0 {
		return
	}
	m.gone = slices.DeleteFunc(m.gone, func(g gonePacket) bool {
		if g.what != what {
			return false
		}
		s := f.t.unrecorded[g.to]
		if s == nil {
			s = &packetSample{}
			if f.t.unrecorded == nil {
				f.t.unrecorded = map[string]*packetSample{}
			}
			f.t.unrecorded[g.to] = s
		}
		s.add(&Event{Packet: g.packet, Time: f.t.now})
		return true
	})
}

// findUnrecorded reports packets that are missing from a recording although an answer proves that they arrived there.
func (t *Tracker) findUnrecorded() {
	for _, name := range slices.Sorted(maps.Keys(t.unrecorded)) {
		s := t.unrecorded[name]
		t.find(LostPacket, &Event{Time: s.first, Packet: s.list[0]}, "%s lacks %s that had arrived, as answers show",
			name, counted(s.n, "packet")).packets(s.list)
	}
}

// goneText lists the lost packets of the message, grouped by the places between which they were lost.
func (m *message) goneText() string {
	var texts []string
	for i, g := range m.gone {
		same := func(h gonePacket) bool { return h.what == g.what && h.from == g.from && h.to == g.to }
		if slices.IndexFunc(m.gone, same) != i {
			continue
		}
		var list []int64
		for _, h := range m.gone[i:] {
			if same(h) {
				list = append(list, h.packet)
			}
		}
		noun, verb := "packet", "was"
		if len(list) > 1 {
			noun, verb = "packets", "were"
		}
		texts = append(texts,
			fmt.Sprintf("%s (%s %s) %s lost between %s and %s", g.what, noun, numbers(list), verb, g.from, g.to))
	}
	return strings.Join(texts, "; ")
}

// findGone reports the lost packets of a message.
func (f *flow) findGone(m *message) {
	m.verdict(m.gone[0].what + " lost")
	f.t.findIn(LostPacket, m, "message %d from rank %d to rank %d: %s%s",
		m.ID, m.Src, m.Dst, m.goneText(), f.retransmissionText(m))
}

// endsGone reports whether the last packet of the message was lost. If so, the loss explains the wait.
func (m *message) endsGone() bool {
	return len(m.gone) > 0 && m.gone[len(m.gone)-1].packet >= m.lastPacket
}

// requestsGone reports whether all SEND_REQUESTs of the message were lost.
func (m *message) requestsGone() bool {
	n := 0
	for _, g := range m.gone {
		if g.what == "SEND_REQUEST" {
			n++
		}
	}
	return n > 0 && n == min(m.requests.n+1, maxPackets)
}

// dataLost handles a lost datagram with the header of DATA. It returns false if the message of the datagram is not
// known.
func (f *flow) dataLost(e *Event, payload []byte) bool {
	m := f.msg
	switch {
	case m == nil && f.retransmitsLast(e, payload):
		m = f.last
	case m == nil || m.state == requested:
		return false
	}
	f.arrives(m, e, protocol.Data)
	again := m.dataPackets+m.lostData > 0
	m.Words = e.Header.Size
	m.lostData++
	if m.firstDataEnd.IsZero() { // the sender starts to wait
		m.firstDataEnd = e.Time
	}
	if again {
		f.retransmitted(m, e)
	} else {
		m.datas.sent(e.Time)
		m.step(e, "DATA", true, false)
	}
	e.Reason = handshake.ReasonNone
	return true
}
