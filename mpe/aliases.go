package mpe

import (
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// Names from package core that this package exports as part of its own interface.

type (
	// Operations and messages.

	Operation = core.Operation
	OpKind    = core.OpKind
	Match     = core.Match
	Status    = core.Status
	PeerInfo  = core.PeerInfo
	KeepFunc  = core.KeepFunc
	RestingID = core.RestingID
	Origin    = core.Origin

	// Packets of transports.

	RxPacket  = core.RxPacket
	RxKind    = core.RxKind
	Packet    = core.Packet
	Placement = core.Placement

	// Receivers of notifications, and their arguments.

	Observer       = core.Observer
	PacketRecorder = core.PacketRecorder
	CallRecorder   = core.CallRecorder
	Keeper         = core.Keeper
	Call           = core.Call
	Drop           = core.Drop
	Note           = core.Note

	// State of a rank.

	Waiting    = core.Waiting
	PeerReport = core.PeerReport

	// Errors.

	WaitError       = core.WaitError
	TruncatedError  = core.TruncatedError
	PeerFullError   = core.PeerFullError
	PeerLostError   = core.PeerLostError
	PeerFailedError = core.PeerFailedError
)

// Constants of package core.
const (
	AnySource  = core.AnySource
	AnyTag     = core.AnyTag
	ClaimComm  = core.ClaimComm
	OpSend     = core.OpSend
	OpSendSync = core.OpSendSync
	OpRecv     = core.OpRecv

	UnknownPeer   = core.UnknownPeer
	RxDatagram    = core.RxDatagram
	RxHeader      = core.RxHeader
	RxPayload     = core.RxPayload
	RxConnected   = core.RxConnected
	RxTruncated   = core.RxTruncated
	RxShort       = core.RxShort
	RxBroken      = core.RxBroken
	RxPublished   = core.RxPublished
	RxPeerDied    = core.RxPeerDied
	RxPeerClosed  = core.RxPeerClosed
	RxUnreachable = core.RxUnreachable

	UnknownLength = core.UnknownLength
)

// Errors of package core.
var (
	ErrClosed      = core.ErrClosed
	ErrRank        = core.ErrRank
	ErrLength      = core.ErrLength
	ErrTag         = core.ErrTag
	ErrComm        = core.ErrComm
	ErrWildcard    = core.ErrWildcard
	ErrCancelled   = core.ErrCancelled
	ErrFull        = core.ErrFull
	ErrPeerLost    = core.ErrPeerLost
	ErrTruncated   = core.ErrTruncated
	ErrNoReport    = core.ErrNoReport
	ErrNoQuestions = core.ErrNoQuestions
	ErrNotExtended = core.ErrNotExtended
)

// WireOf converts the information that Device.Peer returns to those properties of the wire on which collective calls
// depend.
func WireOf(p PeerInfo, err error) (collective.Wire, error) { return core.WireOf(p, err) }
