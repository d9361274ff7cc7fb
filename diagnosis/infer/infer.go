// Package infer finds the possible causes of a wait for a peer whose state is not known: all causes that no observation
// contradicts.
//
// It is pure, and interprets neither states of ranks nor packets. An Observation contains only observed facts, never
// guesses. A cause must never be omitted because another one is likelier.
package infer

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Cause is the ID of a cause, in the form used in documents.
type Cause string

// Possible causes of a wait when only the packets of the pair are known.
const (
	// In the peer's program.
	ProgramComputes Cause = "program_computes"
	WaitsElsewhere  Cause = "waits_elsewhere"
	OtherCall       Cause = "other_call"
	WaitCycle       Cause = "cycle"
	CountMismatch   Cause = "count_mismatch"
	// In the peer's process.
	ProcessStopped Cause = "process_stopped"
	ProcessEnded   Cause = "process_ended"
	Restarted      Cause = "restarted"
	StartedLate    Cause = "started_late"
	DeadEnd        Cause = "fpga_dead_end"
	// In the network or the configuration.
	PacketsBlocked Cause = "packets_blocked"
	PacketLost     Cause = "lost_packet"
	PacketDropped  Cause = "packet_dropped"
	PathMTU        Cause = "path_mtu"
	WrongAddress   Cause = "wrong_address"
	WrongProfile   Cause = "wrong_profile"
	TLSMismatch    Cause = "tls_mismatch"
)

// Observation contains the facts about one rank's wait for a packet from a peer whose state is unknown.
type Observation struct {
	Waiter, Peer int
	Kind         state.Kind // of the peer
	Extended     bool
	// IsSender is set if the waiter is the sender of the message. State is the state of the message, and WaitSeconds is
	// the duration of the wait.
	IsSender    bool
	State       handshake.State
	WaitSeconds float64
	// HasLongDatagram is set if the message contains a datagram longer than every path is guaranteed to carry.
	HasLongDatagram bool
	// LastHeard is the number of seconds since the last packet from the peer arrived. It is nil if none ever did.
	LastHeard *float64
	// HasWorked is set if a message to or from the peer has completed successfully since the waiter started.
	HasWorked bool
	// Abandoned is set if an earlier message to or from the peer was begun but not completed, so that the peer may
	// still be occupied with it.
	Abandoned bool
	// Connected is set if the peer uses the extended profile and has answered in the waiter's current session: each has
	// received packets of the other, in the same profile.
	Connected bool
	// Acknowledged is set if the peer uses the extended profile and has acknowledged everything sent to it. Retransmits
	// is set if packets from it were dropped recently, so that it may be retransmitting packets whose acknowledgements
	// are lost.
	Acknowledged, Retransmits bool
	// Silent is set if the peer uses the extended profile and its engine has not answered. This excludes a running
	// engine, which answers regardless of its program.
	Silent bool
	// PeerAsks is set if the peer has sent a SEND_REQUEST that does not belong to the message, or that CLEAR_TO_SEND
	// has already answered. RetransmitsRequest is set if it has done so more than once, so that the packet is not
	// merely late.
	PeerAsks, RetransmitsRequest bool
	// PeerClears is set if the peer has sent another CLEAR_TO_SEND after DATA was sent, or while the waiter itself
	// receives.
	PeerClears bool
	// ClearedAtOnce is set if the peer is another zrlmpid and has cleared the message before SEND_REQUEST was
	// retransmitted.
	ClearedAtOnce bool
	// RetransmitsData is set if the peer retransmits the DATA of an earlier message although the waiter has
	// acknowledged it.
	RetransmitsData bool
	// Refused is set if the host at the peer's address reports that nothing listens there.
	Refused bool
	// NoHandshake is set if the peer has accepted a TCP connection, but has not answered the TLS handshake.
	NoHandshake bool
}

// Possibility is a cause that no observation contradicts. Rank is the rank at fault, and Peer is the other rank of the
// pair. If packets are lost, Rank is their sender.
type Possibility struct {
	Cause Cause `json:"cause"`
	Rank  int   `json:"rank"`
	Peer  int   `json:"peer"`
	// Text describes the cause in a clause.
	Text string `json:"text"`
}

// Excluded is a cause that an observation contradicts.
type Excluded struct {
	Cause Cause
	// Contradiction describes the observation.
	Contradiction string
}

// maxRecentAge is the maximum age, in seconds, of a peer's last packet at which the peer counts as running.
const maxRecentAge = 1

// Explain returns the causes that the observation does not contradict, likeliest first, and the causes that it
// contradicts.
func Explain(observation *Observation) (left []Possibility, excluded []Excluded) {
	for i := range hypotheses {
		h := &hypotheses[i]
		if by := h.contradiction(observation); by != "" {
			if by != inapplicable {
				excluded = append(excluded, Excluded{h.cause, by})
			}
			continue
		}
		rank, other := observation.Peer, observation.Waiter
		if h.outbound {
			rank, other = other, rank
		}
		possibility := Possibility{h.cause, rank, other, h.text(observation)}
		// A peer that does not answer is most likely not running.
		if (observation.LastHeard == nil || observation.Silent) &&
			(h.cause == ProcessEnded || h.cause == ProcessStopped && observation.LastHeard != nil) {
			left = slices.Insert(left, 0, possibility)
			continue
		}
		left = append(left, possibility)
	}
	return left, excluded
}

// hypothesis is a cause that may explain a wait, together with a test for it.
type hypothesis struct {
	cause Cause
	// outbound is set if the rank that waits is at fault, or is the sender of the lost packets.
	outbound bool
	text     func(o *Observation) string
	// contradiction is a function that returns the observation that contradicts the hypothesis, "" if none does, or
	// inapplicable.
	contradiction func(o *Observation) string
}

// inapplicable is the result for a hypothesis that does not apply to a wait at all.
const inapplicable = "-"

// hasBegun reports whether both sides have begun the message, in which case its completion does not depend on their
// programs.
func (o *Observation) hasBegun() bool {
	switch o.State {
	case handshake.WaitData, handshake.Receiving, handshake.WaitAck:
		return !o.Extended
	}
	return false
}

// wasHeardSince reports whether a packet from the peer was received since the wait began.
func (o *Observation) wasHeardSince() bool {
	return o.LastHeard != nil && *o.LastHeard <= o.WaitSeconds
}

// peerBlocks reports whether the peer is a deployed node that is blocked in a send to the waiter, because the waiter
// has not cleared the send. All calls of a deployed node block until they complete.
func (o *Observation) peerBlocks() bool {
	return o.RetransmitsRequest && o.Kind != state.KindSoftware && !o.hasBegun()
}

// clearedInVain returns the observation that the peer was running when CLEAR_TO_SEND was sent to it but did not react
// to it. It returns "" if this was not observed.
func (o *Observation) clearedInVain() string {
	if !o.RetransmitsRequest || o.State != handshake.WaitData {
		return ""
	}
	return fmt.Sprintf("rank %d retransmits SEND_REQUEST, though CLEAR_TO_SEND was sent to it each time", o.Peer)
}

// asksForData returns the observation that the peer was running after DATA was sent to it but lacked the DATA. Whatever
// ended it later is not what the wait began with. It returns "" if this was not observed.
func (o *Observation) asksForData() string {
	if !o.PeerClears || o.State != handshake.WaitAck {
		return ""
	}
	return fmt.Sprintf("rank %d asks for DATA again", o.Peer)
}

// asksText returns a text for the observation that the peer requests to send a message, and therefore waits for nothing
// else.
func asksText(o *Observation) string {
	return fmt.Sprintf("rank %d asks to send, so it is in no receive", o.Peer)
}

// talksText returns a text for the observation that a packet from the peer was received recently, or "" if none was.
func (o *Observation) talksText() string {
	if o.LastHeard == nil || *o.LastHeard > maxRecentAge {
		return ""
	}
	return fmt.Sprintf("a packet of rank %d came %s ago", o.Peer, words.Duration(*o.LastHeard))
}

// peerText returns a function that inserts the peer's name into the given format.
func peerText(format string) func(o *Observation) string {
	return func(o *Observation) string { return fmt.Sprintf("rank %d "+format, o.Peer) }
}

// programEvidence returns the observation that excludes the peer's program as the cause. It returns "" if there is
// none.
func programEvidence(observation *Observation) string {
	switch {
	case observation.Silent:
		return fmt.Sprintf("the engine of rank %d does not answer, which does not depend on its program", observation.Peer)
	case observation.hasBegun():
		return fmt.Sprintf("the message has begun at rank %d", observation.Peer)
	case observation.peerBlocks():
		return fmt.Sprintf("rank %d is in the send for which it retransmits SEND_REQUEST", observation.Peer)
	case observation.PeerClears:
		return fmt.Sprintf("rank %d has cleared a message, and waits for it", observation.Peer)
	case observation.RetransmitsData:
		return retransmitsData(observation)
	case observation.Refused:
		return fmt.Sprintf("nothing listens at the address of rank %d", observation.Peer)
	}
	return ""
}

func retransmitsData(o *Observation) string {
	return fmt.Sprintf("rank %d retransmits an earlier message, which rank %d has acknowledged", o.Peer, o.Waiter)
}

// configEvidence returns the observation that excludes causes that would prevent all messages between the two ranks. It
// returns "" if there is none.
func configEvidence(observation *Observation) string {
	switch {
	case observation.HasWorked:
		return fmt.Sprintf("messages with rank %d completed", observation.Peer)
	case observation.hasBegun():
		return fmt.Sprintf("a message with rank %d has begun", observation.Peer)
	case observation.Connected:
		return fmt.Sprintf("rank %d has answered in this session", observation.Peer)
	}
	return ""
}

var hypotheses = []hypothesis{
	{cause: TLSMismatch, contradiction: func(o *Observation) string {
		if !o.NoHandshake {
			return inapplicable
		}
		return ""
	}, text: peerText("does not use TLS, or cannot answer the handshake")},
	{cause: WaitCycle, contradiction: func(o *Observation) string {
		if o.IsSender && o.State == handshake.WaitClear && o.PeerAsks ||
			!o.IsSender && o.State == handshake.WaitRequest && o.PeerClears {
			return ""
		}
		return inapplicable
	}, text: func(o *Observation) string {
		what := "receive from"
		if o.IsSender {
			what = "send to"
		}
		return fmt.Sprintf("ranks %d and %d %s each other", min(o.Waiter, o.Peer), max(o.Waiter, o.Peer), what)
	}},
	{cause: StartedLate, contradiction: func(observation *Observation) string {
		switch {
		case observation.Kind == state.KindSoftware || observation.Extended || observation.IsSender ||
			observation.State != handshake.WaitRequest:
			return inapplicable
		case observation.HasWorked:
			return fmt.Sprintf("messages with rank %d completed", observation.Peer)
		case observation.LastHeard != nil:
			return fmt.Sprintf("packets from rank %d were received", observation.Peer)
		}
		return ""
	}, outbound: true, text: func(o *Observation) string {
		return fmt.Sprintf("rank %d asked to send before rank %d was started, and does not ask again", o.Peer, o.Waiter)
	}},
	{cause: ProgramComputes, contradiction: programEvidence, text: func(o *Observation) string {
		return fmt.Sprintf("the program of rank %d computes, or has not come so far", o.Peer)
	}},
	{cause: WaitsElsewhere, contradiction: programEvidence, text: peerText("waits itself, in another call")},
	{cause: OtherCall, contradiction: programEvidence, text: peerText("has made a call that does not match")},
	{cause: PacketsBlocked, contradiction: func(observation *Observation) string {
		switch {
		case observation.hasBegun():
			return inapplicable // covered by Lost
		case observation.RetransmitsData:
			return retransmitsData(observation)
		case observation.IsSender && observation.peerBlocks():
			return asksText(observation)
		case observation.IsSender && observation.wasHeardSince() && !observation.Extended:
			return observation.talksText()
		}
		return ""
	}, text: func(o *Observation) string { return lostText(o.Peer, o.Waiter) }},
	{cause: PacketsBlocked, outbound: true, contradiction: func(observation *Observation) string {
		switch {
		case observation.hasBegun():
			return inapplicable
		case observation.Kind != state.KindSoftware && observation.IsSender && observation.RetransmitsRequest:
			return asksText(observation)
		case observation.Acknowledged && (observation.talksText() == "" || !observation.Retransmits):
			return fmt.Sprintf("rank %d has acknowledged all that was sent to it, and retransmits nothing", observation.Peer)
		}
		return ""
	}, text: func(o *Observation) string { return lostText(o.Waiter, o.Peer) }},
	{cause: PacketLost, contradiction: func(observation *Observation) string {
		switch {
		case !observation.hasBegun():
			return inapplicable // covered by Blocked
		case observation.State == handshake.WaitData && observation.PeerAsks:
			return fmt.Sprintf("rank %d has asked to send since, so it has not sent DATA", observation.Peer)
		case observation.State == handshake.WaitAck && observation.PeerClears:
			return fmt.Sprintf("rank %d asks for DATA again, so it has not sent ACK", observation.Peer)
		}
		return ""
	}, text: func(o *Observation) string { return packetLostText(o, o.Peer, o.Waiter) }},
	{cause: PacketLost, outbound: true, contradiction: func(observation *Observation) string {
		switch {
		case !observation.hasBegun():
			return inapplicable
		case observation.State == handshake.Receiving:
			return fmt.Sprintf("a part of the DATA of rank %d was received", observation.Peer)
		case observation.State == handshake.WaitAck && observation.PeerAsks && !observation.PeerClears:
			return asksText(observation)
		}
		return ""
	}, text: func(o *Observation) string { return packetLostText(o, o.Waiter, o.Peer) }},
	{cause: PacketDropped, contradiction: func(o *Observation) string {
		switch {
		case !o.hasBegun() || o.State == handshake.Receiving:
			return inapplicable
		case o.State == handshake.WaitAck && o.PeerAsks && !o.PeerClears:
			return asksText(o)
		}
		return ""
	}, text: func(o *Observation) string {
		return fmt.Sprintf("rank %d gets %s of rank %d, and drops it", o.Peer, packetName(o, o.Waiter), o.Waiter)
	}},
	{cause: PathMTU, outbound: true, contradiction: func(observation *Observation) string {
		switch {
		case !observation.HasLongDatagram || !observation.IsSender || observation.LastHeard == nil ||
			!observation.Extended && observation.State != handshake.WaitAck:
			return inapplicable
		case observation.Acknowledged:
			return fmt.Sprintf("rank %d has acknowledged all that was sent to it", observation.Peer)
		case observation.State == handshake.WaitAck && observation.PeerAsks && !observation.PeerClears:
			return asksText(observation)
		}
		return ""
	}, text: func(o *Observation) string { return mtuText(o.Waiter, o.Peer) }},
	{cause: PathMTU, contradiction: func(observation *Observation) string {
		switch {
		case !observation.HasLongDatagram || observation.IsSender || observation.LastHeard == nil ||
			!observation.Extended && observation.State == handshake.WaitRequest:
			return inapplicable
		case observation.State == handshake.Receiving:
			return inapplicable
		case observation.State == handshake.WaitData && observation.PeerAsks:
			return fmt.Sprintf("rank %d has asked to send since, so it has not sent DATA", observation.Peer)
		}
		return ""
	}, text: func(o *Observation) string { return mtuText(o.Peer, o.Waiter) }},
	{cause: CountMismatch, contradiction: func(o *Observation) string {
		switch {
		case o.Kind == state.KindSoftware || o.Extended || o.State != handshake.WaitAck:
			return inapplicable
		case o.PeerAsks && !o.PeerClears:
			return asksText(o)
		}
		return ""
	}, text: peerText("receives more words than the message has")},
	{cause: PacketsBlocked, contradiction: func(o *Observation) string {
		switch {
		case o.State == handshake.WaitData && o.PeerAsks: // it may have asked before CLEAR_TO_SEND arrived
			return ""
		case o.asksForData() == "":
			return inapplicable
		case o.ClearedAtOnce:
			return fmt.Sprintf("rank %d cleared the message before SEND_REQUEST was retransmitted", o.Peer)
		}
		return "" // it may have asked before DATA arrived
	}, text: func(o *Observation) string {
		return fmt.Sprintf("packets from rank %d arrive at rank %d seconds late", o.Peer, o.Waiter)
	}},
	{cause: ProcessStopped, contradiction: func(observation *Observation) string {
		switch {
		case observation.Kind == state.KindFPGA:
			return inapplicable
		case observation.Refused:
			return fmt.Sprintf("nothing listens at the address of rank %d", observation.Peer)
		}
		return stoppedEvidence(observation)
	}, text: peerText("is stopped, by a signal or a debugger")},
	{cause: ProcessEnded, contradiction: stoppedEvidence, text: func(o *Observation) string {
		if o.LastHeard == nil {
			return fmt.Sprintf("rank %d has not been started, or has exited", o.Peer)
		}
		return fmt.Sprintf("rank %d, or its program, has exited", o.Peer)
	}},
	{cause: Restarted, contradiction: func(observation *Observation) string {
		switch {
		case observation.Extended: // a restarted peer has a new session, which ends its messages
			return inapplicable
		case observation.LastHeard == nil:
			return fmt.Sprintf("no packet was ever received from rank %d", observation.Peer)
		case observation.clearedInVain() != "":
			return observation.clearedInVain()
		case observation.PeerClears:
			return fmt.Sprintf("rank %d asks for DATA again", observation.Peer)
		case observation.RetransmitsData:
			return retransmitsData(observation)
		}
		return ""
	}, text: peerText("has begun again in the middle of the message")},
	{cause: DeadEnd, contradiction: func(observation *Observation) string {
		switch {
		case observation.Kind == state.KindSoftware || observation.Extended:
			return inapplicable
		case observation.LastHeard == nil:
			return fmt.Sprintf("no packet was ever received from rank %d", observation.Peer)
		case observation.RetransmitsRequest && observation.State == handshake.WaitData:
			return fmt.Sprintf("rank %d asks to send", observation.Peer)
		case observation.IsSender && observation.peerBlocks():
			return asksText(observation)
		case observation.RetransmitsData:
			return retransmitsData(observation)
		}
		return ""
	}, text: peerText("has taken a late copy of a packet for another one, and is in a dead end")},
	{cause: Restarted, outbound: true, contradiction: func(observation *Observation) string {
		switch {
		case observation.Kind == state.KindSoftware || observation.Extended || observation.hasBegun():
			return inapplicable
		case observation.HasWorked && !observation.Abandoned:
			return fmt.Sprintf("messages with rank %d completed", observation.Peer)
		case observation.RetransmitsRequest:
			return fmt.Sprintf("rank %d asks to send, so it is in no earlier message", observation.Peer)
		}
		return ""
	}, text: func(o *Observation) string {
		return fmt.Sprintf("rank %d was started again, and rank %d is in a message with its earlier process", o.Waiter,
			o.Peer)
	}},
	{cause: WrongAddress, contradiction: func(o *Observation) string {
		if o.State == handshake.WaitData && o.Kind != state.KindSoftware && !o.HasWorked {
			return "" // its packets are recognized by IP address alone: packets to it may go to another port
		}
		return configEvidence(o)
	}, text: func(o *Observation) string {
		return fmt.Sprintf("ranks %d and %d have different rank maps", min(o.Waiter, o.Peer), max(o.Waiter, o.Peer))
	}},
	{cause: WrongProfile, contradiction: func(o *Observation) string {
		if o.Kind != state.KindSoftware && !o.Extended {
			return inapplicable // a deployed node has no other profile
		}
		return configEvidence(o)
	}, text: peerText("speaks another profile")},
}

// stoppedEvidence returns the observation that a peer is neither stopped nor has exited, or "". A peer of the extended
// profile has a daemon that answers regardless of its program.
func stoppedEvidence(o *Observation) string {
	switch {
	case o.Extended && !o.Silent:
		return ""
	case o.IsSender && o.peerBlocks():
		return asksText(o)
	case o.clearedInVain() != "":
		return o.clearedInVain()
	case o.asksForData() != "":
		return o.asksForData()
	}
	return o.talksText()
}

func lostText(from, to int) string {
	return fmt.Sprintf("packets from rank %d do not arrive at rank %d (firewall, route, full buffer)", from, to)
}

func packetLostText(o *Observation, from, to int) string {
	return fmt.Sprintf("%s from rank %d to rank %d was lost", packetName(o, from), from, to)
}

// packetName returns the name of the last packet of the message that rank has sent, or the next that it will send.
func packetName(o *Observation, rank int) string {
	sender := o.IsSender == (rank == o.Waiter)
	switch {
	case sender:
		return "DATA"
	case o.IsSender:
		return "ACK"
	}
	return "CLEAR_TO_SEND"
}

func mtuText(from, to int) string {
	return fmt.Sprintf("the path from rank %d to rank %d does not carry datagrams of that length", from, to)
}
