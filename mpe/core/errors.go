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
	// ErrLength means that the length of a buffer is not a multiple of the word length.
	ErrLength = handshake.ErrLength
	// ErrTag means that the wire cannot carry a tag.
	ErrTag = handshake.ErrTag
	// ErrComm means that the wire cannot carry a communicator.
	ErrComm = errors.New("the peer's profile carries no communicator")
	// ErrWildcard means that a receive from any source names a tag although some peers' messages carry no tag.
	ErrWildcard = errors.New("a receive from any source needs tag 0 or any tag while there are peers that carry no tag")
	// ErrCancelled means that the operation was cancelled.
	ErrCancelled = errors.New("the operation was cancelled")
	// ErrFull means that the limit on waiting operations or messages is reached.
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

// WaitError is the error of an operation that ended because its caller's context was done. It describes the wait.
type WaitError struct {
	handshake.Wait
	// Queued is the number of operations ahead of this one in the same direction, or 0 once its handshake has begun.
	Queued int
	// InTransfer means that it was too late to cancel the transfer. A message being sent may still arrive; a message
	// being received is delivered to the next matching receive.
	InTransfer bool
	// Network is the error of the last packet sent to the peer, or nil.
	Network error
	// facts holds the facts that Error describes, as of time at; nil if nothing is known.
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

// networkError adds the error of the last packet sent to the peer to the error of an operation.
type networkError struct {
	error
	network error
}

func (e *networkError) Error() string {
	return fmt.Sprintf("%v; the network says: %v", e.error, e.network)
}

func (e *networkError) Unwrap() []error { return []error{e.error, e.network} }
