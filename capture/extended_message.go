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
	// Number is that of the message in its session.
	Number    uint32
	Comm, Tag uint32
	Bytes     int64
	// Begun is the time of the first packet, and Ended that of the packet that ended the message, or the end of the recording. Matched is
	// when CLEAR_TO_SEND answered its SEND_REQUEST; zero if there was none.
	Begun, Matched, Ended time.Time
	Outcome               Outcome
}

// Outcome says how a message of the extended profile has ended.
type Outcome string

// The outcomes.
const (
	Complete     Outcome = "complete"
	Canceled     Outcome = "canceled"
	TooLong      Outcome = "refused, too long"
	Aborted      Outcome = "aborted by the sender"
	SessionEnded Outcome = "ended with its session"
	StillOpen    Outcome = "open at the end"
)

// report hands a message over, which ends with the packet at hand.
func (f *extFlow) report(m *extMessage, o Outcome) {
	if f.t.opts.OnExtended == nil {
		return
	}
	r := ExtendedMessage{
		Src: int(f.counts.Src), Dst: int(f.counts.Dst), Number: m.number, Comm: m.comm, Tag: m.tag, Bytes: int64(m.length),
		Begun: m.begun, Ended: f.t.now, Outcome: o,
	}
	if m.asked && m.cleared {
		r.Matched = m.matched
	}
	f.t.opts.OnExtended(&r)
}

// reportAll hands over all open messages, in the order in which they began.
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
