package handshake

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Instant is a point in time, in nanoseconds since a fixed epoch of the caller's choice. Only differences matter.
type Instant = time.Duration

// Config configures the exchange of one local rank with one peer.
type Config struct {
	// Local and Remote are the two ranks.
	Local, Remote uint32
	// Profile is the dialect of the header.
	Profile protocol.Profile
	// Peer describes the peer's behavior.
	Peer Rules
	// Quirks are peculiarities of the deployed FPGA that a stand-in imitates.
	Quirks Quirks
	// Shape determines how our DATA is fragmented into datagrams.
	Shape protocol.Shape
	// Timing has the time-outs and deadlines.
	Timing Timing
	// OnPartial applies when a DATA message of several datagrams is not acknowledged by a peer that
	// CorruptsOnRetransmit.
	OnPartial OnPartial
	// MaxWords is the largest message accepted or sent, in words. A header that announces more is dropped.
	MaxWords uint32
	// PeerWords is the largest message that the peer accepts, in words; 0 means MaxWords.
	PeerWords uint32
	// Reliable is set for a transport that retransmits by itself. The pair then retransmits only after Reconnected, and
	// not by timers.
	Reliable bool
	// SameHost is set if both ranks are on one host, where datagrams are lost only when a socket buffer is full. In
	// that case LingerUntil expects retransmissions only after a loss has occurred.
	SameHost bool
}

// Rules describe the behavior of a peer. FPGAPeer, CPUPeer and SoftwarePeer return the Rules of the existing kinds of
// peers.
type Rules struct {
	// RefusesEmpty: a message of 0 words wedges the peer.
	RefusesEmpty bool
	// CorruptsOnRetransmit: the peer stores a retransmitted DATA header as payload if it lost a datagram of a
	// fragmented message.
	CorruptsOnRetransmit bool
	// OneAtATime: the peer's calls block, so each packet shows which call it is in. Its SEND_REQUEST means that it has
	// our message, and its CLEAR_TO_SEND and ACK mean that it is not in a send.
	OneAtATime bool
	// DropsRequests: the peer drops our deferred SEND_REQUEST when it starts to send DATA, so we must retransmit it
	// after a crossing.
	DropsRequests bool
	// OnlyInt: the peer uses INT calls for all data. We do so towards it, and both datatypes match.
	OnlyInt bool
	// KeepsRequests: the peer defers a second SEND_REQUEST of the same message, and answers it at its next receive.
	KeepsRequests bool
	// RetransmitsClear is the peer's time-out for DATA, after which it sends CLEAR_TO_SEND again, and for
	// CLEAR_TO_SEND, after which it sends SEND_REQUEST again. DATA is retransmitted to such a peer when it asks and not
	// by a timer, since it may store unsolicited DATA as payload. 0 means that the peer asks for nothing and recognizes
	// every retransmission.
	RetransmitsClear time.Duration
	// AckRetransmit is the shortest time after which the peer retransmits unacknowledged DATA. An earlier
	// retransmission is a duplicate made by the network and is not answered: an unsolicited ACK can wedge an FPGA.
	AckRetransmit time.Duration
	// Numbered: the peer's CLEAR_TO_SEND has the number of the SEND_REQUEST that it answers in place of a size, and
	// both can be revoked. Peers of earlier versions are recognized.
	Numbered bool
}

// FPGAPeer returns the Rules of the deployed FPGA of the given rank.
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

// CPUPeer returns the Rules of a program on upstream's CPU library.
func CPUPeer() Rules {
	return Rules{
		OneAtATime:       true,
		OnlyInt:          true,
		KeepsRequests:    true,
		RetransmitsClear: DeployedCPU().Data.First,
		AckRetransmit:    DeployedCPU().Ack.First,
	}
}

// asksWithin returns the time during which a peer without DATA retransmits CLEAR_TO_SEND.
func (r *Rules) asksWithin() time.Duration {
	return deployedRetransmissions*r.RetransmitsClear +
		deployedRetransmissions*(deployedRetransmissions-1)/2*deployedStep
}

// SoftwarePeer returns the Rules of another zrlmpid.
func SoftwarePeer() Rules { return Rules{Numbered: true} }

// Quirks are peculiarities of the deployed FPGA that a stand-in imitates, beyond its Shape and Timing. The zero value
// is right for a host.
type Quirks struct {
	// OneDeferredHeader: one unexpected header of any type is kept per peer; a newer one overwrites it, and starting to
	// send DATA deletes it.
	OneDeferredHeader bool
	// AckOnce: a message is acknowledged once; its retransmissions are not.
	AckOnce bool
	// IgnoreDestination: the destination rank of a packet is not checked.
	IgnoreDestination bool
	// CarryOver: the count of retransmissions continues from SEND_REQUEST to DATA, so that a message has three
	// retransmissions in total.
	CarryOver bool
}

// OnPartial is the user's choice for fragmented messages that an FPGA does not acknowledge.
type OnPartial uint8

const (
	// FailPartial ends the send with an error unless the FPGA asks again.
	FailPartial OnPartial = iota
	// RetransmitPartial retransmits by Timing.Ack nevertheless. If a continuation datagram was lost, the FPGA
	// acknowledges corrupt data.
	RetransmitPartial
)

// Backoff is a sequence of time-outs: retransmission n, counted from 0, comes after First + n × Step, for n <
// Retransmissions. Later ones follow at intervals of Then; there are none if Then is 0.
type Backoff struct {
	First, Step     time.Duration
	Retransmissions int
	Then            time.Duration
}

// after returns the time-out of retransmission n, and false if there is no such retransmission.
func (b Backoff) after(n int) (time.Duration, bool) {
	if n < b.Retransmissions {
		return b.First + time.Duration(n)*b.Step, true
	}
	return b.Then, b.Then > 0
}

// Timing has the time-outs after which packets are retransmitted, and the deadlines after which the caller gets an
// error.
type Timing struct {
	// Clear is for the sender's wait for CLEAR_TO_SEND, Ack for its wait for ACK, and Data for the receiver's wait for
	// DATA.
	Clear, Ack, Data Backoff
	// ClearDeadline, AckDeadline and DataDeadline end those waits; 0 means never. ClearDeadline is 0 by default, since
	// a late receiver is not a fault. Once CLEAR_TO_SEND was sent, both sides must go on.
	ClearDeadline, AckDeadline, DataDeadline time.Duration
	// FirstDeadline ends the wait for CLEAR_TO_SEND from a peer that has never sent a packet; 0 means never.
	FirstDeadline time.Duration
	// FragmentGap is the longest pause between two datagrams of one message. It is shorter than any sender's ACK
	// time-out, so that a retransmission whose first datagram was lost is not mistaken for the rest of the message.
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
	b := Backoff{First: deployedFirst + time.Duration(rank)*fpgaPerRank, Step: deployedStep,
		Retransmissions: deployedRetransmissions}
	ack := b
	ack.First *= 2
	return Timing{Clear: b, Ack: ack, Data: b, FragmentGap: deployedFirst / 2}
}

// DefaultTiming returns the time-outs of a host towards a peer with the given Rules. These are the time-outs of the CPU
// library, with two changes. SEND_REQUEST is retransmitted for as long as the caller waits, because a peer that starts
// late is not a fault and a deferred SEND_REQUEST does no harm. Waits that only a fault can prolong have deadlines.
func DefaultTiming(peer Rules) Timing {
	t := DeployedCPU()
	t.Clear.Then = 3 * time.Second
	t.AckDeadline = 10 * time.Second
	t.DataDeadline = 10 * time.Second
	if peer.KeepsRequests {
		// A receiver is late more often than a packet is lost, and after a second SEND_REQUEST it is ambiguous which
		// receive a later CLEAR_TO_SEND belongs to.
		t.Clear.First = time.Second
	}
	if peer.RetransmitsClear > 0 {
		// The peer's own retransmissions of SEND_REQUEST and DATA repair all losses; ours start after its last one.
		t.Data.First = 4 * time.Second
	}
	if peer.CorruptsOnRetransmit {
		// By then an FPGA without DATA has asked for it three times, even if its clock runs at half speed.
		t.AckDeadline = min(t.AckDeadline, 2*peer.asksWithin()+crossing)
	}
	return t
}
