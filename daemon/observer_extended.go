package daemon

import (
	"cmp"
	"fmt"

	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// extendedDropLevel is warn for what a sound peer never sends, and info or debug
// for what the network, repeats and new sessions bring about.
func extendedDropLevel(r mpe.DropReason) zapcore.Level {
	switch r {
	case mpe.DropDuplicate, mpe.DropStale:
		return zapcore.DebugLevel
	case mpe.DropSession, mpe.DropWindow:
		return zapcore.InfoLevel
	}
	return zapcore.WarnLevel
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
	return text + cmp.Or(extendedDropText[ln.reason], ln.reason.String())
}

// extendedDropText explains the reasons.
var extendedDropText = [mpe.NumDropReasons]string{
	mpe.DropShort:        "it is shorter than a header of the extended profile; does the peer have another profile?",
	mpe.DropStartMark:    "no start mark",
	mpe.DropEndMark:      "no end mark",
	mpe.DropReserved:     fmt.Sprintf("it is not of version 0x%02x of the extended profile: does the peer run another version of zrlmpid, or have another profile?", protocol.ExtVersion),
	mpe.DropCall:         "no such call",
	mpe.DropType:         "no such packet type",
	mpe.DropLength:       "its payload is not as long as it says",
	mpe.DropChecksum:     "its checksum is wrong: it was damaged on its way",
	mpe.DropSourceRank:   "the rank that it says it is from is not the one at that address: the rank maps of the two sides differ",
	mpe.DropDestination:  "it is addressed to another rank: the rank maps of the two sides differ",
	mpe.DropSession:      "it is of another session",
	mpe.DropWindow:       "its number is too far ahead",
	mpe.DropDuplicate:    "it has arrived before",
	mpe.DropAcknowledged: "it acknowledges what was never sent",
	mpe.DropDirection:    "its call makes no sense in a packet of this type",
	mpe.DropCredit:       "the peer has no credit for its message",
	mpe.DropOrder:        "an earlier message never began",
	mpe.DropUnsolicited:  "nothing asked for it",
	mpe.DropMismatch:     "it contradicts what its message began with",
	mpe.DropStale:        "it answers what has ended",
	mpe.DropCode:         "no such error code",
}
