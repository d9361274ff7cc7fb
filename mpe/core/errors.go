package core

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

var (
	// ErrClosed means that the engine is closed or closing.
	ErrClosed = errors.New("the rank is shut down")
	// ErrRank means that a rank is not in the cluster, or is the local rank.
	ErrRank = errors.New("no such peer")
	// ErrLength means that the length of a buffer is not a whole number of words.
	ErrLength = handshake.ErrLength
	// ErrTag means that the wire cannot carry a tag.
	ErrTag = handshake.ErrTag
	// ErrComm means that the wire cannot carry a communicator.
	ErrComm = errors.New("the peer's profile carries no communicator")
	// ErrWildcard means that a receive from any source has a tag that the wire of some peers cannot carry.
	ErrWildcard = errors.New("a receive from any source needs tag 0 or any tag while there are peers that carry no tag")
	// ErrCancelled means that the operation was cancelled.
	ErrCancelled = errors.New("the operation was cancelled")
	// ErrFull means that more operations or messages are waiting than the limits allow.
	ErrFull = errors.New("too many operations wait")
	// ErrPeerLost matches every *PeerLostError and *PeerFailedError.
	ErrPeerLost = errors.New("the peer is gone")
)

// ErrTruncated matches the error of every receive whose buffer was shorter than the message.
var ErrTruncated = handshake.ErrTruncated

// TruncatedError is the error of a receive whose buffer was shorter than the message. The buffer holds the
// beginning of the message.
type TruncatedError struct {
	Source int
	// Posted and Sent are in bytes. Posted is the part of the message that was received.
	Posted, Sent int64
}

// Error returns both sizes.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("rank %d sent %d bytes, but the receive buffer holds %d: the rest was dropped", e.Source, e.Sent,
		e.Posted)
}

// Is makes errors.Is(err, ErrTruncated) true.
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// WaitError is the error of an operation ended by the caller's context. It describes the wait.
type WaitError struct {
	handshake.Wait
	// Queued is the number of operations that were ahead in the same pair and direction, if the handshake for the
	// message had not begun.
	Queued int
	// InTransfer means that the handshake was too far advanced to be cancelled. A message being sent may still
	// arrive; a message being received goes to the next matching receive.
	InTransfer bool
	// Network is the last error of the network towards the peer, or nil.
	Network error
	// facts holds the facts that Error describes, as they were at the time at. It is nil if nothing is known.
	facts *state.WaitFacts
	at    handshake.Instant
	cause error
}

// Error describes the operation, its peer, the time it has waited, and why it ended.
func (e *WaitError) Error() string {
	s, open := "", ""
	if e.facts != nil {
		s, open = e.facts.TextAt(e.at), e.facts.RemainsAtPeer()
	}
	if e.InTransfer {
		s += "; the transfer has started and continues without the caller"
	}
	if e.Network != nil {
		s += fmt.Sprintf("; the network says: %v", e.Network)
	}
	s = fmt.Sprintf("%s: %v", s, e.cause)
	if open != "" {
		s += "; " + open
	}
	return s
}

// Unwrap returns the context's error.
func (e *WaitError) Unwrap() error { return e.cause }

// networkError adds the network's error to an error of the handshake.
type networkError struct {
	error
	network error
}

func (e *networkError) Error() string {
	return fmt.Sprintf("%v; the network says: %v", e.error, e.network)
}

func (e *networkError) Unwrap() []error { return []error{e.error, e.network} }
