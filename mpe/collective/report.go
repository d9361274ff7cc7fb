package collective

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// CallCount counts the calls of one collective that were executed by one algorithm.
type CallCount struct {
	Collective string `json:"collective"`
	Algorithm  string `json:"algorithm"`
	// Calls is the number of calls begun, and Failures the number of these calls that failed.
	Calls    uint64 `json:"calls"`
	Failures uint64 `json:"failures,omitempty"`
	// Bytes is the sum of Call.Bytes.
	Bytes uint64 `json:"bytes"`
}

// Snapshot describes a collective call in progress.
type Snapshot struct {
	Collective string `json:"collective"`
	// Algorithm is the name of the algorithm. It is empty until the members have agreed how to choose one.
	Algorithm string  `json:"algorithm,omitempty"`
	Comm      uint32  `json:"comm"`
	Number    int     `json:"number"`
	Seconds   float64 `json:"age_seconds"`
	// Root is the world rank of the root, or nil for a collective without a root. Bytes is Call.Bytes, or -1 for a
	// variant, such as Gatherv, whose length may differ between members.
	Root  *int `json:"root,omitempty"`
	Bytes int  `json:"bytes"`
	// Members lists the world ranks of the members, in the order of their ranks in the communicator; nil means all
	// ranks of the world.
	Members []int `json:"members,omitempty"`
	// WaitsFor lists the world ranks with which the call has messages in flight, or the one rank for which it waits in
	// shared buffers.
	WaitsFor []int `json:"waits_for,omitempty"`
	// Text is set by Describe.
	Text string `json:"text"`

	// since is the time that has passed since the call was posted. silent lists the members from which this rank never
	// received a packet. computing is set while a user function is running.
	since     time.Duration
	silent    []int
	computing bool
}

// countFor returns the CallCount in which a call with this algorithm is counted.
func (e *Executor) countFor(x *Execution) *CallCount {
	n := e.counts[x.algorithm]
	if n == nil {
		n = &CallCount{Collective: x.Call.Collective.String(), Algorithm: x.algorithm.Name}
		e.counts[x.algorithm] = n
	}
	return n
}

// Counts returns the counts for each collective and algorithm, sorted by name.
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

// Disagreements returns the number of communicators whose members were configured to choose different algorithms.
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

// root returns the world rank of the root, or nil for a collective without a root.
func (x *Execution) root() *int {
	if !x.Call.Collective.Rooted() {
		return nil
	}
	return new(x.Members[x.Call.Root])
}

// bytes returns Call.Bytes if all members have the same value, and otherwise −1.
func (x *Execution) bytes() int {
	if x.Call.Vector {
		return -1
	}
	return x.Call.Bytes
}

// EndedCall describes a completed or failed call, with fields as in Snapshot.
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

// maxRecentCalls is the number of ended calls of which the Executor keeps a record.
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

// silentMembers returns the members from which this rank never received a packet. They may be the cause of a wait even
// if this rank waits for another member, because that member may be waiting for them.
func (x *Execution) silentMembers() (ranks []int) {
	for _, rank := range x.Members {
		if !x.executor.engine.HasAnswered(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Origin identifies the call to which a message, or a wait in shared buffers, belongs.
type Origin struct {
	// Collective and Number identify the call; Algorithm is empty for an agreement.
	Collective, Algorithm string
	Number                int
	Comm                  uint32
	// Agreement means that the members are still agreeing before their first call in the communicator. Collective is
	// then that first call, or "" if this rank's program has not made it yet.
	Agreement bool
}

// Origin returns the call to which the message belongs.
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

// MessageSuffix describes the call to which a message belongs, in words to be put after "message".
func (o *Origin) MessageSuffix() string {
	if o.Agreement {
		return fmt.Sprintf(" with which it begins %s in communicator %d", o.firstCall(), o.Comm)
	}
	return fmt.Sprintf(" of call %d in communicator %d", o.Number, o.Comm)
}

// CallSuffix describes the call to which a message belongs, in words to be put at the end of a sentence.
func (o *Origin) CallSuffix() string {
	if o.Agreement {
		return ", in " + o.firstCall()
	}
	return fmt.Sprintf(", in %s by %s", o.Collective, o.Algorithm)
}

// AwaitSuffix describes a call that waits in shared buffers, in words to be put at the end of a sentence.
func (o *Origin) AwaitSuffix() string {
	return fmt.Sprintf(" in %s by %s, call %d in communicator %d", o.Collective, o.Algorithm, o.Number, o.Comm)
}

// firstCall names the first call in a communicator, or describes it if this rank's program has not made it yet.
func (o *Origin) firstCall() string { return cmp.Or(o.Collective, "its first collective call") }

// oldestWaiter returns the oldest call that waits for agreement x, or nil.
func (e *Executor) oldestWaiter(x *Execution) *Execution {
	if a := e.agreements[x.Comm]; a != nil && a.call == x && len(a.waiting) > 0 {
		return a.waiting[0]
	}
	return nil
}

// awaitedRanks returns the world ranks with which the call has messages in flight, or the one for which it waits in
// shared buffers.
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

// awaitedRank returns the world rank for which the call waits in shared buffers, if any, and the start of the wait.
func (x *Execution) awaitedRank() (rank int, since handshake.Instant, waits bool) {
	if x.sharedCall == nil || !x.started || x.sharedCall.await.rank < 0 {
		return -1, 0, false
	}
	return x.sharedCall.members[x.sharedCall.await.rank], x.sharedCall.await.since, true
}

// EachAwait calls yield for each call that waits for a rank in shared buffers. It passes the world rank, the start of
// the wait and the call.
func (e *Executor) EachAwait(yield func(rank int, since handshake.Instant, of Origin)) {
	for _, x := range e.calls {
		if rank, since, waits := x.awaitedRank(); waits {
			yield(rank, since, x.origin())
		}
	}
}

// Describe sets Text, which takes longer than taking the snapshot. It needs no lock.
func (s *Snapshot) Describe() {
	how := "by " + s.Algorithm
	if s.Algorithm == "" {
		how = "that not all ranks have begun"
	}
	s.Text = fmt.Sprintf("%s %s, begun %v ago", s.Collective, how, handshake.Round(s.since))
	switch {
	case len(s.silent) > 0:
		s.Text += ", waits for " + describeRanks(s.WaitsFor) + "; no packet was ever received from " +
			describeRanks(s.silent)
	case len(s.WaitsFor) > 0:
		s.Text += ", waits for " + describeRanks(s.WaitsFor)
	case s.computing:
		s.Text += ", computes a user's operation"
	}
}
