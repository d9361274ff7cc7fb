// Package infer finds the causes that explain why a rank waits for a peer whose state is not known: of all that
// there are, those that no observation contradicts.
//
// It is pure, and knows neither states of ranks nor packets: an Observation says what was seen, and nothing in it
// may be guessed. It must never leave out a cause because another one is likelier.
package infer

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Cause is what may be wrong, by its ID in documents.
type Cause string

// The causes of a wait that the pair's packets alone may leave open.
const (
	// Of the peer's program.
	Computes  Cause = "program_computes"
	Waits     Cause = "waits_elsewhere"
	OtherCall Cause = "other_call"
	Cycle     Cause = "cycle"
	Count     Cause = "count_mismatch"
	// Of its process.
	Stopped   Cause = "process_stopped"
	Ended     Cause = "process_ended"
	Restarted Cause = "restarted"
	Started   Cause = "started_late"
	DeadEnd   Cause = "fpga_dead_end"
	// Of the network and the configuration.
	Blocked      Cause = "packets_blocked"
	Lost         Cause = "lost_packet"
	Dropped      Cause = "packet_dropped"
	MTU          Cause = "path_mtu"
	WrongAddress Cause = "wrong_address"
	WrongProfile Cause = "wrong_profile"
	TLS          Cause = "tls_mismatch"
)

// Observation is what is known of a wait of one rank for a packet of a peer whose own state is not known.
type Observation struct {
	Waiter, Peer int
	Kind         state.Kind // of the peer
	Extended     bool
	// Sends, State and Waited are the message that the waiter waits in, and for how many seconds.
	Sends  bool
	State  handshake.State
	Waited float64
	// Long: it has a datagram that is longer than every path carries.
	Long bool
	// Heard is how many seconds ago the last packet of the peer arrived; nil if none ever did.
	Heard *float64
	// Worked: a message with the peer has ended well since the waiter has started.
	Worked bool
	// Abandoned: an earlier message with the peer has begun, and has not ended: it may still be in it.
	Abandoned bool
	// Acknowledged: the peer has acknowledged all that was sent to it, of the profile extended.
	Acknowledged bool
	// Silent: its engine, which answers whatever its program does, has not answered: of the profile extended.
	Silent bool
	// Asks: the peer has sent SEND_REQUEST that does not belong to the message, or for which it was cleared.
	// RetransmitsRequest: more than once, so that it is no late copy.
	Asks, RetransmitsRequest bool
	// Clears: the peer has cleared again after DATA was sent; or it has cleared, and the waiter receives.
	Clears bool
	// RetransmitsData: the peer retransmits DATA of an earlier message, which the waiter has acknowledged.
	RetransmitsData bool
	// Refused: the host of the peer's address says that nothing listens there.
	Refused bool
	// NoHandshake: it has accepted a TCP connection, and has not answered the handshake of TLS.
	NoHandshake bool
}

// Possibility is a cause that nothing contradicts. Rank is the rank at fault, and Peer the other one of its pair;
// of packets that are lost Rank is the sender.
type Possibility struct {
	Cause Cause `json:"cause"`
	Rank  int   `json:"rank"`
	Peer  int   `json:"peer"`
	// Text is the cause in a clause.
	Text string `json:"text"`
}

// Excluded is a cause that an observation contradicts.
type Excluded struct {
	Cause Cause
	// By is the observation, in words.
	By string
}

// recent is how many seconds ago a packet was received, at most, whose sender counts as running.
const recent = 1

// Explain returns the causes that the observation leaves, the likeliest first, and those that it contradicts.
func Explain(o *Observation) (left []Possibility, excluded []Excluded) {
	for i := range hypotheses {
		h := &hypotheses[i]
		if by := h.contradicted(o); by != "" {
			if by != inapplicable {
				excluded = append(excluded, Excluded{h.cause, by})
			}
			continue
		}
		rank, other := o.Peer, o.Waiter
		if h.outbound {
			rank, other = other, rank
		}
		p := Possibility{h.cause, rank, other, h.text(o)}
		// What does not answer most often does not run.
		if (o.Heard == nil || o.Silent) && (h.cause == Ended || h.cause == Stopped && o.Heard != nil) {
			left = slices.Insert(left, 0, p)
			continue
		}
		left = append(left, p)
	}
	return left, excluded
}

// hypothesis is a cause that may explain a wait.
type hypothesis struct {
	cause Cause
	// outbound: the waiter is at fault, or the sender of what is lost.
	outbound bool
	text     func(o *Observation) string
	// contradicted returns the observation that contradicts it, or an empty string.
	contradicted func(o *Observation) string
}

// inapplicable is why a hypothesis does not concern a wait at all.
const inapplicable = "-"

// begun reports whether the message has begun at both sides: what comes next follows without the programs.
func (o *Observation) begun() bool {
	switch o.State {
	case handshake.WaitData, handshake.Receiving, handshake.WaitAck:
		return !o.Extended
	}
	return false
}

// heardSince reports whether a packet of the peer has come since the wait began.
func (o *Observation) heardSince() bool { return o.Heard != nil && *o.Heard <= o.Waited }

// blocks reports whether the peer is a deployed node in a send to the waiter, which has not cleared it: all of its
// calls
// block, for as long as it takes.
func (o *Observation) blocks() bool {
	return o.RetransmitsRequest && o.Kind != state.KindSoftware && !o.begun()
}

// asksSo returns that the peer asks to send, and so waits for nothing else.
func asksSo(o *Observation) string {
	return fmt.Sprintf("rank %d asks to send, so it is in no receive", o.Peer)
}

// talks returns that the peer has sent something lately, or an empty string.
func (o *Observation) talks() string {
	if o.Heard == nil || *o.Heard > recent {
		return ""
	}
	return fmt.Sprintf("a packet of rank %d came %s ago", o.Peer, words.Duration(*o.Heard))
}

// of returns the sentence about the peer that is to be put after its name.
func of(format string) func(o *Observation) string {
	return func(o *Observation) string { return fmt.Sprintf("rank %d "+format, o.Peer) }
}

// program returns what contradicts causes that lie in the peer's program.
func program(o *Observation) string {
	switch {
	case o.Silent:
		return fmt.Sprintf("the engine of rank %d does not answer, which does not depend on its program", o.Peer)
	case o.begun():
		return fmt.Sprintf("the message has begun at rank %d", o.Peer)
	case o.blocks():
		return fmt.Sprintf("rank %d is in the send for which it retransmits SEND_REQUEST", o.Peer)
	case o.Clears:
		return fmt.Sprintf("rank %d has cleared a message, and waits for it", o.Peer)
	case o.RetransmitsData:
		return retransmitsData(o)
	case o.Refused:
		return fmt.Sprintf("nothing listens at the address of rank %d", o.Peer)
	}
	return ""
}

func retransmitsData(o *Observation) string {
	return fmt.Sprintf("rank %d retransmits an earlier message, which rank %d has acknowledged", o.Peer, o.Waiter)
}

// configuration returns what contradicts that the ranks have never been able to exchange messages.
func configuration(o *Observation) string {
	switch {
	case o.Worked:
		return fmt.Sprintf("messages with rank %d have ended well", o.Peer)
	case o.begun():
		return fmt.Sprintf("a message with rank %d has begun", o.Peer)
	}
	return ""
}

var hypotheses = []hypothesis{
	{cause: TLS, contradicted: func(o *Observation) string {
		if !o.NoHandshake {
			return inapplicable
		}
		return ""
	}, text: of("does not use TLS, or cannot answer the handshake")},
	{cause: Cycle, contradicted: func(o *Observation) string {
		if o.Sends && o.State == handshake.WaitClear && o.Asks ||
			!o.Sends && o.State == handshake.WaitRequest && o.Clears {
			return ""
		}
		return inapplicable
	}, text: func(o *Observation) string {
		what := "receive from"
		if o.Sends {
			what = "send to"
		}
		return fmt.Sprintf("ranks %d and %d %s each other", min(o.Waiter, o.Peer), max(o.Waiter, o.Peer), what)
	}},
	{cause: Started, contradicted: func(o *Observation) string {
		switch {
		case o.Kind == state.KindSoftware || o.Extended || o.Sends || o.State != handshake.WaitRequest:
			return inapplicable
		case o.Worked:
			return fmt.Sprintf("messages with rank %d have ended well", o.Peer)
		case o.Heard != nil:
			return fmt.Sprintf("packets of rank %d have come", o.Peer)
		}
		return ""
	}, outbound: true, text: func(o *Observation) string {
		return fmt.Sprintf("rank %d asked to send before rank %d was started, and does not ask again", o.Peer, o.Waiter)
	}},
	{cause: Computes, contradicted: program, text: func(o *Observation) string {
		return fmt.Sprintf("the program of rank %d computes, or has not come so far", o.Peer)
	}},
	{cause: Waits, contradicted: program, text: of("waits itself, in another call")},
	{cause: OtherCall, contradicted: program, text: of("has made a call that does not match")},
	{cause: Blocked, contradicted: func(o *Observation) string {
		switch {
		case o.begun():
			return inapplicable // Lost
		case o.RetransmitsData:
			return retransmitsData(o)
		case o.Sends && o.blocks():
			return asksSo(o)
		case o.Sends && o.heardSince() && !o.Extended:
			return o.talks()
		}
		return ""
	}, text: func(o *Observation) string { return lostText(o.Peer, o.Waiter) }},
	{cause: Blocked, outbound: true, contradicted: func(o *Observation) string {
		switch {
		case o.begun():
			return inapplicable
		case o.Kind != state.KindSoftware && o.Sends && o.RetransmitsRequest:
			return asksSo(o)
		case o.Acknowledged && o.talks() == "":
			return fmt.Sprintf("rank %d has acknowledged all that was sent to it, and retransmits nothing", o.Peer)
		}
		return ""
	}, text: func(o *Observation) string { return lostText(o.Waiter, o.Peer) }},
	{cause: Lost, contradicted: func(o *Observation) string {
		switch {
		case !o.begun():
			return inapplicable // Blocked
		case o.State == handshake.WaitData && o.Asks:
			return fmt.Sprintf("rank %d has asked to send since, so it has not sent DATA", o.Peer)
		case o.State == handshake.WaitAck && o.Clears:
			return fmt.Sprintf("rank %d asks for DATA again, so it has not sent ACK", o.Peer)
		}
		return ""
	}, text: func(o *Observation) string { return packetLostText(o, o.Peer, o.Waiter) }},
	{cause: Lost, outbound: true, contradicted: func(o *Observation) string {
		switch {
		case !o.begun():
			return inapplicable
		case o.State == handshake.Receiving:
			return fmt.Sprintf("a part of the DATA of rank %d has come", o.Peer)
		case o.State == handshake.WaitAck && o.Asks && !o.Clears:
			return asksSo(o)
		}
		return ""
	}, text: func(o *Observation) string { return packetLostText(o, o.Waiter, o.Peer) }},
	{cause: Dropped, contradicted: func(o *Observation) string {
		switch {
		case !o.begun() || o.State == handshake.Receiving:
			return inapplicable
		case o.State == handshake.WaitAck && o.Asks && !o.Clears:
			return asksSo(o)
		}
		return ""
	}, text: func(o *Observation) string {
		return fmt.Sprintf("rank %d gets %s of rank %d, and drops it", o.Peer, sentBy(o, o.Waiter), o.Waiter)
	}},
	{cause: MTU, outbound: true, contradicted: func(o *Observation) string {
		switch {
		case !o.Long || !o.Sends || o.Heard == nil || !o.Extended && o.State != handshake.WaitAck:
			return inapplicable
		case o.State == handshake.WaitAck && o.Asks && !o.Clears:
			return asksSo(o)
		}
		return ""
	}, text: func(o *Observation) string { return mtuText(o.Waiter, o.Peer) }},
	{cause: MTU, contradicted: func(o *Observation) string {
		switch {
		case !o.Long || o.Sends || o.Heard == nil || !o.Extended && o.State == handshake.WaitRequest:
			return inapplicable
		case o.State == handshake.Receiving:
			return inapplicable
		case o.State == handshake.WaitData && o.Asks:
			return fmt.Sprintf("rank %d has asked to send since, so it has not sent DATA", o.Peer)
		}
		return ""
	}, text: func(o *Observation) string { return mtuText(o.Peer, o.Waiter) }},
	{cause: Count, contradicted: func(o *Observation) string {
		switch {
		case o.Kind == state.KindSoftware || o.Extended || o.State != handshake.WaitAck:
			return inapplicable
		case o.Asks && !o.Clears:
			return asksSo(o)
		}
		return ""
	}, text: of("receives more words than the message has")},
	{cause: Blocked, contradicted: func(o *Observation) string {
		if o.State == handshake.WaitData && o.Asks || o.State == handshake.WaitAck && o.Clears {
			return "" // what the peer sends may have been sent before what was sent to it arrived
		}
		return inapplicable
	}, text: func(o *Observation) string {
		return fmt.Sprintf("packets from rank %d arrive at rank %d seconds late", o.Peer, o.Waiter)
	}},
	{cause: Stopped, contradicted: func(o *Observation) string {
		switch {
		case o.Kind == state.KindFPGA:
			return inapplicable
		case o.Refused:
			return fmt.Sprintf("nothing listens at the address of rank %d", o.Peer)
		case o.Extended:
			return stopped(o)
		case o.Sends && o.blocks():
			return asksSo(o)
		}
		return o.talks()
	}, text: of("is stopped, by a signal or a debugger")},
	{cause: Ended, contradicted: func(o *Observation) string {
		if o.Extended {
			return stopped(o)
		}
		return o.talks()
	}, text: func(o *Observation) string {
		if o.Heard == nil {
			return fmt.Sprintf("rank %d has not been started, or has ended", o.Peer)
		}
		return fmt.Sprintf("rank %d, or its program, has ended", o.Peer)
	}},
	{cause: Restarted, contradicted: func(o *Observation) string {
		switch {
		case o.Extended: // then it has another session, which ends messages
			return inapplicable
		case o.Heard == nil:
			return fmt.Sprintf("no packet has ever come from rank %d", o.Peer)
		case o.RetransmitsRequest && o.State == handshake.WaitData:
			return fmt.Sprintf("rank %d retransmits SEND_REQUEST, though CLEAR_TO_SEND was sent to it each time",
				o.Peer)
		case o.Clears:
			return fmt.Sprintf("rank %d asks for DATA again", o.Peer)
		case o.RetransmitsData:
			return retransmitsData(o)
		}
		return ""
	}, text: of("has begun again in the middle of the message")},
	{cause: DeadEnd, contradicted: func(o *Observation) string {
		switch {
		case o.Kind == state.KindSoftware || o.Extended:
			return inapplicable
		case o.Heard == nil:
			return fmt.Sprintf("no packet has ever come from rank %d", o.Peer)
		case o.RetransmitsRequest && o.State == handshake.WaitData:
			return fmt.Sprintf("rank %d asks to send", o.Peer)
		case o.Sends && o.blocks():
			return asksSo(o)
		case o.RetransmitsData:
			return retransmitsData(o)
		}
		return ""
	}, text: of("has taken a late copy of a packet for another one, and is in a dead end")},
	{cause: Restarted, outbound: true, contradicted: func(o *Observation) string {
		switch {
		case o.Kind == state.KindSoftware || o.Extended || o.begun():
			return inapplicable
		case o.Worked && !o.Abandoned:
			return fmt.Sprintf("messages with rank %d have ended well", o.Peer)
		case o.RetransmitsRequest:
			return fmt.Sprintf("rank %d asks to send, so it is in no earlier message", o.Peer)
		}
		return ""
	}, text: func(o *Observation) string {
		return fmt.Sprintf("rank %d was started again, and rank %d is in a message with its earlier process", o.Waiter,
			o.Peer)
	}},
	{cause: WrongAddress, contradicted: func(o *Observation) string {
		if o.State == handshake.WaitData && o.Kind != state.KindSoftware && !o.Worked {
			return "" // its packets are known by their IP address alone: those to it may go to another port
		}
		return configuration(o)
	}, text: func(o *Observation) string {
		return fmt.Sprintf("ranks %d and %d have different rank maps", min(o.Waiter, o.Peer), max(o.Waiter, o.Peer))
	}},
	{cause: WrongProfile, contradicted: func(o *Observation) string {
		if o.Kind != state.KindSoftware && !o.Extended {
			return inapplicable // a deployed node speaks no other
		}
		return configuration(o)
	}, text: of("speaks another profile")},
}

// stopped returns what contradicts that a peer of the profile extended is stopped or has ended. Its daemon answers
// whatever its program is.
func stopped(o *Observation) string {
	if !o.Silent {
		return ""
	}
	return o.talks()
}

func lostText(from, to int) string {
	return fmt.Sprintf("packets from rank %d do not arrive at rank %d (firewall, route, full buffer)", from, to)
}

func packetLostText(o *Observation, from, to int) string {
	return fmt.Sprintf("%s from rank %d to rank %d was lost", sentBy(o, from), from, to)
}

// sentBy is the packet of the message that a rank has sent last, or is to send.
func sentBy(o *Observation, rank int) string {
	sender := o.Sends == (rank == o.Waiter)
	switch {
	case sender:
		return "DATA"
	case o.Sends:
		return "ACK"
	}
	return "CLEAR_TO_SEND"
}

func mtuText(from, to int) string {
	return fmt.Sprintf("the path from rank %d to rank %d does not carry datagrams of that length", from, to)
}
