package capture

import (
	"fmt"
	"slices"
)

// addFinding creates a finding about an event.
func (t *Tracker) addFinding(kind FindingKind, e *Event, format string, args ...any) *Finding {
	f := &Finding{Kind: kind, Text: fmt.Sprintf(format, args...), Packets: []int64{e.Packet}, Time: t.seconds(e.Time)}
	if e.Message != 0 {
		f.Messages = []int64{e.Message}
	}
	t.pending = append(t.pending, f)
	return f
}

// addMessageFinding creates a finding about a message. The finding includes the message's retransmissions.
func (t *Tracker) addMessageFinding(kind FindingKind, msg *message, format string, args ...any) {
	at := msg.lastRetransmit
	if at.IsZero() {
		at = msg.lastRequest
	}
	t.pending = append(t.pending, &Finding{
		Kind: kind, Text: fmt.Sprintf(format, args...), Time: t.seconds(at),
		Packets: append([]int64{msg.firstPacket}, msg.retransmits...), Messages: []int64{msg.ID},
	})
}

// relateTo adds a message to the list that the finding concerns. The given packets, if any, replace the finding's list
// of packets.
func (f *Finding) relateTo(m *message, packets ...int64) {
	f.Messages = appendNew(f.Messages, m.ID)
	if len(packets) > 0 {
		f.Packets = nil
		for _, p := range packets {
			if p != 0 {
				f.Packets = appendNew(f.Packets, p)
			}
		}
	}
}

func appendNew(list []int64, n int64) []int64 {
	if slices.Contains(list, n) {
		return list
	}
	return append(list, n)
}

// emitFindings passes the findings caused by the last unit to OnFinding.
func (t *Tracker) emitFindings() {
	for i, f := range t.pending {
		if t.opts.OnFinding != nil {
			t.opts.OnFinding(f)
		}
		t.pending[i] = nil
	}
	t.pending = t.pending[:0]
}

// holdUnsolicited holds back the last finding, which reports a CLEAR_TO_SEND or ACK that the sender did not expect. If
// the sender is an FPGA, the packet may have wedged it; reportWait then reports the wedged node instead.
func (f *flow) holdUnsolicited() {
	n := len(f.tracker.pending)
	if n == 0 {
		return
	}
	f.reportUnsolicited()
	f.unsolicited = f.tracker.pending[len(f.tracker.pending)-1]
	f.tracker.pending = f.tracker.pending[:len(f.tracker.pending)-1]
}

// reportUnsolicited reports the finding held back by holdUnsolicited, if any, because the packet did not wedge the
// sender.
func (f *flow) reportUnsolicited() {
	if f.unsolicited != nil {
		f.tracker.pending = append(f.tracker.pending, f.unsolicited)
		f.unsolicited = nil
	}
}

// setPackets replaces the finding's list of packets.
func (f *Finding) setPackets(list []int64) { f.Packets = slices.Clone(list) }
