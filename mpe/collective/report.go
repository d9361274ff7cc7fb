package collective

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// CallCount counts the calls of a collective that used an algorithm.
type CallCount struct {
	Collective string `json:"collective"`
	Algorithm  string `json:"algorithm"`
	// Calls is the number of calls begun. Failures is the number of these calls that failed.
	Calls    uint64 `json:"calls"`
	Failures uint64 `json:"failures,omitempty"`
	// Bytes is the sum of Call.Bytes.
	Bytes uint64 `json:"bytes"`
}

// Snapshot describes a collective call in progress.
type Snapshot struct {
	Collective string `json:"collective"`
	// Algorithm is empty until the members have agreed how to choose one.
	Algorithm string  `json:"algorithm,omitempty"`
	Comm      uint32  `json:"comm"`
	Number    int     `json:"number"`
	Seconds   float64 `json:"age_seconds"`
	// Root is the root as a rank of the world, or nil for a collective without a root. Bytes is Call.Bytes, or -1
	// for a v-form, in which the members may have different values.
	Root  *int `json:"root,omitempty"`
	Bytes int  `json:"bytes"`
	// Members lists the members as ranks of the world, in the order of their ranks in the communicator; nil means
	// all ranks of the world in order.
	Members []int `json:"members,omitempty"`
	// WaitsFor lists the ranks of the world with which the call has messages in flight, or the rank for which it
	// waits.
	WaitsFor []int `json:"waits_for,omitempty"`
	// Text is set by Describe.
	Text string `json:"text"`

	// since is the time since the call was posted. silent lists the members from which nothing was ever received.
	// computing is set while a user's function runs.
	since     time.Duration
	silent    []int
	computing bool
}

// countFor returns the CallCount of a call's algorithm.
func (e *Executor) countFor(x *Execution) *CallCount {
	n := e.counts[x.algorithm]
	if n == nil {
		n = &CallCount{Collective: x.Call.Collective.String(), Algorithm: x.algorithm.Name}
		e.counts[x.algorithm] = n
	}
	return n
}

// Counts returns the number of calls by algorithm, sorted by name.
func (e *Executor) Counts() []CallCount {
	counts := make([]CallCount, 0, len(e.counts))
	for _, n := range e.counts {
		counts = append(counts, *n)
	}
	slices.SortFunc(counts, func(a, b CallCount) int {
		return cmp.Or(cmp.Compare(a.Collective, b.Collective), cmp.Compare(a.Algorithm, b.Algorithm))
	})
	return counts
}

// Disagreements returns the number of communicators whose members had different configurations for collectives.
func (e *Executor) Disagreements() uint64 { return e.disagreements }

// Calls describes the calls in progress.
func (e *Executor) Calls() (list []Snapshot) {
	for _, exec := range e.calls {
		since := e.engine.Now() - exec.posted
		snapshot := Snapshot{
			Collective: exec.Call.Collective.String(), Comm: exec.Comm, Number: exec.Tag, Seconds: since.Seconds(),
			Root: exec.root(), Bytes: exec.bytes(),
		}
		if len(exec.Members) < len(e.ranks) {
			snapshot.Members = slices.Clone(exec.Members)
		}
		of := exec
		if exec.started {
			snapshot.Algorithm = exec.algorithm.Name
		} else {
			of = e.agreeing(exec)
		}
		if of != nil {
			snapshot.WaitsFor = of.awaitedRanks()
		}
		if !exec.started && len(snapshot.WaitsFor) > 0 {
			snapshot.silent = exec.silentMembers()
		}
		snapshot.since, snapshot.computing = since, exec.computing > 0
		list = append(list, snapshot)
	}
	return list
}

// root returns the root as a rank of the world, or nil if the collective has none.
func (x *Execution) root() *int {
	if !x.Call.Collective.Rooted() {
		return nil
	}
	return new(x.Members[x.Call.Root])
}

func (x *Execution) bytes() int {
	if x.Call.Vector {
		return -1
	}
	return x.Call.Bytes
}

// EndedCall describes a call that ended. Its fields are as in Snapshot.
type EndedCall struct {
	Collective string `json:"collective"`
	Comm       uint32 `json:"comm"`
	Number     int    `json:"number"`
	Root       *int   `json:"root,omitempty"`
	Bytes      int    `json:"bytes"`
	Failed     bool   `json:"failed,omitempty"`
}

// endedCall is a compact form of EndedCall that can be recorded without an allocation.
type endedCall struct {
	collective    coll.Collective
	failed        bool
	comm          uint32
	number, bytes int
	root          int32
}

// maxRecentCalls is the number of ended calls that are kept.
const maxRecentCalls = 8

// recordEnd records a call that ends.
func (e *Executor) recordEnd(x *Execution, err error) {
	c := endedCall{collective: x.Call.Collective, failed: err != nil, comm: x.Comm, number: x.Tag, bytes: x.bytes()}
	if c.collective.Rooted() {
		c.root = int32(x.Members[x.Call.Root])
	}
	e.recentCalls[e.endedCount%maxRecentCalls] = c
	e.endedCount++
}

// EndedCalls returns the calls that ended last, oldest first.
func (e *Executor) EndedCalls() (list []EndedCall) {
	for i := e.endedCount - min(e.endedCount, maxRecentCalls); i < e.endedCount; i++ {
		c := &e.recentCalls[i%maxRecentCalls]
		s := EndedCall{Collective: c.collective.String(), Comm: c.comm, Number: c.number, Bytes: c.bytes, Failed: c.failed}
		if c.collective.Rooted() {
			s.Root = new(int(c.root))
		}
		list = append(list, s)
	}
	return list
}

// silentMembers returns the members from which nothing was ever received. Without this list, only a member that itself
// waits for one of them could name it.
func (x *Execution) silentMembers() (ranks []int) {
	for _, rank := range x.Members {
		if !x.executor.engine.HasAnswered(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Origin is the call to which a message, or a wait on shared buffers, belongs.
type Origin struct {
	// Collective and Number identify the call; Algorithm is empty for an agreement.
	Collective, Algorithm string
	Number                int
	Comm                  uint32
	// Agreement means that the call is the agreement of a communicator's members before their first call.
	// Collective is then that first call, or "" if this rank's program has not made it yet.
	Agreement bool
}

// Origin returns the call that the message belongs to.
func (m *Message) Origin() Origin {
	x := m.x
	if x.Request != nil {
		return x.origin()
	}
	o := Origin{Comm: m.Call.Comm, Agreement: true}
	if first := x.executor.oldestWaiter(x); first != nil {
		o.Collective = first.Call.Collective.String()
	}
	return o
}

func (x *Execution) origin() Origin {
	return Origin{Collective: x.Call.Collective.String(), Algorithm: x.algorithm.Name, Number: x.Tag, Comm: x.Comm}
}

// MessageSuffix describes the message's call, to follow the word "message".
func (o *Origin) MessageSuffix() string {
	if o.Agreement {
		return fmt.Sprintf(" with which it begins %s in communicator %d", o.firstCall(), o.Comm)
	}
	return fmt.Sprintf(" of call %d in communicator %d", o.Number, o.Comm)
}

// CallSuffix describes the message's call, to end a sentence.
func (o *Origin) CallSuffix() string {
	if o.Agreement {
		return ", in " + o.firstCall()
	}
	return fmt.Sprintf(", in %s by %s", o.Collective, o.Algorithm)
}

// AwaitSuffix describes the call that waits on shared buffers, to end a sentence.
func (o *Origin) AwaitSuffix() string {
	return fmt.Sprintf(" in %s by %s, call %d in communicator %d", o.Collective, o.Algorithm, o.Number, o.Comm)
}

// firstCall names the first call of a communicator. A rank knows only its own program's call.
func (o *Origin) firstCall() string { return cmp.Or(o.Collective, "its first collective call") }

// oldestWaiter returns the oldest call that waits for agreement x, or nil.
func (e *Executor) oldestWaiter(x *Execution) *Execution {
	if a := e.agreements[x.Comm]; a != nil && a.call == x && len(a.waiting) > 0 {
		return a.waiting[0]
	}
	return nil
}

// awaitedRanks returns the ranks of the world with which the call has messages in flight, or for which it waits.
func (x *Execution) awaitedRanks() (ranks []int) {
	for _, m := range x.inFlight {
		ranks = append(ranks, m.Peer)
	}
	if rank, _, waits := x.awaitedRank(); waits {
		ranks = append(ranks, rank)
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// awaitedRank returns the rank of the world for which a call on shared buffers waits, and the start of the wait.
func (x *Execution) awaitedRank() (rank int, since handshake.Instant, waits bool) {
	if x.sharedCall == nil || !x.started || x.sharedCall.await.rank < 0 {
		return -1, 0, false
	}
	return x.sharedCall.members[x.sharedCall.await.rank], x.sharedCall.await.since, true
}

// EachAwait calls yield for each call on shared buffers that waits for a rank, with the rank, the start of the wait
// and the call.
func (e *Executor) EachAwait(yield func(rank int, since handshake.Instant, of Origin)) {
	for _, x := range e.calls {
		if rank, since, waits := x.awaitedRank(); waits {
			yield(rank, since, x.origin())
		}
	}
}

func (s *Snapshot) Describe() {
	how := "by " + s.Algorithm
	if s.Algorithm == "" {
		how = "that not all ranks have begun"
	}
	s.Text = fmt.Sprintf("%s %s, begun %v ago", s.Collective, how, handshake.Round(s.since))
	switch {
	case len(s.silent) > 0:
		s.Text += ", waits for " + describeRanks(s.WaitsFor) + "; no packet has ever come from " +
			describeRanks(s.silent)
	case len(s.WaitsFor) > 0:
		s.Text += ", waits for " + describeRanks(s.WaitsFor)
	case s.computing:
		s.Text += ", computes a user's operation"
	}
}
