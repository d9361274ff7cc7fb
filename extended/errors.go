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
	// ErrCanceled is the error of a send that was canceled, and of an inbound message that the peer canceled.
	ErrCanceled = errors.New("the send was canceled")
	// ErrAborted is the error of a message that its sender was forwarding. The sender never received the rest of the
	// payload, and therefore ended the message.
	ErrAborted = errors.New("the sender was forwarding the message and never received the rest")
	// ErrNoReport is returned when the peer did not answer a request for a report (E53).
	ErrNoReport = errors.New("it has not answered the question for a report")
	// ErrNoQuestions is returned when the peer runs an older version, which does not answer requests for a report
	// (E53).
	ErrNoQuestions = errors.New("it runs an older version of zrlmpid, which answers no questions for reports")
	// ErrInvalid is returned when the caller makes a mistake: it passes a length or tag that cannot be encoded on the
	// wire, or an ID that is in use.
	ErrInvalid = errors.New("not a send: its length or tag cannot be encoded, or its ID is in use")
)

// Wait describes the progress of a message.
type Wait struct {
	// ID identifies an outbound message, and Message an inbound one. The field that does not apply is 0.
	ID      ID
	Message Message
	State   State
	// Local is our rank, Remote the peer's.
	Local, Remote uint32
	// Since is the time at which the message began: when Send was called or, for an inbound message, when Open was
	// reported.
	Since Instant
	// Length is the length of the message in bytes. BytesDone is the number of bytes acknowledged by the peer, or
	// received from it.
	Length, BytesDone int64
	// Retransmissions is the number of packets of the message that we retransmitted.
	Retransmissions int
}

// outbound reports whether the message is sent to the peer.
func (w Wait) outbound() bool { return w.State <= Sending }

// describe returns the first part of an error text, which describes the message, its state and its progress.
func (w Wait) describe(elapsed time.Duration) string {
	s := fmt.Sprintf("message of %d bytes from rank %d to rank %d", w.Length, w.Local, w.Remote)
	what := "acknowledged"
	if !w.outbound() {
		s = fmt.Sprintf("message of %d bytes from rank %d to rank %d", w.Length, w.Remote, w.Local)
		what = "arrived"
	}
	s += fmt.Sprintf(", in %v after %v, %d bytes %s", w.State, elapsed.Round(time.Microsecond), w.BytesDone, what)
	if w.Retransmissions > 0 {
		s += fmt.Sprintf(", %d packets retransmitted", w.Retransmissions)
	}
	return s
}

// TimeoutError reports a message that failed because the peer did not answer (E31, E33), or because the transport
// cannot reach it.
type TimeoutError struct {
	Wait
	// Elapsed is the time that has passed since the field Since, and Silent the time since the peer's last answer.
	Elapsed, Silent time.Duration
	// Reason explains why the transport cannot reach the peer; it is "" if the peer did not answer.
	Reason string
}

// Error describes the message, its state and the cause, and whether the message may have been received.
func (e *TimeoutError) Error() string {
	end := "the message may or may not have been received"
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

// Timeout returns true, as package net defines it for timeouts.
func (e *TimeoutError) Timeout() bool { return true }

// SessionError reports a message that failed because the peer's session ended (E8, E9).
type SessionError struct {
	Wait
	Elapsed time.Duration
	// Closed is set if the peer sent close, and Died if its process ended without sending close.
	Closed, Died bool
	// Job is set if the peer is a rank of our job.
	Job bool
}

// Error describes the message and the cause.
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

// Error describes the message, the cause and the remedy.
func (e *RemoteError) Error() string {
	return fmt.Sprintf("%s: rank %d rejected it because it exceeds the rank's limits; send less, or raise the "+
		"limit there",
		e.describe(e.Elapsed), e.Remote)
}

// Is reports whether target is ErrRemote.
func (e *RemoteError) Is(target error) bool { return target == ErrRemote }
