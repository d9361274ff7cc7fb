package daemon

import (
	"fmt"

	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// extendedDropLevel is warn for what a sound peer never sends, and info or debug
// for what the network, repeats and new sessions bring about.
func extendedDropLevel(r extended.Reason) zapcore.Level {
	switch r {
	case extended.ReasonDuplicate, extended.ReasonStale:
		return zapcore.DebugLevel
	case extended.ReasonSession, extended.ReasonWindow:
		return zapcore.InfoLevel
	}
	return zapcore.WarnLevel
}

// extendedEventLevel is warn for what ends messages, info for a peer that comes and
// goes, and debug for the daily work of a protocol that repeats.
func extendedEventLevel(e extended.Event) zapcore.Level {
	switch e {
	case extended.SessionChanged, extended.Unreachable, extended.Refused:
		return zapcore.WarnLevel
	case extended.Connected, extended.ClosedByPeer:
		return zapcore.InfoLevel
	}
	return zapcore.DebugLevel
}

// extendedDropped says what was dropped, from whom, and why.
func extendedDropped(ln *line) string {
	from := fmt.Sprintf("rank %d", ln.peer)
	if ln.from.IsValid() {
		from = fmt.Sprintf("rank %d (%v)", ln.peer, ln.from)
	}
	text := fmt.Sprintf("rank %d: packet from %s dropped: ", ln.rank, from)
	if ln.xheader.Type != 0 {
		text += fmt.Sprintf("%v: ", &ln.xheader)
	}
	return text + extendedDropText[ln.xreason]
}

// extendedDropText explains the reasons.
var extendedDropText = [extended.NumReasons]string{
	extended.ReasonShort:        "it is shorter than a header of the extended profile; does the peer have another profile?",
	extended.ReasonStartMark:    "no start mark",
	extended.ReasonEndMark:      "no end mark",
	extended.ReasonReserved:     fmt.Sprintf("it is not of version 0x%02x of the extended profile: does the peer run another version of zrlmpid, or have another profile?", protocol.ExtVersion),
	extended.ReasonCall:         "no such call",
	extended.ReasonType:         "no such packet type",
	extended.ReasonLength:       "its payload is not as long as it says",
	extended.ReasonChecksum:     "its checksum is wrong: it was damaged on its way",
	extended.ReasonSourceRank:   "the rank that it says it is from is not the one at that address: the rank maps of the two sides differ",
	extended.ReasonDestination:  "it is addressed to another rank: the rank maps of the two sides differ",
	extended.ReasonSession:      "it is of another session",
	extended.ReasonWindow:       "its number is too far ahead",
	extended.ReasonDuplicate:    "it has arrived before",
	extended.ReasonAcknowledged: "it acknowledges what was never sent",
	extended.ReasonDirection:    "its call makes no sense in a packet of this type",
	extended.ReasonCredit:       "the peer has no credit for its message",
	extended.ReasonOrder:         "an earlier message never began",
	extended.ReasonUnsolicited:      "nothing asked for it",
	extended.ReasonMismatch:     "it contradicts what its message began with",
	extended.ReasonStale:        "it answers what has ended",
	extended.ReasonCode:         "no such error code",
}

// extendedEventText describes the events.
var extendedEventText = [extended.NumEvents]string{
	extended.Connected:       "connected",
	extended.SessionChanged:  "the peer was restarted, or had given us up: what was under way has ended",
	extended.ClosedByPeer:    "the peer shuts down",
	extended.Unreachable:     "the peer is silent: it was given up, and what was under way has ended",
	extended.Retransmitted:   "sent again",
	extended.TimedOut:        "no answer in time",
	extended.Spurious:        "the answer was only late: the path has become longer",
	extended.LossDetected:    "a packet was lost",
	extended.WindowFull:      "as many packets are in flight as may be",
	extended.CreditExhausted: "a message waits for the peer to match earlier ones",
	extended.EagerExhausted:  "a small message goes by rendezvous, as the peer has no room for it",
	extended.Refused:         "a message of the peer is longer than our limits allow",
}
