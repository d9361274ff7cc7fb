package handshake

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Instant is a point in time, in nanoseconds since a fixed epoch that the caller chooses. Only differences matter.
type Instant = time.Duration

// Config configures a Pair between one local rank and one peer.
type Config struct {
	// Local is the local rank, and Remote the peer's.
	Local, Remote uint32
	// Profile is the dialect of the header.
	Profile protocol.Profile
	// Peer describes the peer's behavior.
	Peer PeerRules
	// Quirks holds the peculiarities of a deployed FPGA, which a stand-in for that FPGA imitates.
	Quirks Quirks
	// Shape determines how the Pair fragments its DATA into datagrams.
	Shape protocol.Shape
	// Timing contains the timeouts and deadlines.
	Timing Timing
	// OnPartial determines how a send ends if a peer that CorruptsOnRetransmit does not acknowledge its DATA of several
	// datagrams.
	OnPartial OnPartial
	// MaxWords is the maximum size of a message sent or accepted, in words. A DATA header with a larger size is
	// dropped.
	MaxWords uint32
	// PeerWords is the maximum size of a message that the peer accepts, in words. 0 means MaxWords.
	PeerWords uint32
	// Reliable is set if the transport retransmits by itself. The Pair then retransmits only in Reconnected, and never
	// after a timeout.
	Reliable bool
	// SameHost is set if both ranks run on one host, where datagrams are lost only when a socket buffer is full.
	// LingerUntil then expects retransmissions only after a loss.
	SameHost bool
}

// PeerRules describes how a peer behaves. FPGAPeer, CPUPeer and SoftwarePeer return the PeerRules for the existing
// kinds of peers.
type PeerRules struct {
	// RefusesEmpty is set if a message of 0 words would wedge the peer.
	RefusesEmpty bool
	// CorruptsOnRetransmit is set if the peer stores a retransmitted DATA header as payload after it has lost a
	// datagram of a fragmented message.
	CorruptsOnRetransmit bool
	// BlockingCalls is set if the peer's calls block, so that each packet shows which call the peer is in. A
	// SEND_REQUEST then means that the peer has received our message, and a CLEAR_TO_SEND or ACK that the peer is not
	// in a send.
	BlockingCalls bool
	// DropsRequests is set if the peer drops our deferred SEND_REQUEST when it starts to send DATA, so that we must
	// retransmit the SEND_REQUEST after it has crossed with the peer's.
	DropsRequests bool
	// IntCallsOnly is set if the peer uses INT calls for all data. Packets to it then carry INT calls too, and its
	// messages match receives of both datatypes.
	IntCallsOnly bool
	// KeepsRequests is set if the peer defers a second SEND_REQUEST for the same message, and answers it in its next
	// receive.
	KeepsRequests bool
	// RetransmitsClear is the time after which the peer first retransmits CLEAR_TO_SEND if DATA is missing, and
	// SEND_REQUEST if CLEAR_TO_SEND is missing. The Pair retransmits DATA to such a peer only when the peer asks for
	// it, because the peer may store unsolicited DATA as payload. If RetransmitsClear is 0, the peer never asks, and
	// recognizes every retransmission.
	RetransmitsClear time.Duration
	// AckRetransmit is the shortest time after which the peer retransmits unacknowledged DATA. If DATA arrives again
	// sooner, the network has duplicated it. The Pair does not answer such a duplicate, because an unsolicited ACK can
	// wedge an FPGA.
	AckRetransmit time.Duration
	// NumbersRequests is set if the peer may number its SEND_REQUESTs and echo the number of ours in the size field of
	// CLEAR_TO_SEND. Both packets can then be revoked. The Pair detects a peer of an earlier version, which uses no
	// numbers.
	NumbersRequests bool
}

// FPGAPeer returns the PeerRules for a deployed FPGA. They depend on its rank.
func FPGAPeer(rank uint32) PeerRules {
	return PeerRules{
		RefusesEmpty:         true,
		CorruptsOnRetransmit: true,
		BlockingCalls:        true,
		DropsRequests:        true,
		RetransmitsClear:     DeployedFPGA(rank).Data.First,
		AckRetransmit:        DeployedFPGA(rank).Ack.First,
	}
}

// CPUPeer returns the PeerRules for a program that uses upstream's CPU library.
func CPUPeer() PeerRules {
	return PeerRules{
		BlockingCalls:    true,
		IntCallsOnly:     true,
		KeepsRequests:    true,
		RetransmitsClear: DeployedCPU().Data.First,
		AckRetransmit:    DeployedCPU().Ack.First,
	}
}

// retransmitSpan returns the time after which a peer that is waiting for DATA has sent its last retransmission of
// CLEAR_TO_SEND.
func (r *PeerRules) retransmitSpan() time.Duration {
	return deployedRetransmissions*r.RetransmitsClear +
		deployedRetransmissions*(deployedRetransmissions-1)/2*deployedStep
}

// SoftwarePeer returns the PeerRules of another zrlmpid.
func SoftwarePeer() PeerRules { return PeerRules{NumbersRequests: true} }

// Quirks describes the peculiarities, beyond Shape and Timing, of a deployed FPGA that a stand-in imitates. The zero
// value is correct for a host.
type Quirks struct {
	// OneDeferredHeader makes the Pair keep only one unexpected header per peer, of any type. A newer header overwrites
	// it, and the start of DATA deletes it.
	OneDeferredHeader bool
	// AckOnce makes the Pair acknowledge each message once, and never its retransmissions.
	AckOnce bool
	// IgnoreDestination makes the Pair accept packets addressed to other ranks.
	IgnoreDestination bool
	// CarryOver makes the Pair continue the count of retransmissions from SEND_REQUEST to DATA, so that a message has
	// three retransmissions in total.
	CarryOver bool
}

// OnPartial determines how a send ends if an FPGA does not acknowledge its fragmented message.
type OnPartial uint8

const (
	// FailPartial makes the send fail, unless the FPGA requests the message again.
	FailPartial OnPartial = iota
	// RetransmitPartial makes the Pair retransmit DATA as Timing.Ack prescribes, although the FPGA has not requested
	// it. If a continuation datagram was lost, the FPGA then acknowledges corrupt data.
	RetransmitPartial
)

// Backoff is a sequence of timeouts. Retransmission n, counted from 0, is sent after First + n × Step, for n <
// Retransmissions. Later retransmissions follow at intervals of Interval; if Interval is 0, no more are sent.
type Backoff struct {
	First, Step     time.Duration
	Retransmissions int
	Interval        time.Duration
}

// after returns the timeout before retransmission n, and false if the Backoff allows no such retransmission.
func (b Backoff) after(n int) (time.Duration, bool) {
	if n < b.Retransmissions {
		return b.First + time.Duration(n)*b.Step, true
	}
	return b.Interval, b.Interval > 0
}

// Timing holds the timeouts after which packets are retransmitted, and the deadlines after which operations fail.
type Timing struct {
	// Clear is the Backoff that a sender uses while it waits for CLEAR_TO_SEND, and Ack the one while it waits for ACK.
	// Data is the Backoff that a receiver uses while it waits for DATA.
	Clear, Ack, Data Backoff
	// ClearDeadline, AckDeadline and DataDeadline limit these waits; 0 means no limit. ClearDeadline is 0 by default,
	// because a receiver may legitimately be late. After CLEAR_TO_SEND, neither side has a reason to pause.
	ClearDeadline, AckDeadline, DataDeadline time.Duration
	// FirstDeadline limits the wait for CLEAR_TO_SEND from a peer that has never sent a packet, if ClearDeadline is not
	// earlier; 0 means no such limit.
	FirstDeadline time.Duration
	// FragmentGap is the maximum pause between two datagrams of one message. It is shorter than any sender's timeout
	// for ACK, so that a retransmission that lost its first datagram is not mistaken for the rest of the message.
	FragmentGap time.Duration
}

// Timeouts of the deployed nodes.
const (
	deployedFirst           = 100 * time.Millisecond
	deployedStep            = time.Second
	deployedRetransmissions = 3
	fpgaRankStep            = 12500 * time.Microsecond
)

// DeployedCPU returns the timeouts of upstream's CPU library.
func DeployedCPU() Timing {
	b := Backoff{First: deployedFirst, Step: deployedStep, Retransmissions: deployedRetransmissions}
	return Timing{Clear: b, Ack: b, Data: b, FragmentGap: deployedFirst / 2}
}

// DeployedFPGA returns the timeouts of a deployed MPE, which depend on its rank.
func DeployedFPGA(rank uint32) Timing {
	b := Backoff{First: deployedFirst + time.Duration(rank)*fpgaRankStep, Step: deployedStep,
		Retransmissions: deployedRetransmissions}
	ack := b
	ack.First *= 2
	return Timing{Clear: b, Ack: ack, Data: b, FragmentGap: deployedFirst / 2}
}

// DefaultTiming returns a host's default Timing for a peer with the given PeerRules. It differs from the Timing of the
// CPU library in two main ways. SEND_REQUEST is retransmitted for as long as the caller waits, because a peer may start
// late, and a deferred SEND_REQUEST does no harm. Waits that only a fault can prolong have deadlines.
func DefaultTiming(peer PeerRules) Timing {
	timing := DeployedCPU()
	timing.Clear.Interval = 3 * time.Second
	timing.AckDeadline = 10 * time.Second
	timing.DataDeadline = 10 * time.Second
	if peer.KeepsRequests {
		// A receiver is late more often than a packet is lost, and after a second SEND_REQUEST, a later CLEAR_TO_SEND
		// may belong to either of two receives.
		timing.Clear.First = time.Second
	}
	if peer.RetransmitsClear > 0 {
		// The peer's own retransmissions of SEND_REQUEST and DATA repair all losses, so ours start only after its last
		// one.
		timing.Data.First = 4 * time.Second
	}
	if peer.CorruptsOnRetransmit {
		// By then, an FPGA that lacks DATA has asked for it three times, even if its clock runs at half speed.
		timing.AckDeadline = min(timing.AckDeadline, 2*peer.retransmitSpan()+crossingWindow)
	}
	return timing
}
