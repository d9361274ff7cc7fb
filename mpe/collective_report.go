package mpe

import (
	"fmt"
	"sort"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// CollectiveCount counts the calls of a collective that were carried out by an algorithm.
type CollectiveCount struct {
	Collective string `json:"collective"`
	Algorithm  string `json:"algorithm"`
	// Calls counts those that have begun, and Failures those of them that have failed.
	Calls    uint64 `json:"calls"`
	Failures uint64 `json:"failures,omitempty"`
	// Bytes is the sum of their Call.Bytes.
	Bytes uint64 `json:"bytes"`
}

// CallSnapshot is a collective call that is under way.
type CallSnapshot struct {
	Collective string `json:"collective"`
	// Algorithm is empty until the members have agreed how to choose one.
	Algorithm string  `json:"algorithm,omitempty"`
	Comm      uint32  `json:"comm"`
	Number    int     `json:"number"`
	Seconds   float64 `json:"seconds"`
	// WaitsFor are the ranks of the world with which messages are under way.
	WaitsFor []int  `json:"waits_for,omitempty"`
	Text     string `json:"text"`
}

// counted is the count of a call's algorithm.
func (e *core) counted(x *collectiveOp) *CollectiveCount {
	n := e.collectives[x.algorithm]
	if n == nil {
		n = &CollectiveCount{Collective: x.Call.Collective.String(), Algorithm: x.algorithm.Name}
		if e.collectives == nil {
			e.collectives = map[*coll.Algorithm]*CollectiveCount{}
		}
		e.collectives[x.algorithm] = n
	}
	return n
}

// collectiveCounts gives the counts in the order of their names.
func (e *core) collectiveCounts() []CollectiveCount {
	counts := make([]CollectiveCount, 0, len(e.collectives))
	for _, n := range e.collectives {
		counts = append(counts, *n)
	}
	sort.Slice(counts, func(i, j int) bool {
		a, b := &counts[i], &counts[j]
		return a.Collective < b.Collective || a.Collective == b.Collective && a.Algorithm < b.Algorithm
	})
	return counts
}

// calls describes the calls under way, but for those by which members agree.
func (e *core) calls(now handshake.Instant) (list []CallSnapshot) {
	for _, x := range e.collectiveOps {
		s := CallSnapshot{
			Collective: x.Call.Collective.String(), Comm: x.Comm, Number: x.Tag, Seconds: (now - x.r.posted).Seconds(),
		}
		of := x
		if x.begun {
			s.Algorithm = x.algorithm.Name
		} else {
			of = e.agreeing(x)
		}
		if of != nil {
			s.WaitsFor = of.partners()
		}
		s.Text = x.describe(&s, now-x.r.posted)
		list = append(list, s)
	}
	return list
}

// ofCall says, to end a sentence with, which collective call a message is of; nothing
// if it is of none.
func (r *Request) ofCall() string {
	if r == nil || r.call == nil || r.call.algorithm == nil {
		return ""
	}
	x := r.call
	if x.r == nil {
		return ", to agree how the algorithms of collective calls are chosen"
	}
	return fmt.Sprintf(", in %v by %s", x.Call.Collective, x.algorithm.Name)
}

// partners are the ranks of the world with which messages are under way.
func (x *collectiveOp) partners() (ranks []int) {
	seen := map[int]bool{}
	for _, r := range x.under {
		if r.peer >= 0 && !seen[r.peer] {
			seen[r.peer] = true
			ranks = append(ranks, r.peer)
		}
	}
	sort.Ints(ranks)
	return ranks
}

func (x *collectiveOp) describe(s *CallSnapshot, since handshake.Instant) string {
	how := "by " + s.Algorithm
	if !x.begun {
		how = "whose ranks have not agreed yet how to choose its algorithm"
	}
	text := fmt.Sprintf("%s %s, begun %v ago", s.Collective, how, handshake.Round(since))
	switch {
	case len(s.WaitsFor) > 0:
		return text + ", waits for " + describeRanks(s.WaitsFor)
	case x.computing > 0:
		return text + ", computes a user's operation"
	}
	return text
}
