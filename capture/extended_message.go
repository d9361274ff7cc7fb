package capture

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// ExtendedMessage is a message of the extended profile, as far as the recording shows it.
type ExtendedMessage struct {
	Src, Dst int
	// Number is the number of the message within its session.
	Number    uint32
	Comm, Tag uint32
	Bytes     int64
	// BeginTime is the time of the first packet. EndTime is the time of the packet that ended the message, or the end
	// of the recording. MatchTime is the time of the CLEAR_TO_SEND that answered the SEND_REQUEST, or zero if either
	// packet is not in the recording.
	BeginTime, MatchTime, EndTime time.Time
	Outcome                       Outcome
}

// Outcome describes how a message of the extended profile ended.
type Outcome string

// Outcomes of a message.
const (
	MessageComplete Outcome = "complete"
	MessageCanceled Outcome = "canceled"
	MessageTooLong  Outcome = "refused, too long"
	MessageAborted  Outcome = "aborted by the sender"
	SessionEnded    Outcome = "ended with its session"
	MessageOpen     Outcome = "open at the end"
)

// report passes a message to OnExtended, because the current packet ends it.
func (f *extFlow) report(msg *extMessage, outcome Outcome) {
	if f.tracker.opts.OnExtended == nil {
		return
	}
	extendedMessage := ExtendedMessage{
		Src: int(f.counts.Src), Dst: int(f.counts.Dst), Number: msg.number, Comm: msg.comm, Tag: msg.tag,
		Bytes:     int64(msg.length),
		BeginTime: msg.beginTime, EndTime: f.tracker.now, Outcome: outcome,
	}
	if msg.requestSeen && msg.cleared {
		extendedMessage.MatchTime = msg.matchTime
	}
	f.tracker.opts.OnExtended(&extendedMessage)
}

// reportAll passes all open messages to OnExtended, oldest first.
func (f *extFlow) reportAll(outcome Outcome) {
	if f.tracker.opts.OnExtended == nil {
		return
	}
	open := slices.Collect(maps.Values(f.openMessages))
	slices.SortFunc(open, func(a, b *extMessage) int {
		return cmp.Or(a.beginTime.Compare(b.beginTime), cmp.Compare(a.firstPacket, b.firstPacket))
	})
	for _, m := range open {
		f.report(m, outcome)
	}
}
