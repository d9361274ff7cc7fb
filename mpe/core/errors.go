package core

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

var (
	// ErrClosed is returned when the engine is closed or closing.
	ErrClosed = errors.New("the rank is shut down")
	// ErrRank is returned when a rank is not in the cluster, or is the local rank.
	ErrRank = errors.New("no such peer")
	// ErrLength is returned when the length of a buffer is not a multiple of the word length.
	ErrLength = handshake.ErrLength
	// ErrTag is returned when the wire format cannot carry a message's tag.
	ErrTag = handshake.ErrTag
	// ErrComm is returned when a message uses a communicator, but the peer's profile carries none.
	ErrComm = errors.New("the peer's profile carries no communicator")
	// ErrWildcard is returned when a receive from any source names a tag although the messages of some peers carry no
	// tag.
	ErrWildcard = errors.New("a receive from any source needs tag 0 or any tag while there are peers that carry no tag")
	// ErrCancelled means that the operation was cancelled.
	ErrCancelled = errors.New("the operation was cancelled")
	// ErrFull is returned when too many operations or messages are already waiting.
	ErrFull = errors.New("too many operations wait")
	// ErrPeerLost matches every *PeerLostError and *PeerFailedError.
	ErrPeerLost = errors.New("the peer is gone")
)

// ErrTruncated matches every *TruncatedError and the corresponding error of a handshake.
var ErrTruncated = handshake.ErrTruncated

// TruncatedError is the error of a receive whose buffer was shorter than the message. The buffer holds the
// beginning of the message.
type TruncatedError struct {
	Source int
	// Posted is the number of bytes received, and Sent the length of the message in bytes.
	Posted, Sent int64
}

// Error returns both sizes.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("rank %d sent %d bytes, but the receive buffer holds %d: the rest was dropped", e.Source, e.Sent,
		e.Posted)
}

// Is makes errors.Is(err, ErrTruncated) true.
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// WaitError is returned by an operation that ended because its caller's context was done. It describes what the
// operation was waiting for.
type WaitError struct {
	handshake.Wait
	// Queued is the number of operations ahead of this one in the same direction, or 0 once its handshake has begun.
	Queued int
	// InTransfer means that it was too late to cancel the transfer. A message being sent may still arrive; a message
	// being received is delivered to the next matching receive.
	InTransfer bool
	// Network is the error of the last packet sent to the peer, or nil.
	Network error
	// facts holds the facts that Error describes, as they were at time at. It is nil if nothing is known.
	facts *state.WaitFacts
	at    handshake.Instant
	cause error
}

// Error describes the operation, its peer, the duration of the wait, and the cause of its end.
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

// networkError extends an operation's error by the error of the last packet sent to the peer, if any.
type networkError struct {
	error
	network error
}

func (e *networkError) Error() string {
	return fmt.Sprintf("%v; the network says: %v", e.error, e.network)
}

func (e *networkError) Unwrap() []error { return []error{e.error, e.network} }
