package core

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

var (
	// ErrClosed: the engine is closed or closing.
	ErrClosed = errors.New("the rank is shut down")
	// ErrRank: a rank that is not in the cluster, or the rank itself.
	ErrRank = errors.New("no such peer")
	// ErrLength: a buffer that is not a whole number of words.
	ErrLength = handshake.ErrLength
	// ErrTag: a tag that the wire cannot carry.
	ErrTag = handshake.ErrTag
	// ErrComm: a communicator that the wire cannot carry.
	ErrComm = errors.New("the peer's profile carries no communicator")
	// ErrWildcard: a receive from any source whose tag the wire of some peers
	// cannot carry.
	ErrWildcard = errors.New("a receive from any source needs tag 0 or any tag while there are peers that carry no tag")
	// ErrCancelled: the operation was cancelled.
	ErrCancelled = errors.New("the operation was cancelled")
	// ErrFull: more operations or messages wait than the limits allow.
	ErrFull = errors.New("too many operations wait")
	// ErrPeerLost matches every *PeerLostError and *PeerFailedError.
	ErrPeerLost = errors.New("the peer is gone")
)

// ErrTruncated matches every message that was longer than its receive's buffer.
var ErrTruncated = handshake.ErrTruncated

// TruncatedError is a message that was longer than the buffer of its receive,
// which holds its beginning.
type TruncatedError struct {
	Source int
	// Posted and Sent are in bytes. Posted is what was taken of the message.
	Posted, Sent int64
}

// Error gives both sizes.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("rank %d sent %d bytes, but the receive had room for %d: the rest was dropped", e.Source, e.Sent, e.Posted)
}

// Is makes errors.Is(err, ErrTruncated) true.
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// WaitError is an operation that the caller's context ended. It says what the
// operation was waiting for.
type WaitError struct {
	handshake.Wait
	// Queued is how many operations of the same pair and direction were
	// ahead, if the message's handshake had not begun.
	Queued int
	// InTransfer: the handshake had gone too far to be cancelled. A message
	// being sent may still arrive; one being received goes to the next
	// receive posted.
	InTransfer bool
	// Network is the last error of the network towards the peer, if any.
	Network error
	// facts, as of at, are what Error makes its text of; nil if nothing is known.
	facts *state.WaitFacts
	at    handshake.Instant
	cause error
}

// Error says who waited for what, from whom, since when, and why it ended.
func (e *WaitError) Error() string {
	s, open := "", ""
	if e.facts != nil {
		s, open = e.facts.TextAt(e.at), e.facts.LeavesOpen()
	}
	if e.InTransfer {
		s += "; the transfer had begun and goes on without the caller"
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

// networkError adds what the network said to an error of the handshake.
type networkError struct {
	error
	network error
}

func (e *networkError) Error() string {
	return fmt.Sprintf("%v; the network says: %v", e.error, e.network)
}

func (e *networkError) Unwrap() []error { return []error{e.error, e.network} }
