package diagnosis

import (
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Source is a daemon, or the ranks of a job on one host, together with its answer to a query of its state.
type Source struct {
	// Name identifies the source: the URL of a daemon, "this host's daemon", or "job zrlctl_4711".
	Name string
	// Status is the state that the source has reported. If the source has not answered, Status is nil, and Err is the
	// reason.
	Status *state.Status
	Err    error
	// Asked holds the answers to the questions that the source sent to other ranks over its links. AskErr is the reason
	// why it could not ask them. Both are nil if it was not instructed to ask.
	Asked  []state.AskResult
	AskErr error
	// Age is the maximum age of the reported state.
	Age time.Duration
}

// Diagnosis explains why ranks wait.
type Diagnosis struct {
	// Findings are the root causes. Certain ones come first, then those for which most ranks wait.
	Findings []Finding `json:"findings"`
	// After is the minimum age of the waits that were considered.
	After float64 `json:"after_seconds"`
	// Waiting lists the ranks that wait, in rank order.
	Waiting []int `json:"waiting"`
	// Unknown lists the ranks whose state is unknown, in rank order: ranks that others wait for, and ranks that did not
	// answer a question or could not be asked.
	Unknown []UnknownRank `json:"unknown"`
	// Doubts lists the reasons why states may be incomplete or wrong, for example because processes of another user
	// have reported them.
	Doubts []string `json:"doubts,omitempty"`
	// Unanswered lists the sources that have not answered.
	Unanswered []Unanswered `json:"unanswered"`
}

// Call is the call in which a rank waits: Send, Recv, or a collective.
type Call string

// The point-to-point calls.
const (
	Send Call = "Send"
	Recv Call = "Recv"
)

// Finding is a root cause.
type Finding struct {
	// Cause is the ID of a Cause.
	Cause string `json:"cause"`
	// Certain is set if the states prove the cause. Otherwise it is the cause that remains because the states prove no
	// other.
	Certain bool `json:"certain"`
	// Rank is the rank at fault, or AnyRank. Peer is the rank that has waited for it the longest.
	Rank int `json:"rank"`
	Peer int `json:"peer"`
	// Cycle lists the ranks of a cycle, each of which waits for the next.
	Cycle []int `json:"cycle,omitempty"`
	// Call is the call in which Peer waits. Tag, Comm and Bytes describe its operation. Tag is nil if any tag matches
	// or if the operation has no tag. Bytes is nil if the length is unknown.
	Call  Call   `json:"call"`
	Tag   *int   `json:"tag"`
	Comm  uint32 `json:"comm"`
	Bytes *int64 `json:"bytes"`
	// Missing is the packet that has not arrived, or 0 if the message is held back. Seconds is the duration of Peer's
	// wait.
	Missing protocol.Type `json:"missing,omitempty"`
	Seconds float64       `json:"age_seconds"`
	// Text is the finding in one sentence: which rank waits, in which call, for which packet, for how long, and why.
	Text string `json:"text"`
	// Why describes the cause, Evidence lists the facts that show it, and Step is the next step for the user.
	Why      string   `json:"why"`
	Evidence []string `json:"evidence"`
	Step     string   `json:"step"`
	// Possible lists all causes that the evidence does not exclude, likeliest first. It is empty if the finding is
	// certain.
	Possible []Possibility `json:"possible,omitempty"`
	// Waiting lists the ranks whose waits the finding explains, in rank order.
	Waiting []int `json:"waiting"`

	named int // the rank whose wait Text describes
}

// Possibility is a cause that the evidence does not exclude.
type Possibility = infer.Possibility

// UnknownRank is a rank whose state is unknown.
type UnknownRank struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
	// Reason explains why: the rank is a deployed node, which cannot be asked; it has not answered; or its host was not
	// asked.
	Reason string `json:"reason"`
}

// Unanswered is a source that has not answered.
type Unanswered struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}
