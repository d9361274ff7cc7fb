package statuspage

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Maximum numbers of items shown in each list. Further items are only counted.
const (
	maxWaits      = 40
	maxCycles     = 4
	maxCauses     = 8
	maxCycleLinks = 8
	maxProblems   = 20
	maxRanks      = 32
	maxPeers      = 60
	maxEntries    = 30
	maxFailures   = 20
	// maxWords is the maximum length, in characters, of a text that does not originate from the page itself.
	maxWords = 400
)

// pageModel is a sample prepared for the templates: filtered, sorted and limited in length.
type pageModel struct {
	query
	Host    string
	At      time.Time
	Status  *state.Status
	Digest  *digest.Digest
	Verdict digest.Verdict
	Live    chart
	Slow    chart

	Cycles []cycleView
	// Causes are the reasons why ranks wait.
	Causes []diagnosis.Finding
	// Waits contains the waits shown. Brief is the number of waits too short to be shown, AllWaits the number of all
	// other waits, and FitWaits the number of those that match the filter.
	Waits                     []*digest.Wait
	Brief, AllWaits, FitWaits int
	Problems                  []digest.Problem
	Ranks                     []*digest.Rank
	FitRanks                  int            // number of ranks that match the filter
	Idle                      []*digest.Rank // matching ranks omitted from Ranks
	Peers                     []peerView
	AllPeers, FitPeers        int // numbers of all peers and of matching peers
	Silent                    int // number of matching peers without any exchange, omitted from Peers
	Latencies                 bool
	// Failures contains the groups of failures shown. AllFailures is the number of all such groups.
	Failures    []failureView
	AllFailures int
	Entries     []Entry
	HasLog      bool
}

type peerView struct {
	*digest.Peer
	Trips   sparkline
	Latency Latency
	// Known is set if Latency is known.
	Known bool
}

// cycleView describes a cycle together with the oldest wait of each rank in it for the next rank.
type cycleView struct {
	digest.Cycle
	Links []*digest.Wait
	// More is the number of ranks omitted from Links.
	More int
}

// buildModel selects the parts of a sample that the page shows. The caller must hold the page's lock.
func (p *Page) buildModel(s *sample, q query) *pageModel {
	d, filter := s.digest, digest.NewFilter(q.Filter)
	model := &pageModel{
		query: q, Host: p.opts.Host, At: s.takenAt, Status: &s.status, Digest: d, Verdict: d.Verdict(),
		Live:     newChart(p.history.live.ordered(), s.takenAt, livePoints*liveInterval, liveInterval),
		Slow:     newChart(p.history.slow.ordered(), p.history.slowMark.at, slowPoints*slowInterval, slowInterval),
		Problems: d.Problems[:min(len(d.Problems), maxProblems)], Latencies: p.opts.Latency != nil,
		HasLog: p.opts.Recent != nil,
	}
	failures := groupFailures(s.status.Failures)
	model.Failures, model.AllFailures = failures[:min(len(failures), maxFailures)], len(failures)
	fit, others := filter.Waits(d)
	model.Waits, model.Brief, model.AllWaits, model.FitWaits = fit[:min(len(fit),
		maxWaits)], d.Brief(), len(fit)+others, len(fit)
	for _, c := range d.Cycles[:min(len(d.Cycles), maxCycles)] {
		model.Cycles = append(model.Cycles, newCycleView(c, d.Waits))
	}
	causes := diagnosis.Diagnose([]diagnosis.Source{{Status: &s.status}}, diagnosis.MinWaitAge).Findings
	model.Causes = causes[:min(len(causes), maxCauses)]
	model.Ranks, model.Idle = filter.Ranks(d, q.All || q.Filter != "")
	model.FitRanks = len(model.Ranks) + len(model.Idle)
	slices.SortStableFunc(model.Ranks, failedFirst)
	model.Ranks = model.Ranks[:min(len(model.Ranks), maxRanks)]
	p.addPeers(model, d, filter)
	if p.opts.Recent != nil {
		entries := p.opts.Recent()
		model.Entries = entries[:min(len(entries), maxEntries)]
	}
	return model
}

// newCycleView shows, for each rank of the cycle, its oldest wait for the next rank. More counts the ranks beyond the
// first maxCycleLinks.
func newCycleView(cycle digest.Cycle, waits []digest.Wait) cycleView {
	v := cycleView{Cycle: cycle}
	for i, rank := range cycle.Ranks {
		if i == maxCycleLinks {
			v.More = len(cycle.Ranks) - maxCycleLinks
			break
		}
		next := cycle.Ranks[(i+1)%len(cycle.Ranks)]
		for j := range waits { // sorted, oldest first
			if waits[j].Rank == rank && waits[j].Peer == next {
				v.Links = append(v.Links, &waits[j])
				break
			}
		}
	}
	return v
}

// failedFirst sorts ranks so that those whose kernel has failed come first.
func failedFirst(a, b *digest.Rank) int {
	switch {
	case a.Failed() == b.Failed():
		return 0
	case a.Failed():
		return -1
	}
	return 1
}

func (p *Page) addPeers(model *pageModel, d *digest.Digest, f digest.Filter) {
	fit, silent, others := f.Peers(d, model.Order, model.All)
	model.FitPeers, model.Silent, model.AllPeers = len(fit)+silent, silent, len(fit)+silent+others
	for _, peer := range fit[:min(len(fit), maxPeers)] {
		pv := peerView{Peer: peer}
		if r := p.history.roundTrips[pair{peer.Rank, peer.Peer}]; r != nil {
			pv.Trips = newTrace(r.ordered())
		}
		if p.opts.Latency != nil {
			pv.Latency, pv.Known = p.opts.Latency(peer.Rank, peer.Peer)
		}
		model.Peers = append(model.Peers, pv)
	}
}

// ListedRanks returns the number of matching local ranks listed individually.
func (v *pageModel) ListedRanks() int { return v.FitRanks - len(v.Idle) }

// Listed returns the number of peers that match the filter and are not silent.
func (v *pageModel) Listed() int { return v.FitPeers - v.Silent }
