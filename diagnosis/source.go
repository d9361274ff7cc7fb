package diagnosis

import (
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Source is a daemon, or the ranks of a job on a host, that was asked for its state.
type Source struct {
	// Name says who was asked: the URL of a daemon, "this host's daemon", "job zrlctl_4711".
	Name string
	// Status is nil if there was no answer; then Err says why.
	Status *state.Status
	Err    error
	// Asked are what ranks have answered to its questions over the links to them, and AskErr why it has not asked them.
	// Both nil: it was not asked to.
	Asked  []state.Asked
	AskErr error
	// Age is how old the state may be.
	Age time.Duration
}

// Diagnosis is why ranks wait.
type Diagnosis struct {
	// Findings are the root causes: those that are certain first, then those for which most ranks wait.
	Findings []Finding `json:"findings"`
	// After is the age from which a wait counts.
	After float64 `json:"after_seconds"`
	// Waiting are the ranks that wait, in rank order.
	Waiting []int `json:"waiting"`
	// Unknown are ranks whose state is not known, in rank order: those for which others wait, and those that have not
	// answered a question, or could not be asked one.
	Unknown []Unknown `json:"unknown"`
	// Doubts are why states may be incomplete or wrong, as those that processes of another user answer.
	Doubts []string `json:"doubts,omitempty"`
	// Unanswered are the sources that have not answered.
	Unanswered []Unanswered `json:"unanswered"`
}

// Call is what a rank waits in: Send, Recv, or a collective.
type Call string

// The calls of messages.
const (
	Send Call = "Send"
	Recv Call = "Recv"
)

// Finding is a root cause.
type Finding struct {
	// Cause is the ID of a Cause.
	Cause string `json:"cause"`
	// Certain: the states show it. Otherwise it is what remains when they show nothing else.
	Certain bool `json:"certain"`
	// Rank is the rank at fault, or AnyRank, and Peer the one that waits for it the longest.
	Rank int `json:"rank"`
	Peer int `json:"peer"`
	// Cycle are the ranks of a cycle.
	Cycle []int `json:"cycle,omitempty"`
	// Call is what Peer is in. Tag, Comm and Bytes are those of its operation; Tag is nil for any, and where there is
	// none, and Bytes nil if it is unknown.
	Call  Call   `json:"call"`
	Tag   *int   `json:"tag"`
	Comm  uint32 `json:"comm"`
	Bytes *int64 `json:"bytes"`
	// Missing is the packet that has not come, 0 if the message is held back. Seconds is how long Peer has waited.
	Missing protocol.Type `json:"missing,omitempty"`
	Seconds float64       `json:"age_seconds"`
	// Text is the finding in one sentence: who waits in which call, for which packet, since when, and why.
	Text string `json:"text"`
	// Why is the cause in words, Evidence what shows it, and Step what to do.
	Why      string   `json:"why"`
	Evidence []string `json:"evidence"`
	Step     string   `json:"step"`
	// Possible are all causes that the evidence leaves, the likeliest first, unless the finding is certain.
	Possible []Possibility `json:"possible,omitempty"`
	// Waiting are the ranks that wait because of it, in rank order.
	Waiting []int `json:"waiting"`

	named int // the rank whose wait Text describes
}

// Possibility is a cause that the evidence does not exclude.
type Possibility = infer.Possibility

// Unknown is a rank whose state is not known.
type Unknown struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
	// Reason says why: it is a deployed node, which cannot be asked, has not answered, or is on a host that was not
	// asked.
	Reason string `json:"reason"`
}

// Unanswered is a source that has not answered.
type Unanswered struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}
