package capture

import (
	"fmt"
	"slices"
)

// find creates a finding about an event.
func (t *Tracker) find(kind Kind, e *Event, format string, args ...any) *Finding {
	f := &Finding{Kind: kind, Text: fmt.Sprintf(format, args...), Packets: []int64{e.Packet}, Time: t.seconds(e.Time)}
	if e.Message != 0 {
		f.Messages = []int64{e.Message}
	}
	t.pending = append(t.pending, f)
	return f
}

// findIn creates a finding about a message and its retransmissions.
func (t *Tracker) findIn(kind Kind, m *message, format string, args ...any) {
	at := m.lastAgain
	if at.IsZero() {
		at = m.lastRequest
	}
	t.pending = append(t.pending, &Finding{
		Kind: kind, Text: fmt.Sprintf(format, args...), Time: t.seconds(at),
		Packets: append([]int64{m.firstPacket}, m.again...), Messages: []int64{m.ID},
	})
}

// about adds a message to the finding, and replaces the finding's list of packets.
func (f *Finding) about(m *message, packets ...int64) {
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

// deliver reports the findings made while the last unit was processed.
func (t *Tracker) deliver() {
	for i, f := range t.pending {
		if t.opts.OnFinding != nil {
			t.opts.OnFinding(f)
		}
		t.pending[i] = nil
	}
	t.pending = t.pending[:0]
}

// holdUnsolicited holds back the finding of a CLEAR_TO_SEND or ACK that the sender did not expect. If the sender is an
// FPGA, this packet may be why it stops answering.
func (f *flow) holdUnsolicited() {
	n := len(f.t.pending)
	if n == 0 {
		return
	}
	f.reportUnsolicited()
	f.unsolicited = f.t.pending[len(f.t.pending)-1]
	f.t.pending = f.t.pending[:len(f.t.pending)-1]
}

// reportUnsolicited reports the held finding, because the sender continued.
func (f *flow) reportUnsolicited() {
	if f.unsolicited != nil {
		f.t.pending = append(f.t.pending, f.unsolicited)
		f.unsolicited = nil
	}
}

// packets replaces the finding's list of packets.
func (f *Finding) packets(list []int64) { f.Packets = slices.Clone(list) }
