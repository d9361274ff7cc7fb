package daemon

import (
	"fmt"

	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// extendedDropLevel returns warn for packets that a correct peer never sends, and info or debug for packets dropped due
// to the network, a retransmission or a new session.
func extendedDropLevel(r state.DropReason) zapcore.Level {
	switch r {
	case state.DropDuplicate, state.DropStale:
		return zapcore.DebugLevel
	case state.DropSession, state.DropWindow:
		return zapcore.InfoLevel
	}
	return zapcore.WarnLevel
}

// extendedDropText explains each drop reason of the extended profile.
var extendedDropText = [state.NumDropReasons]string{
	state.DropShort:        "shorter than a header of the extended profile: check the profile of the peer",
	state.DropStartMark:    "no start mark",
	state.DropEndMark:      "no end mark",
	state.DropCall:         "invalid call",
	state.DropType:         "invalid packet type",
	state.DropLength:       "payload length differs from the header",
	state.DropChecksum:     "wrong checksum: packet is corrupt",
	state.DropSourceRank:   "source rank does not belong to the address: compare the rank maps of both sides",
	state.DropDestination:  "packet is addressed to another rank: compare the rank maps of both sides",
	state.DropSession:      "packet of another session",
	state.DropWindow:       "packet number beyond the window",
	state.DropDuplicate:    "packet was received before",
	state.DropAcknowledged: "acknowledges a packet that was not sent",
	state.DropDirection:    "invalid call in a packet of this type",
	state.DropCredit:       "message exceeds the credit of the peer",
	state.DropOrder:        "message out of order: an earlier one has not begun",
	state.DropUnsolicited:  "DATA without CLEAR_TO_SEND",
	state.DropMismatch:     "packet contradicts the beginning of its message",
	state.DropStale:        "packet matches no pending operation",
	state.DropCode:         "invalid error code",
}

// foreignVersion explains why a packet was dropped that uses a different version of the extended profile or sets
// reserved flags.
func foreignVersion(ln *logLine) string {
	version := ln.headerBytes[protocol.VersionOffset]
	if version == protocol.ExtVersion {
		return "reserved flags are set"
	}
	return fmt.Sprintf("version 0x%02x of the extended profile, and this rank has version 0x%02x: use the same "+
		"release of zrlmpid for both, and check the profile of the peer",
		version, protocol.ExtVersion)
}
