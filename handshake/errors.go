package handshake

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Errors to test for with errors.Is.
var (
	// ErrTimeout matches every *TimeoutError.
	ErrTimeout = errors.New("deadline exceeded")
	// ErrPartial matches every *PartialError.
	ErrPartial = errors.New("a fragmented message was not acknowledged and must not be retransmitted")
	// ErrEmpty is returned for a message of 0 words, which is rejected because it would wedge the peer.
	ErrEmpty = errors.New("a message of 0 words wedges an FPGA")
	// ErrLength is returned when the length of a message is not a whole number of words.
	ErrLength = errors.New("the length is not a multiple of 4 bytes")
	// ErrTag is returned when a tag cannot be encoded on the wire.
	ErrTag = errors.New("no such tag")
	// ErrTooLong is returned when a message exceeds Config.MaxWords or Config.PeerWords.
	ErrTooLong = errors.New("message is longer than the limit")
	// ErrBusy is returned when the Pair already has a message in the same direction.
	ErrBusy = errors.New("the pair already has a message in this direction")
	// ErrTruncated matches every *TruncatedError.
	ErrTruncated = errors.New("message is longer than the posted buffer")
	// ErrRemote matches every *RemoteError.
	ErrRemote = errors.New("peer sent ERROR")
)

// State is the state of a message during the handshake.
type State uint8

// These are the states that the diagrams in the package documentation show.
const (
	Idle State = iota
	Held
	WaitClear
	WaitAck
	WaitRequest
	WaitData
	Receiving
)

var stateNames = [...]string{"IDLE", "HELD", "WAIT_CLEAR", "WAIT_ACK", "WAIT_REQUEST", "WAIT_DATA", "RECEIVING"}

// String returns the state's name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// MarshalText returns the name of the state.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets s to the state with the given name. If this version does not know the name, it sets s to Idle.
func (s *State) UnmarshalText(name []byte) error {
	*s = State(max(slices.Index(stateNames[:], string(name)), 0))
	return nil
}

// AwaitedPacket returns the type of packet that ends the state, or 0 if no packet does.
func (s State) AwaitedPacket() protocol.Type {
	switch s {
	case WaitClear:
		return protocol.ClearToSend
	case WaitAck:
		return protocol.Ack
	case WaitRequest:
		return protocol.SendRequest
	case WaitData, Receiving:
		return protocol.Data
	}
	return 0
}

// Wait describes a rank that is waiting for a packet from its peer.
type Wait struct {
	ID    ID
	State State
	// Local is the rank that waits, and Remote the rank from which it expects a packet of type For. For is 0 while
	// another message of the same Pair holds this one back.
	Local, Remote uint32
	For           protocol.Type
	Since         Instant
	// Retransmissions is the number of packets of this message that were retransmitted so far.
	Retransmissions int
	// Words is the size of the message, or 0 if it is unknown because a receiver has not received DATA yet. Got is the
	// number of bytes received.
	Words uint32
	Got   int64
	// Deferred is the call of a SEND_REQUEST that was deferred because it does not match the posted receive. It is
	// valid only if HasDeferred is set.
	Deferred    protocol.Call
	HasDeferred bool
}

// Describe returns a description of the wait at time now. If now is Since, the description omits the duration, so that
// it stays the same throughout the wait.
func (w Wait) Describe(now Instant) string {
	s := fmt.Sprintf("rank %d %s %v from rank %d", w.Local, DescribeWait(now-w.Since), w.For, w.Remote)
	switch w.State {
	case Held:
		s = fmt.Sprintf("rank %d %s, behind a message from it", w.Local, DescribeHold(w.Remote, now-w.Since))
	case Receiving:
		s += fmt.Sprintf(" (%d of %d bytes received)", w.Got, int64(w.Words)*protocol.WordLen)
	}
	if w.HasDeferred {
		s += fmt.Sprintf("; rank %d asks to send with %v, which the posted receive does not match", w.Remote,
			w.Deferred)
	}
	return s
}

// DescribeWait returns "has waited 3s for", or "waits for" if age is 0.
func DescribeWait(age time.Duration) string {
	if age == 0 {
		return "waits for"
	}
	return fmt.Sprintf("has waited %v for", Round(age))
}

// DescribeHold returns "has held a send to rank 2 back for 3s", or "holds a send to rank 2 back" if age is 0.
func DescribeHold(to uint32, age time.Duration) string {
	if age == 0 {
		return fmt.Sprintf("holds a send to rank %d back", to)
	}
	return fmt.Sprintf("has held a send to rank %d back for %v", to, Round(age))
}

// Round rounds a duration to the precision that is useful to a reader of a message.
func Round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}

// TimeoutError reports that a wait has reached its deadline.
type TimeoutError struct {
	Wait
	// Elapsed is the duration of the wait.
	Elapsed time.Duration
	// Silent is set if the peer is an FPGA that would have asked for DATA again by now if it lacked DATA.
	Silent bool
	// Unheard is set if no packet was ever received from the peer.
	Unheard bool
	// DeadEnd is set if the peer is a deployed node that is blocked in its send of this message and cannot continue.
	DeadEnd bool
}

// Error describes the state, the awaited packet, the peer, and the possible causes.
func (e *TimeoutError) Error() string {
	s := fmt.Sprintf("rank %d waited %s in %v for %v from rank %d", e.Local, Round(e.Elapsed), e.State, e.For, e.Remote)
	if e.Retransmissions > 0 {
		s += fmt.Sprintf(" (retransmitted %d times)", e.Retransmissions)
	}
	if e.State == Receiving {
		s += fmt.Sprintf(": %d of %d bytes received", e.Got, int64(e.Words)*protocol.WordLen)
	}
	if e.DeadEnd {
		return s + fmt.Sprintf(": it is in a send whose DATA was not received, and waits forever. Restart its role or "+
			"program, %s", resetStep(e.Local, e.Remote))
	}
	if e.Unheard {
		s += ", from which no packet was ever received"
	}
	switch e.State {
	case WaitClear:
		s += fmt.Sprintf(": rank %d has not cleared the message, or packets between the two ranks are lost", e.Remote)
	case WaitAck:
		if !e.Silent {
			return s + fmt.Sprintf(": the message may or may not have been received, or rank %d was restarted", e.Remote)
		}
		s += fmt.Sprintf(": the message was probably received and only its ACK was lost, as an FPGA asks up to three "+
			"times for DATA that it lacks, and rank %d asks no more, or rank %d was restarted: an FPGA that was "+
			"reset is silent, too", e.Remote, e.Remote)
	case WaitData:
		s += fmt.Sprintf(": it asked to send, was cleared, and then sent nothing. If the SEND_REQUEST was a late "+
			"duplicate, rank %d is in no send; if it is an FPGA and does not go on, restart its role", e.Remote)
	}
	return s
}

// Is reports whether target is ErrTimeout.
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// Timeout returns true, as package net defines it for timeouts.
func (e *TimeoutError) Timeout() bool { return true }

// PartialError reports that a deployed node did not acknowledge a fragmented message in time. The node has not asked
// for the message again in a way that proves that it received nothing, so it is in a dead end.
type PartialError struct {
	Local, Remote uint32
	Words         uint32
	// Datagrams is the number of datagrams of the message.
	Datagrams int64
	Elapsed   time.Duration
	// FPGA is set if the peer stores the next packet as data after the loss of a datagram, as an FPGA does.
	FPGA bool
	// Doubtful is set if SEND_REQUEST was retransmitted, so that a later CLEAR_TO_SEND may ask for this message or for
	// the next one.
	Doubtful bool
}

// Error describes the failure and the remedies.
func (e *PartialError) Error() string {
	s := fmt.Sprintf("rank %d did not acknowledge %d words in %d datagrams within %s", e.Remote, e.Words, e.Datagrams,
		Round(e.Elapsed))
	switch {
	case e.FPGA:
		return s + " and did not ask for them again. Unless it was restarted, it may be in the middle of them: an " +
			"FPGA that lost a datagram stores a retransmission as data, so nothing is retransmitted. Restart the FPGA's role, " +
			resetStep(e.Local, e.Remote) +
			"; to avoid it, send messages of up to 346 words, which are retransmitted safely, pace more, or set " +
			"on_partial: retransmit"
	case e.Doubtful:
		s += ", and whether it asked for them again or for the next message is unknown"
	default:
		s += " and did not ask for them again"
	}
	return s + ": it may have all of them, or wait for the rest forever. If its program does not go on, restart it, " +
		resetStep(e.Local, e.Remote)
}

// Is reports whether target is ErrPartial.
func (e *PartialError) Is(target error) bool { return target == ErrPartial }

// TruncatedError reports that a message was longer than the posted buffer. The buffer holds the beginning of the
// message, and the Pair has acknowledged the whole message to the sender.
type TruncatedError struct {
	Remote       uint32
	Posted, Sent uint32 // words
}

// Error describes both sizes.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("rank %d sent %d words, but the posted buffer holds %d: the rest was dropped", e.Remote, e.Sent,
		e.Posted)
}

// Is reports whether target is ErrTruncated.
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// RemoteError reports that the peer sent an ERROR packet.
type RemoteError struct {
	Remote uint32
	State  State
}

// Error describes the peer, and the state in which the ERROR packet from it was received.
func (e *RemoteError) Error() string {
	return fmt.Sprintf("rank %d answered with ERROR while we were in %v", e.Remote, e.State)
}

// Is reports whether target is ErrRemote.
func (e *RemoteError) Is(target error) bool { return target == ErrRemote }
