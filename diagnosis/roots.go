package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/diagnosis/waitgraph"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// MinWaitAge is the minimum age of a wait at which it is shown to people.
const MinWaitAge = time.Second

// Diagnose finds the root causes of all waits in the states of all sources. It ignores waits younger than the parameter
// after.
func Diagnose(sources []Source, after time.Duration) *Diagnosis {
	v := newView(sources, after.Seconds())
	diagnosis := &Diagnosis{Findings: []Finding{}, Waiting: []int{}, Unknown: []UnknownRank{}, Unanswered: []Unanswered{},
		After: after.Seconds()}
	for _, src := range sources {
		if src.Status == nil {
			diagnosis.Unanswered = append(diagnosis.Unanswered, Unanswered{src.Name, src.Err.Error()})
			continue
		}
		diagnosis.Doubts = append(diagnosis.Doubts, src.Status.Warnings()...)
		for i := range src.Status.Ranks {
			if doubt := strangerDoubt(&src.Status.Ranks[i]); doubt != "" {
				diagnosis.Doubts = append(diagnosis.Doubts, doubt)
			}
		}
	}
	r := newRoots(v)
	for _, rank := range slices.Sorted(maps.Keys(v.outEdges)) {
		if !slices.ContainsFunc(v.outEdges[rank], func(e *edge) bool { return v.isOldEnough(e) && !e.isIdle }) {
			continue
		}
		diagnosis.Waiting = append(diagnosis.Waiting, rank)
		r.followWaits(rank)
	}
	for _, key := range r.order {
		diagnosis.Findings = append(diagnosis.Findings, *r.found[key])
	}
	diagnosis.Findings = append(diagnosis.Findings, v.findStoppedJobs()...)
	diagnosis.Findings = append(diagnosis.Findings, v.findBrokenKernels(diagnosis.Findings)...)
	slices.SortStableFunc(diagnosis.Findings, func(a, b Finding) int {
		return cmp.Or(-compareBool(a.Certain, b.Certain), cmp.Compare(len(b.Waiting), len(a.Waiting)),
			cmp.Compare(b.Seconds, a.Seconds))
	})
	for _, rank := range slices.Sorted(maps.Keys(r.unknown)) {
		diagnosis.Unknown = append(diagnosis.Unknown, r.unknown[rank])
	}
	return diagnosis
}

// maxDropAge is the maximum age, in seconds, of a dropped packet at which its sender may still be waiting.
const maxDropAge = 60

// strangerDoubt returns a doubt if a rank has recently dropped packets whose source address is not in its rank map
// although their headers name a rank as the source. Otherwise it returns "".
func strangerDoubt(rank *state.Rank) string {
	drop := rank.Engine.LastDrop
	if drop == nil || drop.Reason != state.DropUnknownAddress || drop.Source == nil || drop.Seconds > maxDropAge {
		return ""
	}
	return fmt.Sprintf("rank %d has dropped packets from %s in the last minute, whose headers name rank %d as "+
		"their source: its rank map does not have "+
		"that address, so what is there gets no answer", rank.Rank, drop.From, *drop.Source)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// ForRank returns a copy of the diagnosis that contains only the findings about a rank: why it waits, and why others
// wait for it.
func (d *Diagnosis) ForRank(rank int) *Diagnosis {
	only := *d
	only.Findings = []Finding{}
	for _, f := range d.Findings {
		if f.Rank == rank || f.Peer == rank || slices.Contains(f.Waiting, rank) {
			only.Findings = append(only.Findings, f)
		}
	}
	return &only
}

// roots collects the root causes.
type roots struct {
	view  *view
	graph waitgraph.Graph // the waits that lead to further waits
	part  map[int]int     // the strongly connected component of each rank
	// found holds the findings, and order their keys in the order of discovery. unknown holds the ranks without a state
	// that lie on the paths, or that may wait unnoticed.
	found   map[rootKey]*Finding
	order   []rootKey
	unknown map[int]UnknownRank
}

// rootKey identifies a root cause. Ranks that wait because of the same one share its finding.
type rootKey struct {
	cause   string
	rank    int
	certain bool
}

// newRoots first explains each wait by the states of its two ranks. The graph contains the waits that this leaves open.
func newRoots(v *view) *roots {
	r := &roots{view: v, graph: waitgraph.Graph{}, found: map[rootKey]*Finding{}, unknown: map[int]UnknownRank{}}
	for _, e := range v.edges {
		if v.isOldEnough(e) && !e.isIdle {
			e.pairFinding = v.explainPair(e)
		}
	}
	for rank := range v.members { // these ranks may wait as well
		if u, ok := v.unknownReason(rank); ok && !v.isDeployed(rank) && (v.askFailures[rank] != "" || v.askErr != nil) {
			r.unknown[rank] = u
		}
	}
	for rank, out := range v.outEdges {
		for _, e := range out {
			if r.continuesPath(e) {
				r.graph[rank] = append(r.graph[rank], e.to)
			}
		}
	}
	r.part = r.graph.Components()
	return r
}

// explainPair returns a finding that explains a wait by the states of its two ranks, or nil if they do not explain it.
func (v *view) explainPair(e *edge) *Finding {
	for i := range Causes {
		cause := &Causes[i]
		if cause.find == nil {
			break
		}
		if p, ok := cause.find(v, e); ok {
			finding := v.certainFinding(e, cause.ID, p)
			if p.alternatives != nil {
				finding.Certain = false
				finding.Possible = append([]Possibility{newPossibility(infer.Cause(cause.ID), finding.Rank, finding.Peer, "%s",
					p.reason)},
					p.alternatives...)
			}
			return finding
		}
	}
	return v.explainTransit(e)
}

// newFinding builds a finding for a wait from the proof of its cause.
func (v *view) newFinding(e *edge, cause string, p proof) *Finding {
	finding := &Finding{
		Cause: cause, Rank: e.to, Peer: e.from, Call: Recv, Missing: e.missing, Seconds: e.seconds,
		Text: v.waitSentence(e) + ": " + p.reason, Why: p.reason, Evidence: p.evidence, Step: p.step, Waiting: []int{},
		named: e.from,
	}
	if e.peer != nil && e.peer.Events != (state.EventCounts{}) {
		finding.Evidence = append(finding.Evidence,
			fmt.Sprintf("of rank %d, rank %d has counted: %v", e.to, e.from, e.peer.Events))
	}
	if finding.Evidence == nil {
		finding.Evidence = []string{}
	}
	if p.rank != nil {
		finding.Rank = *p.rank
		if finding.Rank == e.from {
			finding.Peer = e.to
		}
	}
	switch {
	case e.call != nil:
		finding.Call, finding.Comm, finding.Bytes = Call(e.call.Collective), e.call.Comm, new(int64(e.call.Bytes))
	case e.isSend:
		finding.Call = Send
	}
	if e.wait != nil && e.call == nil {
		finding.Tag, finding.Comm = e.wait.Envelope.Tag, e.wait.Envelope.Comm
		if n := e.wait.Envelope.Bytes; n >= 0 {
			finding.Bytes = &n
		}
	}
	return finding
}

// followWaits follows the waits from a rank to their causes. It records in each cause's finding that the rank waits
// because of it.
func (r *roots) followWaits(start int) {
	seen := map[int]bool{start: true}
	cycles := map[int]int{} // a rank of each cycle, by component
	ended := false          // a cause that is not a cycle was found
	type step struct {
		rank int
		via  *edge // the first wait on the way that its program may not be waiting for, or nil
	}
	note := func(f *Finding, via *edge) {
		ended = true
		if via != nil && f.Certain {
			f = f.withAlternative(r.view.notWaitingCause(via))
		}
		r.recordFinding(f, start)
	}
	for todo := []step{{rank: start}}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		for _, e := range r.view.outEdges[at.rank] {
			via := at.via
			if via == nil && at.rank != start && r.view.isUnawaited(e) {
				via = e
			}
			switch {
			case !r.view.isOldEnough(e) || e.isIdle:
			case e.pairFinding != nil:
				r.recordUnknown(e)
				note(e.pairFinding, via)
			case r.isPathEnd(e):
				note(r.endFinding(e), via)
			default:
				if r.part[at.rank] == r.part[e.to] {
					cycles[r.part[at.rank]] = at.rank
				}
				if !seen[e.to] {
					seen[e.to] = true
					todo = append(todo, step{e.to, via})
				}
			}
		}
	}
	for _, part := range slices.Sorted(maps.Keys(cycles)) {
		if f := r.cycleFinding(cycles[part]); f != nil && (!ended || f.Call == Send || f.Call == Recv) {
			r.recordFinding(f, start)
		}
	}
}

// isPathEnd reports whether a path of waits ends at the wait e, because no known wait of rank e.to leads further.
func (r *roots) isPathEnd(e *edge) bool {
	if e.to == AnyRank {
		return true
	}
	for _, o := range r.view.outEdges[e.to] {
		if r.view.isOldEnough(o) && !o.isIdle && !isMirror(o, e) {
			return false
		}
	}
	return true
}

// isMirror reports whether the wait o is the opposite of the wait e and known only from a packet that the waiting rank
// of e has received. The states of the pair then explain both waits.
func isMirror(o, e *edge) bool { return o.deferred != nil && o.to == e.from && o.from == e.to }

// endFinding returns the finding for a wait at which a path ends. It is uncertain if the states leave another
// explanation, such as a restart of rank e.to, or that the program of rank e.from does not wait yet.
func (r *roots) endFinding(e *edge) *Finding {
	r.recordUnknown(e)
	if f := r.view.unknownEndFinding(e); f != nil {
		return f
	}
	cause, p := r.view.endCause(e)
	finding := r.view.newFinding(e, cause, p)
	finding.Certain = p.certain
	again := r.view.restartCauses([]*edge{e})
	if failed := r.view.kernelFailed(e.to); failed != "" {
		again = append(again, newPossibility(infer.Restarted, e.to, e.from,
			"the kernel of stand-in %d has failed, and begun again (%s)", e.to,
			failed))
	}
	if cause == KernelWaits && len(again) > 0 {
		finding.Certain, finding.Possible = false, append(again, newPossibility(KernelWaits, e.to, e.from, "%s", p.reason))
	}
	if again = r.view.programCauses([]*edge{e}); cause == ProgramComputes && (!finding.Certain || len(again) > 0) {
		finding.Certain, finding.Possible = false, append(again, r.view.noCallCauses(e)...)
	}
	if finding.Certain && r.view.isUnawaited(e) {
		finding = finding.withAlternative(r.view.notWaitingCause(e))
	}
	return finding
}

// isUnawaited reports whether the wait e is only a posted operation for which the program of rank e.from may not be
// waiting yet.
func (v *view) isUnawaited(e *edge) bool {
	r := v.ranks[e.from]
	// The kernel of a stand-in waits for all of its operations.
	return r != nil && r.Role != state.RoleStandin && e.call == nil && e.wait != nil && !e.wait.Awaited
}

// notWaitingCause returns the possible cause that the program of rank e.from is not yet waiting for the operation that
// it has posted.
func (v *view) notWaitingCause(e *edge) Possibility {
	return newPossibility(infer.ProgramComputes, e.from, e.to,
		"rank %d computes, and has not begun to wait for what it has posted", e.from)
}

// withAlternative returns a copy of the finding as the first of two possibilities. The second one is other.
func (f *Finding) withAlternative(other Possibility) *Finding {
	open := *f
	open.Certain, open.Waiting = false, []int{}
	open.Possible = []Possibility{newPossibility(infer.Cause(f.Cause), f.Rank, f.Peer, "%s", f.Why), other}
	return &open
}

// recordUnknown adds rank e.to to the list of unknown ranks if its state is unknown.
func (r *roots) recordUnknown(e *edge) {
	if u, ok := r.view.unknownReason(e.to); ok {
		r.unknown[e.to] = u
	}
}

// ageHysteresis is the number of seconds by which a wait must be older than another wait to replace it in a finding. It
// keeps the choice stable from one diagnosis to the next.
const ageHysteresis = 0.5

// recordFinding records a finding, and that the given rank waits because of it. It merges findings with equal keys; the
// oldest wait represents them.
func (r *roots) recordFinding(finding *Finding, waiting int) {
	key := rootKey{finding.Cause, finding.Rank, finding.Certain}
	known := r.found[key]
	switch {
	case known == nil:
		finding.Waiting = []int{}
		known = finding
		r.found[key] = finding
		r.order = append(r.order, key)
	case known != finding && finding.Seconds > known.Seconds+ageHysteresis:
		waits := known.Waiting
		*known = *finding
		known.Waiting = waits
	}
	if !slices.Contains(known.Waiting, waiting) {
		known.Waiting = append(known.Waiting, waiting)
		slices.Sort(known.Waiting)
	}
}

// cycleFinding returns a finding about a shortest cycle in the strongly connected component of a rank, through the
// lowest rank of that component. It returns nil if the component contains no cycle.
func (r *roots) cycleFinding(rank int) *Finding {
	part := r.part[rank]
	first := slices.Min(slices.Collect(func(yield func(int) bool) {
		for other, p := range r.part {
			if p == part && !yield(other) {
				return
			}
		}
	}))
	path := r.shortestCycle(first)
	if path == nil {
		return nil
	}
	oldest, youngest := path[0], path[0]
	ranks, evidence := make([]int, len(path)), make([]string, 0, len(path))
	for i, e := range path {
		ranks[i] = e.from
		if len(evidence) < maxRanks {
			evidence = append(evidence, r.view.waitSentence(e))
		}
		if e.seconds > oldest.seconds+ageHysteresis {
			oldest = e
		}
		if e.seconds < youngest.seconds {
			youngest = e
		}
	}
	finding := r.view.newFinding(oldest, WaitCycle, proof{
		reason: fmt.Sprintf("cycle %s, closed for %s: each of these ranks waits for the next", cycleText(ranks),
			words.Duration(youngest.seconds)),
		evidence: evidence, step: cycleStep(path), rank: &first,
	})
	finding.Cycle, finding.Certain, finding.Peer = ranks, true, oldest.from
	for _, p := range slices.Concat(r.view.restartCauses(path), r.view.programCauses(path), r.view.oneCallCauses(path)) {
		if !slices.Contains(finding.Possible, p) { // two waits for each other find the same
			finding.Possible = append(finding.Possible, p)
		}
	}
	for _, e := range path {
		switch {
		case e.deferred != nil:
			finding.Possible = append(finding.Possible, movedOnCause(e))
		case r.view.isUnawaited(e):
			finding.Possible = append(finding.Possible, r.view.notWaitingCause(e))
		}
	}
	if len(finding.Possible) > 0 {
		finding.Certain = false
		finding.Possible = append(finding.Possible, newPossibility(infer.WaitCycle, first, oldest.from,
			"the ranks wait for each other by the order of their calls"))
	}
	return finding
}

// cycleStep says how to break a cycle.
func cycleStep(path []*edge) string {
	sends := 0
	for _, e := range path {
		if e.isSend {
			sends++
		}
	}
	switch sends {
	case len(path):
		return "all of them send: have one rank receive first, or use Sendrecv or Isend"
	case 0:
		return "all of them receive: have one rank send first; compare the order of the calls of these ranks"
	}
	return "compare the order of the calls of these ranks: one of them has to make the call that another one waits for"
}

// shortestCycle returns the waits of a shortest cycle through a rank, or nil if the rank is in no cycle.
func (r *roots) shortestCycle(first int) (path []*edge) {
	ranks := r.graph.ShortestCycle(first)
	for i, rank := range ranks {
		next := ranks[(i+1)%len(ranks)]
		path = append(path, r.view.outEdges[rank][slices.IndexFunc(r.view.outEdges[rank],
			func(e *edge) bool { return e.to == next && r.continuesPath(e) })])
	}
	return path
}

// continuesPath reports whether a path that contains the wait e continues with a wait of rank e.to.
func (r *roots) continuesPath(e *edge) bool {
	return e.to != AnyRank && e.pairFinding == nil && !e.isIdle && r.view.isOldEnough(e) && !r.isPathEnd(e)
}
