package collective

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// ErrMismatch: a message of a collective call is not as long as the call says, so its
// sender has made another one.
var ErrMismatch = errors.New("not all ranks have made the same call")

// ErrCallFailed: another rank has abandoned the collective call, so that it cannot complete
// here.
var ErrCallFailed = errors.New("another rank has abandoned the call")

// CallFailedError is a collective call that has failed because it did on another rank.
type CallFailedError struct {
	// Rank is that rank, of the world.
	Rank int
	// Collective is what that rank has called, as number Number of communicator Comm.
	Collective coll.Collective
	Comm       uint32
	Number     int
	// Cause is why it has abandoned the call.
	Cause FailureCause
}

// Error returns which rank has abandoned which call, and why.
func (e *CallFailedError) Error() string {
	return fmt.Sprintf("rank %d has abandoned %v, call %d in communicator %d: %v", e.Rank, e.Collective, e.Number, e.Comm, e.Cause)
}

// Is makes errors.Is(err, ErrCallFailed) true.
func (e *CallFailedError) Is(target error) bool { return target == ErrCallFailed }

// StepError is a step of a collective call that has failed, and the whole call with it.
// Its cause is what the operation's error was: the *WaitError of one that the caller's
// context has ended, for instance.
type StepError struct {
	Collective coll.Collective
	// Algorithm is empty for the first call of a communicator that not all members have begun.
	Algorithm string
	// Number is the step's, from 1, and Kind what it was to do.
	Number int
	Kind   coll.Kind
	// Peer is the other rank, of the world, or −1 if the step has none.
	Peer int
	// Bytes is the length of the step's message, or of what it combines.
	Bytes int
	// Others are the ranks of the world with which other messages were under way, or for the first
	// call of a communicator those from which nothing has ever come.
	Others []int
	Err    error
}

// Error says which step of what has failed, with whom, and why.
func (e *StepError) Error() string {
	if e.Algorithm == "" {
		text := fmt.Sprintf("%v, which not all ranks have begun: %v", e.Collective, e.Err)
		if len(e.Others) > 0 {
			text += "; nothing has ever come from " + describeRanks(e.Others)
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
		fmt.Fprintf(&b, "; messages were under way with %s, too", describeRanks(e.Others))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// AwaitError is the wait of a call by shared buffers that its caller's context has ended.
type AwaitError struct {
	// Rank is the rank of the world that has not come so far.
	Rank int
	// Cause is that of the context.
	Cause error
}

// Error says for whom the call waits.
func (e *AwaitError) Error() string {
	return fmt.Sprintf("it waits for rank %d: %v", e.Rank, e.Cause)
}

// Unwrap returns the cause.
func (e *AwaitError) Unwrap() error { return e.Cause }

// describeRanks names some ranks.
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

// FailureCause is why a rank has abandoned a collective call.
type FailureCause uint8

// The causes. Their numbers are those of the wire (E51).
const (
	// CauseOther: see the error on that rank.
	CauseOther FailureCause = iota
	// CauseTimeout: its caller's deadline has passed.
	CauseTimeout
	// CauseCancelled: its caller, or the program, has abandoned it.
	CauseCancelled
	// CauseMismatch: another rank has made another call.
	CauseMismatch
	// CauseTruncated: a message was longer than its call says.
	CauseTruncated
	// CausePeerLost: it has lost another rank.
	CausePeerLost
	// CauseClosing: it shuts down.
	CauseClosing
	// CauseArgument: it has refused the call because of an argument. The others say which.
	CauseArgument
	CauseBuffer
	CauseCount
	CauseDatatype
	CauseOperation
	CauseRoot
	// CauseRefused: it has refused the call for another reason.
	CauseRefused
	numCauses
)

// refused reports whether it has not made the call.
func (c FailureCause) refused() bool { return c >= CauseArgument && c < numCauses }

var causeTexts = [numCauses]string{
	"it has failed there", "its deadline expired", "it was cancelled", "not all ranks have made the same call",
	"a message was longer than the call says", "another rank was lost", "the rank shuts down",
	"an argument is wrong there", "the buffer is wrong there", "the count is wrong there", "the datatype is wrong there",
	"the operation is wrong there", "the root is wrong there", "it refuses the call",
}

// String says it in a few words.
func (c FailureCause) String() string {
	if c >= numCauses {
		c = CauseOther
	}
	return causeTexts[c]
}
