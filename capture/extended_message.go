package capture

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// ExtendedMessage is a message of the extended profile as the recording shows it.
type ExtendedMessage struct {
	Src, Dst int
	// Number is the number of the message in its session.
	Number    uint32
	Comm, Tag uint32
	Bytes     int64
	// Begun is the time of the first packet. Ended is the time of the packet that ended the message, or the end of the
	// recording. Matched is the time of the CLEAR_TO_SEND that answered its SEND_REQUEST, or zero.
	Begun, Matched, Ended time.Time
	Outcome               Outcome
}

// Outcome describes how a message of the extended profile ended.
type Outcome string

// Outcomes of a message.
const (
	Complete     Outcome = "complete"
	Canceled     Outcome = "canceled"
	TooLong      Outcome = "refused, too long"
	Aborted      Outcome = "aborted by the sender"
	SessionEnded Outcome = "ended with its session"
	StillOpen    Outcome = "open at the end"
)

// report reports a message that ends with the current packet.
func (f *extFlow) report(m *extMessage, o Outcome) {
	if f.t.opts.OnExtended == nil {
		return
	}
	r := ExtendedMessage{
		Src: int(f.counts.Src), Dst: int(f.counts.Dst), Number: m.number, Comm: m.comm, Tag: m.tag,
		Bytes: int64(m.length),
		Begun: m.begun, Ended: f.t.now, Outcome: o,
	}
	if m.asked && m.cleared {
		r.Matched = m.matched
	}
	f.t.opts.OnExtended(&r)
}

// reportAll reports all open messages, in the order in which they began.
func (f *extFlow) reportAll(o Outcome) {
	if f.t.opts.OnExtended == nil {
		return
	}
	open := slices.Collect(maps.Values(f.open))
	slices.SortFunc(open, func(a, b *extMessage) int {
		return cmp.Or(a.begun.Compare(b.begun), cmp.Compare(a.firstPacket, b.firstPacket))
	})
	for _, m := range open {
		f.report(m, o)
	}
}
