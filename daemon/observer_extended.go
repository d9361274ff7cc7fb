package daemon

import (
	"fmt"

	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// extendedDropLevel returns warn for what a correct peer never sends, and info or debug for
// the effects of the network, of retransmissions and of new sessions.
func extendedDropLevel(r mpe.DropReason) zapcore.Level {
	switch r {
	case mpe.DropDuplicate, mpe.DropStale:
		return zapcore.DebugLevel
	case mpe.DropSession, mpe.DropWindow:
		return zapcore.InfoLevel
	}
	return zapcore.WarnLevel
}

// extendedDropText explains the reasons.
var extendedDropText = [mpe.NumDropReasons]string{
	mpe.DropShort:        "shorter than a header of the extended profile: check the profile of the peer",
	mpe.DropStartMark:    "no start mark",
	mpe.DropEndMark:      "no end mark",
	mpe.DropCall:         "invalid call",
	mpe.DropType:         "invalid packet type",
	mpe.DropLength:       "payload length differs from the header",
	mpe.DropChecksum:     "wrong checksum: packet is corrupt",
	mpe.DropSourceRank:   "source rank does not belong to the address: compare the rank maps of both sides",
	mpe.DropDestination:  "packet is addressed to another rank: compare the rank maps of both sides",
	mpe.DropSession:      "packet of another session",
	mpe.DropWindow:       "packet number beyond the window",
	mpe.DropDuplicate:    "packet was received before",
	mpe.DropAcknowledged: "acknowledges a packet that was not sent",
	mpe.DropDirection:    "invalid call in a packet of this type",
	mpe.DropCredit:       "message exceeds the credit of the peer",
	mpe.DropOrder:        "message out of order: an earlier one has not begun",
	mpe.DropUnsolicited:  "DATA without CLEAR_TO_SEND",
	mpe.DropMismatch:     "packet contradicts the beginning of its message",
	mpe.DropStale:        "packet matches no pending operation",
	mpe.DropCode:         "invalid error code",
}

// foreignVersion explains a packet of another version of the extended profile.
func foreignVersion(ln *line) string {
	version := ln.head[protocol.VersionOffset]
	if version == protocol.ExtVersion {
		return "reserved flags are set"
	}
	return fmt.Sprintf("version 0x%02x of the extended profile, and this rank has version 0x%02x: use the same release of zrlmpid for both, and check the profile of the peer",
		version, protocol.ExtVersion)
}
