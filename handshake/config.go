package handshake

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Instant is a point in time: nanoseconds since an epoch that the caller
// chooses and keeps. Only differences matter.
type Instant = time.Duration

// Config fixes the exchange of one local rank with one peer.
type Config struct {
	// Local and Remote are the two ranks.
	Local, Remote uint32
	// Profile is the dialect of the header that both use.
	Profile protocol.Profile
	// Peer says what is known about the other side.
	Peer Rules
	// Quirks are the deployed FPGA's own, kept by a stand-in.
	Quirks Quirks
	// Shape is how our DATA is fragmented into datagrams.
	Shape protocol.Shape
	// Timing holds time-outs and deadlines.
	Timing Timing
	// OnPartial says what to do when a DATA message of several datagrams is
	// not acknowledged and the peer is one that CorruptsOnRetransmit.
	OnPartial OnPartial
	// MaxWords is the largest message accepted or sent, in words. A header
	// that claims more is dropped.
	MaxWords uint32
	// PeerWords is the largest message that the peer takes, in words; 0: MaxWords.
	PeerWords uint32
	// Reliable is true on a transport that retransmits by itself. Then nothing
	// is retransmitted on a timer, only after Reconnected.
	Reliable bool
	// SameHost says that both ranks are on one host, so that datagrams are lost only when a socket has no room. LingerUntil
	// expects it once it has happened.
	SameHost bool
}

// Rules is what one side knows about the other. The presets FPGAPeer, CPUPeer
// and SoftwarePeer are the peers that exist.
type Rules struct {
	// RefusesEmpty: a message of 0 words wedges the peer.
	RefusesEmpty bool
	// CorruptsOnRetransmit: the peer stores a retransmitted DATA header as payload
	// when it lost one datagram of a fragmented message.
	CorruptsOnRetransmit bool
	// OneAtATime: the peer's calls block, so each packet shows what it is
	// in. Its SEND_REQUEST means that it has our message, and its
	// CLEAR_TO_SEND and ACK that it is not in a send.
	OneAtATime bool
	// DropsRequests: the peer drops a deferred SEND_REQUEST of ours when it
	// starts to send DATA, so ours must be retransmitted after a crossing.
	DropsRequests bool
	// OnlyInt: the peer calls everything INT, so we do towards it, and both
	// datatypes match.
	OnlyInt bool
	// KeepsRequests: the peer defers a second SEND_REQUEST of the same
	// message, and answers it at its next receive.
	KeepsRequests bool
	// RetransmitsClear is how long the peer waits for DATA before it sends
	// CLEAR_TO_SEND again, and for CLEAR_TO_SEND before SEND_REQUEST. DATA is retransmitted to such a peer when it
	// asks, and not by a timer: unsolicited it may be stored as payload. 0: the
	// peer asks for nothing, and takes every retransmission for what it is.
	RetransmitsClear time.Duration
	// AckRetransmit is the shortest time after which the peer retransmits DATA that
	// was not acknowledged. A retransmission that comes sooner is a duplicate made
	// by the network, and is not answered: an ACK that was not asked for can
	// wedge an FPGA.
	AckRetransmit time.Duration
	// Numbered: the peer's CLEAR_TO_SEND has the number of the SEND_REQUEST that it answers in place of a size, and
	// either can be revoked. Peers of earlier versions are recognized.
	Numbered bool
}

// FPGAPeer describes the deployed FPGA of the given rank.
func FPGAPeer(rank uint32) Rules {
	return Rules{
		RefusesEmpty:         true,
		CorruptsOnRetransmit: true,
		OneAtATime:           true,
		DropsRequests:        true,
		RetransmitsClear:     DeployedFPGA(rank).Data.First,
		AckRetransmit:        DeployedFPGA(rank).Ack.First,
	}
}

// CPUPeer describes a program on upstream's CPU library.
func CPUPeer() Rules {
	return Rules{
		OneAtATime:       true,
		OnlyInt:          true,
		KeepsRequests:    true,
		RetransmitsClear: DeployedCPU().Data.First,
		AckRetransmit:    DeployedCPU().Ack.First,
	}
}

// asksWithin returns for how long a peer that gets no DATA sends CLEAR_TO_SEND again.
func (r *Rules) asksWithin() time.Duration {
	return deployedRetransmissions*r.RetransmitsClear + deployedRetransmissions*(deployedRetransmissions-1)/2*deployedStep
}

// SoftwarePeer describes another zrlmpid.
func SoftwarePeer() Rules { return Rules{Numbered: true} }

// Quirks are what a stand-in keeps of the deployed FPGA beyond its Shape and
// Timing. The zero value keeps none: that is how a host behaves.
type Quirks struct {
	// OneDeferredHeader: one unexpected header is kept per peer, whatever its
	// type; a newer one overwrites it, and starting to send DATA deletes it.
	OneDeferredHeader bool
	// AckOnce: a message is acknowledged once, retransmissions of it never.
	AckOnce bool
	// IgnoreDestination: the destination rank of a packet is not checked.
	IgnoreDestination bool
	// CarryOver: the count of retransmissions goes on from SEND_REQUEST to DATA, so
	// that a message is retransmitted three times in all.
	CarryOver bool
}

// OnPartial is a choice of the user's for messages to an FPGA that does not
// acknowledge them.
type OnPartial uint8

const (
	// FailPartial ends the send with an error unless the FPGA asks again.
	FailPartial OnPartial = iota
	// RetransmitPartial retransmits by Timing.Ack all the same. If a
	// continuation datagram was lost, the FPGA acknowledges corrupt data.
	RetransmitPartial
)

// Backoff is a sequence of time-outs: retransmission n, counted from 0, comes after
// First + n × Step, for n < Retransmissions; then one comes every Then, or none if Then
// is 0.
type Backoff struct {
	First, Step     time.Duration
	Retransmissions int
	Then            time.Duration
}

// after returns the time-out of retransmission n, and whether there is one.
func (b Backoff) after(n int) (time.Duration, bool) {
	if n < b.Retransmissions {
		return b.First + time.Duration(n)*b.Step, true
	}
	return b.Then, b.Then > 0
}

// Timing holds the time-outs after which packets are retransmitted, and the deadlines
// after which the caller gets an error.
type Timing struct {
	// Clear is the sender's wait for CLEAR_TO_SEND, Ack its wait for ACK,
	// Data the receiver's wait for DATA.
	Clear, Ack, Data Backoff
	// ClearDeadline, AckDeadline and DataDeadline end those waits; 0 is
	// never. A late receiver is no fault, so ClearDeadline is 0 by default;
	// once CLEAR_TO_SEND was sent both sides are bound to go on.
	ClearDeadline, AckDeadline, DataDeadline time.Duration
	// FirstDeadline ends the wait for CLEAR_TO_SEND of a peer that has never sent a packet; 0 is never.
	FirstDeadline time.Duration
	// FragmentGap is the longest pause between the datagrams of one message
	// after which a continuation datagram is still accepted as its continuation. It is shorter
	// than any sender's ACK time-out, so that a retransmission whose first datagram
	// was lost is not mistaken for the rest.
	FragmentGap time.Duration
}

// Time-outs of the deployed nodes.
const (
	deployedFirst           = 100 * time.Millisecond
	deployedStep            = time.Second
	deployedRetransmissions = 3
	fpgaPerRank             = 12500 * time.Microsecond
)

// DeployedCPU returns the time-outs of upstream's CPU library.
func DeployedCPU() Timing {
	b := Backoff{First: deployedFirst, Step: deployedStep, Retransmissions: deployedRetransmissions}
	return Timing{Clear: b, Ack: b, Data: b, FragmentGap: deployedFirst / 2}
}

// DeployedFPGA returns the time-outs of the deployed MPE of the given rank.
func DeployedFPGA(rank uint32) Timing {
	b := Backoff{First: deployedFirst + time.Duration(rank)*fpgaPerRank, Step: deployedStep, Retransmissions: deployedRetransmissions}
	ack := b
	ack.First *= 2
	return Timing{Clear: b, Ack: ack, Data: b, FragmentGap: deployedFirst / 2}
}

// DefaultTiming returns the time-outs of a host towards a peer with the given
// rules: the CPU library's, but SEND_REQUEST is retransmitted for as long as the
// caller waits, because a peer that starts late is no fault and a deferred
// SEND_REQUEST does no harm; and waits that only a fault can prolong end.
func DefaultTiming(peer Rules) Timing {
	t := DeployedCPU()
	t.Clear.Then = 3 * time.Second
	t.AckDeadline = 10 * time.Second
	t.DataDeadline = 10 * time.Second
	if peer.KeepsRequests {
		// A receiver is late more often than a packet is lost, and a second
		// SEND_REQUEST makes it ambiguous which receive a later CLEAR_TO_SEND is for.
		t.Clear.First = time.Second
	}
	if peer.RetransmitsClear > 0 {
		// Its own retransmissions of SEND_REQUEST and DATA ask for
		// whatever was lost; ours are for the time after its last one.
		t.Data.First = 4 * time.Second
	}
	if peer.CorruptsOnRetransmit {
		// By then an FPGA that lacks DATA has asked for it three times, even if its clock is half as fast.
		t.AckDeadline = min(t.AckDeadline, 2*peer.asksWithin()+crossing)
	}
	return t
}
