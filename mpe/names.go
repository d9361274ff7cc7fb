package mpe

import (
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// Names of package core that are part of this package's interface.

type (
	// Operations and messages.
	Operation = core.Operation
	OpKind    = core.OpKind
	Match     = core.Match
	Status    = core.Status
	PeerInfo  = core.PeerInfo
	Keep      = core.Keep
	Resting   = core.Resting
	Origin    = core.Origin

	// What transports carry.
	RxPacket  = core.RxPacket
	RxKind    = core.RxKind
	Packet    = core.Packet
	Placement = core.Placement

	// Whom a core notifies, and of what.
	Observer       = core.Observer
	PacketRecorder = core.PacketRecorder
	CallRecorder   = core.CallRecorder
	Keeper         = core.Keeper
	Call           = core.Call
	Drop           = core.Drop
	Note           = core.Note
	DropReason     = core.DropReason
	Event          = core.Event

	// What a rank is doing.
	Snapshot         = core.Snapshot
	PeerSnapshot     = core.PeerSnapshot
	ExtendedSnapshot = core.ExtendedSnapshot
	WaitSnapshot     = core.WaitSnapshot
	DeferredSnapshot = core.DeferredSnapshot
	DropSnapshot     = core.DropSnapshot
	Envelope         = core.Envelope
	Waiting          = core.Waiting
	PeerReport       = core.PeerReport
	RankCounters     = core.RankCounters
	PeerCounters     = core.PeerCounters
	PacketCounts     = core.PacketCounts
	DropCounts       = core.DropCounts
	EventCounts      = core.EventCounts
	OldestWait       = core.OldestWait
	Depths           = core.Depths

	// Errors.
	WaitError       = core.WaitError
	TruncatedError  = core.TruncatedError
	NoRoomError     = core.NoRoomError
	PeerLostError   = core.PeerLostError
	PeerFailedError = core.PeerFailedError
)

// Constants of package core.
const (
	NumTypes = core.NumTypes

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
	RxGone        = core.RxGone
	RxLeft        = core.RxLeft
	RxUnreachable = core.RxUnreachable

	DropShort                 = core.DropShort
	DropStartMark             = core.DropStartMark
	DropEndMark               = core.DropEndMark
	DropReserved              = core.DropReserved
	DropCall                  = core.DropCall
	DropType                  = core.DropType
	DropLength                = core.DropLength
	DropChecksum              = core.DropChecksum
	DropSourceRank            = core.DropSourceRank
	DropDestination           = core.DropDestination
	DropUnknownAddress        = core.DropUnknownAddress
	DropDirection             = core.DropDirection
	DropUnsolicited           = core.DropUnsolicited
	DropDuplicate             = core.DropDuplicate
	DropStale                 = core.DropStale
	DropSize                  = core.DropSize
	DropUnexpectedPayload     = core.DropUnexpectedPayload
	DropDatatype              = core.DropDatatype
	DropGap                   = core.DropGap
	DropBarrier               = core.DropBarrier
	DropStream                = core.DropStream
	DropSession               = core.DropSession
	DropWindow                = core.DropWindow
	DropAcknowledged          = core.DropAcknowledged
	DropCredit                = core.DropCredit
	DropOrder                 = core.DropOrder
	DropMismatch              = core.DropMismatch
	DropCode                  = core.DropCode
	NumDropReasons            = core.NumDropReasons
	EventRetransmitted        = core.EventRetransmitted
	EventReacked              = core.EventReacked
	EventCrossed              = core.EventCrossed
	EventRequestTakenAsAck    = core.EventRequestTakenAsAck
	EventStaleClearUsed       = core.EventStaleClearUsed
	EventRequestWasDuplicate  = core.EventRequestWasDuplicate
	EventClearWasDuplicate    = core.EventClearWasDuplicate
	EventStartedOver          = core.EventStartedOver
	EventRequestRetransmitted = core.EventRequestRetransmitted
	EventPadding              = core.EventPadding
	EventDeliveredDuplicate   = core.EventDeliveredDuplicate
	EventEarlyData            = core.EventEarlyData
	EventEarlyAck             = core.EventEarlyAck
	EventClearAfterDone       = core.EventClearAfterDone
	EventSecondData           = core.EventSecondData
	EventRepeatedContent      = core.EventRepeatedContent
	EventResumed              = core.EventResumed
	EventWouldWedge           = core.EventWouldWedge
	EventWithdrawn            = core.EventWithdrawn
	EventDiscarded            = core.EventDiscarded
	EventConnected            = core.EventConnected
	EventSessionChanged       = core.EventSessionChanged
	EventClosedByPeer         = core.EventClosedByPeer
	EventProcessEnded         = core.EventProcessEnded
	EventUnreachable          = core.EventUnreachable
	EventTimedOut             = core.EventTimedOut
	EventSpurious             = core.EventSpurious
	EventLossDetected         = core.EventLossDetected
	EventWindowFull           = core.EventWindowFull
	EventCreditExhausted      = core.EventCreditExhausted
	EventEagerExhausted       = core.EventEagerExhausted
	EventRefused              = core.EventRefused
	NumEvents                 = core.NumEvents

	MaxReport = core.MaxReport

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

// WireOf returns what collective calls depend on of what Device.Peer has returned.
func WireOf(p PeerInfo, err error) (collective.Wire, error) { return core.WireOf(p, err) }
