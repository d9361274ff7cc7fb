package extended

import (
	"errors"
	"fmt"
	"time"
)

// Errors to test for with errors.Is.
var (
	// ErrTimeout matches every *TimeoutError.
	ErrTimeout = errors.New("deadline exceeded")
	// ErrSession matches every *SessionError.
	ErrSession = errors.New("the peer's session is closed")
	// ErrRemote matches every *RemoteError.
	ErrRemote = errors.New("peer sent ERROR")
	// ErrCanceled: the send was canceled; for an inbound message, by its sender.
	ErrCanceled = errors.New("the send was canceled")
	// ErrAborted: the sender, which was forwarding the message, aborted it in the middle because it did not receive the
	// rest.
	ErrAborted = errors.New("the sender was forwarding the message and never received the rest")
	// ErrNoReport: the peer has not answered a question (E53).
	ErrNoReport = errors.New("it has not answered the question for a report")
	// ErrNoQuestions: the peer does not answer questions, because its version has no E53.
	ErrNoQuestions = errors.New("it runs an older version of zrlmpid, which answers no questions for reports")
	// ErrInvalid is a mistake of the caller: a length or tag that does not fit on the wire, or an ID that is in use.
	ErrInvalid = errors.New("not a send: its length or tag cannot be encoded, or its ID is in use")
)

// Wait describes the progress of a message.
type Wait struct {
	// ID of a send, or Message of an inbound message; the other one is 0.
	ID      ID
	Message Message
	State   State
	// Local is our rank, Remote the peer's.
	Local, Remote uint32
	// Since is the time of Send, or the time at which the message was opened.
	Since Instant
	// Length of the message in bytes, and the number Done that are acknowledged, or received.
	Length, Done int64
	// Retransmissions is the number of packets of the message that we retransmitted.
	Retransmissions int
}

// outbound reports whether the message is ours.
func (w Wait) outbound() bool { return w.State <= Sending }

// describe describes the message as the beginning of a sentence.
func (w Wait) describe(elapsed time.Duration) string {
	s := fmt.Sprintf("message of %d bytes from rank %d to rank %d", w.Length, w.Local, w.Remote)
	what := "acknowledged"
	if !w.outbound() {
		s = fmt.Sprintf("message of %d bytes from rank %d to rank %d", w.Length, w.Remote, w.Local)
		what = "arrived"
	}
	s += fmt.Sprintf(", in %v after %v, %d bytes %s", w.State, elapsed.Round(time.Microsecond), w.Done, what)
	if w.Retransmissions > 0 {
		s += fmt.Sprintf(", %d packets retransmitted", w.Retransmissions)
	}
	return s
}

// TimeoutError reports a message that failed because its peer was silent (E31, E33), or because the transport has no
// way to it.
type TimeoutError struct {
	Wait
	// Elapsed is the time since the message began, and Silent the time in which no packet arrived that advanced it.
	Elapsed, Silent time.Duration
	// Reason why the transport has no way to the peer, or empty if the peer was silent.
	Reason string
}

// Error names message, peer and state, and the possible outcome.
func (e *TimeoutError) Error() string {
	end := "the message may or may not have arrived"
	if !e.outbound() {
		end = "the rest will not arrive"
	}
	if e.Reason != "" {
		return fmt.Sprintf("%s: rank %d cannot be reached: %s; %s", e.describe(e.Elapsed), e.Remote, e.Reason, end)
	}
	return fmt.Sprintf("%s: rank %d has not answered for %v; %s", e.describe(e.Elapsed), e.Remote,
		e.Silent.Round(time.Microsecond), end)
}

// Is reports whether target is ErrTimeout.
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// Timeout implements net.Error's method.
func (e *TimeoutError) Timeout() bool { return true }

// SessionError reports a message that failed because the peer's session ended (E8, E9).
type SessionError struct {
	Wait
	Elapsed time.Duration
	// Closed is set if the peer sent close, Died if its process ended without.
	Closed, Died bool
	// Job is set if the peer is a rank of our job.
	Job bool
}

// Error names message, peer and cause.
func (e *SessionError) Error() string {
	why := "was restarted, or had declared us unreachable"
	switch {
	case e.Closed && e.Job:
		why = "has called MPI_Finalize and exchanges no more messages"
	case e.Closed:
		why = "shut down"
	case e.Died:
		why = "is gone: its process exited"
	}
	return fmt.Sprintf("%s: rank %d %s", e.describe(e.Elapsed), e.Remote, why)
}

// Is reports whether target is ErrSession.
func (e *SessionError) Is(target error) bool { return target == ErrSession }

// RemoteError reports a message that the peer refused as too long (E17).
type RemoteError struct {
	Wait
	Elapsed time.Duration
}

// Error names message and peer, and the remedy.
func (e *RemoteError) Error() string {
	return fmt.Sprintf("%s: rank %d rejected it because it exceeds the rank's limits; send less, or raise the "+
		"limit there",
		e.describe(e.Elapsed), e.Remote)
}

// Is reports whether target is ErrRemote.
func (e *RemoteError) Is(target error) bool { return target == ErrRemote }
