package extended

import (
	"errors"
	"fmt"
	"time"
)

// Errors that a caller may test for with errors.Is.
var (
	// ErrTimeout matches every *TimeoutError.
	ErrTimeout = errors.New("deadline exceeded")
	// ErrSession matches every *SessionError.
	ErrSession = errors.New("the peer's session has ended")
	// ErrRemote matches every *RemoteError.
	ErrRemote = errors.New("peer sent ERROR")
	// ErrCanceled: the send was canceled; of an inbound message, by its
	// sender.
	ErrCanceled = errors.New("the send was canceled")
	// ErrAborted: the message was aborted in the middle by its sender, which was
	// forwarding it and did not get the rest.
	ErrAborted = errors.New("the rest of the message never came to its sender, which was forwarding it")
	// ErrNoReport: the peer has not answered a question (E53).
	ErrNoReport = errors.New("it has not answered the question for a report")
	// ErrNoQuestions: the peer answers no questions, as versions without E53 do not.
	ErrNoQuestions = errors.New("it runs an older version of zrlmpid, which answers no questions for reports")
	// ErrInvalid: the caller's mistake: a length or tag that the wire has no
	// room for, or an ID that is in use.
	ErrInvalid = errors.New("not a send: its length or tag does not fit the wire, or its ID is in use")
)

// Wait says how far a message has come.
type Wait struct {
	// ID is the send's, Message that of an inbound message; the other is 0.
	ID      ID
	Message Message
	State   State
	// Local is our rank, Remote the peer's.
	Local, Remote uint32
	// Since is when Send was called, or when the message was opened.
	Since Instant
	// Length is the message's, in bytes, and Done how many of them are
	// acknowledged, or have arrived.
	Length, Done int64
	// Retransmissions counts packets of the message that we retransmitted.
	Retransmissions int
}

// outbound reports whether the message is ours.
func (w Wait) outbound() bool { return w.State <= Sending }

// describe puts the message into words, to begin a sentence with.
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

// TimeoutError is a message that ended because its peer was silent (E31, E33), or the transport has no way to it.
type TimeoutError struct {
	Wait
	// Elapsed is how long the message had been under way, and Silent how long
	// no packet arrived that advanced it.
	Elapsed, Silent time.Duration
	// Reason why the transport has no way to the peer; empty if the peer was silent.
	Reason string
}

// Error names message, peer and state, and says what may have happened.
func (e *TimeoutError) Error() string {
	end := "the message may or may not have arrived"
	if !e.outbound() {
		end = "its rest will not come"
	}
	if e.Reason != "" {
		return fmt.Sprintf("%s: rank %d cannot be reached: %s; %s", e.describe(e.Elapsed), e.Remote, e.Reason, end)
	}
	return fmt.Sprintf("%s: rank %d has not answered for %v; %s", e.describe(e.Elapsed), e.Remote,
		e.Silent.Round(time.Microsecond), end)
}

// Is makes errors.Is(err, ErrTimeout) true.
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// Timeout makes the error a net.Error's idea of a time-out.
func (e *TimeoutError) Timeout() bool { return true }

// SessionError is a message that ended because the peer's session did (E8, E9).
type SessionError struct {
	Wait
	Elapsed time.Duration
	// Closed is true if the peer said so itself, Died if its process has ended without.
	Closed, Died bool
	// Job is true if the peer is a rank of our job.
	Job bool
}

// Error names message, peer and cause.
func (e *SessionError) Error() string {
	why := "was restarted, or had declared us unreachable"
	switch {
	case e.Closed && e.Job:
		why = "has called MPI_Finalize, and receives and sends nothing more"
	case e.Closed:
		why = "shut down"
	case e.Died:
		why = "is gone, its process has ended"
	}
	return fmt.Sprintf("%s: rank %d %s", e.describe(e.Elapsed), e.Remote, why)
}

// Is makes errors.Is(err, ErrSession) true.
func (e *SessionError) Is(target error) bool { return target == ErrSession }

// RemoteError is a message that the peer refused as too long (E17).
type RemoteError struct {
	Wait
	Elapsed time.Duration
}

// Error names message and peer, and says what to do.
func (e *RemoteError) Error() string {
	return fmt.Sprintf("%s: rank %d refuses it as longer than its limits allow; send less, or raise the limit there",
		e.describe(e.Elapsed), e.Remote)
}

// Is makes errors.Is(err, ErrRemote) true.
func (e *RemoteError) Is(target error) bool { return target == ErrRemote }
