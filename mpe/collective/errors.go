package collective

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// ErrMismatch is returned when another rank has made a different call, so that the length of its message, or its
// description in the shared buffers, does not fit this rank's call.
var ErrMismatch = errors.New("not all ranks have made the same call")

// ErrCallFailed is returned when the collective call cannot complete on this rank because another rank abandoned it.
var ErrCallFailed = errors.New("another rank has abandoned the call")

// CallFailedError is the error of a collective call that another rank abandoned.
type CallFailedError struct {
	// Rank is the world rank that abandoned the call.
	Rank int
	// Collective, Comm and Number identify the abandoned call.
	Collective coll.Collective
	Comm       uint32
	Number     int
	// Cause is the reason why the other rank abandoned the call.
	Cause FailureCause
}

func (e *CallFailedError) Error() string {
	return fmt.Sprintf("rank %d has abandoned %v, call %d in communicator %d: %v", e.Rank, e.Collective, e.Number,
		e.Comm, e.Cause)
}

// Is reports whether target is ErrCallFailed.
func (e *CallFailedError) Is(target error) bool { return target == ErrCallFailed }

// StepError is the error of a collective call that failed in one of its steps. Err is the error of the step's
// operation, for instance a *WaitError if the caller's context was done.
type StepError struct {
	Collective coll.Collective
	// Algorithm is the name of the algorithm. It is empty in the first call in a communicator if not all members have
	// begun that call.
	Algorithm string
	// Number is the number of the step, counted from 1. Kind is the kind of the step.
	Number int
	Kind   coll.Kind
	// Peer is the world rank with which the step communicates, or −1 if it involves no other rank.
	Peer int
	// Bytes is the length of the step's message or operands.
	Bytes int
	// Others lists the world ranks, other than Peer, with which the call had messages in flight. If Algorithm is empty,
	// it lists the members from which this rank never received a packet.
	Others []int
	Err    error
}

func (e *StepError) Error() string {
	if e.Algorithm == "" {
		text := fmt.Sprintf("%v, which not all ranks have begun: %v", e.Collective, e.Err)
		if len(e.Others) > 0 {
			text += "; no packet was ever received from " + describeRanks(e.Others)
		}
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v by %s, step %d, %v of %d bytes", e.Collective, e.Algorithm, e.Number, e.Kind, e.Bytes)
	switch {
	case e.Peer < 0:
	case e.Kind == coll.StepSend:
		fmt.Fprintf(&b, " to rank %d", e.Peer)
	default:
		fmt.Fprintf(&b, " from rank %d", e.Peer)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if len(e.Others) > 0 {
		fmt.Fprintf(&b, "; messages with %s were also in flight", describeRanks(e.Others))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// AwaitError is the error of a call whose caller's context was done while the call waited for another rank's data in
// shared buffers.
type AwaitError struct {
	// Rank is the world rank for which the call waited.
	Rank int
	// Cause is the context's cause.
	Cause error
}

func (e *AwaitError) Error() string {
	return fmt.Sprintf("it waits for rank %d: %v", e.Rank, e.Cause)
}

// Unwrap returns the cause.
func (e *AwaitError) Unwrap() error { return e.Cause }

// describeRanks lists up to eight ranks as text, followed by the number of further ranks.
func describeRanks(list []int) string {
	const most = 8
	s := "rank "
	if len(list) > 1 {
		s = "ranks "
	}
	for i, r := range list {
		if i == most {
			return s + fmt.Sprintf(" and %d more", len(list)-most)
		}
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprint(r)
	}
	return s
}

// FailureCause is the reason why a rank abandoned a collective call.
type FailureCause uint8

// Causes of failed calls. Their numbers are part of the wire format (E51).
const (
	// CauseOther stands for any other error. Only the rank that failed knows the details.
	CauseOther FailureCause = iota
	// CauseTimeout means that the caller's deadline expired.
	CauseTimeout
	// CauseCancelled means that the caller or its program abandoned the call.
	CauseCancelled
	// CauseMismatch means that another rank made a different call.
	CauseMismatch
	// CauseTruncated means that a message was longer than the call requires.
	CauseTruncated
	// CausePeerLost means that the rank considers another rank lost.
	CausePeerLost
	// CauseClosing means that the rank is shutting down.
	CauseClosing
	// CauseArgument means that the rank rejected the call because of an invalid argument. The causes from here to
	// CauseRoot specify which argument.
	CauseArgument
	CauseBuffer
	CauseCount
	CauseDatatype
	CauseOperation
	CauseRoot
	// CauseRefused means that the rank rejected the call for another reason.
	CauseRefused
	numCauses
)

// refused reports whether the cause means that the rank rejected the call without making it.
func (c FailureCause) refused() bool { return c >= CauseArgument && c < numCauses }

var causeTexts = [numCauses]string{
	"it has failed there", "its deadline expired", "it was cancelled", "not all ranks have made the same call",
	"a message was longer than the call says", "another rank was lost", "the rank shuts down",
	"an argument is wrong there", "the buffer is wrong there", "the count is wrong there",
	"the datatype is wrong there",
	"the operation is wrong there", "the root is wrong there", "it rejected the call",
}

// String describes the cause in a few words.
func (c FailureCause) String() string {
	if c >= numCauses {
		c = CauseOther
	}
	return causeTexts[c]
}
