package statuspage

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
)

// The bounds of what is shown of each kind; the rest is counted.
const (
	maxWaits    = 40
	maxCycles   = 4
	maxChain    = 8
	maxTroubles = 20
	maxRanks    = 32
	maxPeers    = 60
	maxEntries  = 30
	// maxWords is how much of a text from elsewhere is shown, in characters.
	maxWords = 400
)

// shown is a sample as the templates see it: bounded, in order, filtered.
type shown struct {
	query
	Host    string
	At      time.Time
	Status  *statusHead
	Total   digest.Rates
	Posted  int
	Waiting int // queue of unexpected messages
	Verdict digest.Verdict
	Live    chart
	Slow    chart

	Cycles   []cycleView
	Waits    []digest.Wait
	Young    int // waits that are not shown: on their way
	AllWaits int // that are old enough to be shown
	FitWaits int // of these, that fit the filter
	Troubles []digest.Trouble
	// MoreTroubles is how many are not shown, as with the others.
	MoreTroubles int
	Ranks        []rankView
	AllRanks     int
	FitRanks     int
	Peers        []peerView
	AllPeers     int
	FitPeers     int // that fit the filter
	Quiet        int // of these, that were never heard of and are not listed
	Latencies    bool
	Entries      []Entry
	HasLog       bool
}

// statusHead is what is told of the daemon itself.
type statusHead struct {
	Version, Config, HTTP string
	PID, Cluster          int
	Hosts, StandIns       int
	Uptime                float64
}

type rankView struct {
	digest.Rank
	Failed bool
}

type peerView struct {
	digest.Peer
	Trips   trace
	Latency Latency
	// Known: Latency is.
	Known bool
}

// cycleView is a cycle with the oldest wait from each rank to the next.
type cycleView struct {
	digest.Cycle
	Links []digest.Wait
	// More ranks are not shown.
	More int
}

// look chooses what is shown of a sample. The page's lock is held.
func (p *Page) look(s *sample, q query) *shown {
	d, f := s.digest, digest.NewFilter(q.Filter)
	v := &shown{
		query: q, Host: p.opts.Host, At: s.at, Status: headOf(s), Total: d.Total, Posted: d.Posted, Waiting: d.Unexpected, Verdict: d.Verdict(),
		Live: chartOf(p.past.live.all(), s.at, livePoints*liveEvery, liveEvery), Slow: chartOf(p.past.slow.all(), p.past.slowAt.at, slowPoints*slowEvery, slowEvery),
		AllRanks: len(d.Ranks), AllPeers: len(d.Peers), Latencies: p.opts.Latency != nil, HasLog: p.opts.Recent != nil,
	}
	for i := range d.Waits {
		w := d.Waits[i]
		if w.Age() == digest.Young {
			v.Young++
			continue
		}
		v.AllWaits++
		if !f.Wait(&w) {
			continue
		}
		if v.FitWaits++; v.FitWaits <= maxWaits {
			w.Text = digest.Clean(w.Text, maxWords)
			v.Waits = append(v.Waits, w)
		}
	}
	for _, c := range d.Cycles[:min(len(d.Cycles), maxCycles)] {
		v.Cycles = append(v.Cycles, cycleOf(c, d.Waits))
	}
	v.Troubles = slices.Clone(d.Troubles[:min(len(d.Troubles), maxTroubles)])
	v.MoreTroubles = len(d.Troubles) - len(v.Troubles)
	for i := range v.Troubles {
		v.Troubles[i].Text = digest.Clean(v.Troubles[i].Text, maxWords)
	}
	v.ranks(d, f)
	p.peers(v, d, f)
	if p.opts.Recent != nil {
		entries := p.opts.Recent()
		v.Entries = entries[:min(len(entries), maxEntries)]
	}
	return v
}

func headOf(s *sample) *statusHead {
	h := &statusHead{
		Version: s.status.Version, Config: digest.Clean(s.status.Config, maxWords), HTTP: s.status.HTTP,
		PID: s.status.PID, Cluster: len(s.status.Cluster), Uptime: s.status.Uptime,
	}
	for i := range s.digest.Ranks {
		if s.digest.Ranks[i].Kernel == "" {
			h.Hosts++
		} else {
			h.StandIns++
		}
	}
	return h
}

func cycleOf(c digest.Cycle, waits []digest.Wait) cycleView {
	v := cycleView{Cycle: c}
	for i, rank := range c.Ranks {
		if i == maxChain {
			v.More = len(c.Ranks) - maxChain
			break
		}
		next := c.Ranks[(i+1)%len(c.Ranks)]
		for j := range waits { // the oldest come first
			if waits[j].Rank == rank && waits[j].Peer == next {
				v.Links = append(v.Links, waits[j])
				break
			}
		}
	}
	return v
}

// ranks lists local ranks, those whose kernel has failed first.
func (v *shown) ranks(d *digest.Digest, f digest.Filter) {
	var well []rankView
	for i := range d.Ranks {
		r := rankView{d.Ranks[i], d.Ranks[i].Failed()}
		if !f.Rank(&r.Rank) {
			continue
		}
		v.FitRanks++
		if r.Failed {
			v.Ranks = append(v.Ranks, r)
		} else {
			well = append(well, r)
		}
	}
	v.Ranks = append(v.Ranks, well...)
	v.Ranks = v.Ranks[:min(len(v.Ranks), maxRanks)]
}

func (p *Page) peers(v *shown, d *digest.Digest, f digest.Filter) {
	fit := make([]digest.Peer, 0, len(d.Peers))
	for i := range d.Peers {
		peer := &d.Peers[i]
		if !f.Peer(peer) {
			continue
		}
		v.FitPeers++
		if !v.All && !peer.Seen() {
			v.Quiet++
			continue
		}
		fit = append(fit, *peer)
	}
	digest.Sort(fit, v.Order)
	for _, peer := range fit[:min(len(fit), maxPeers)] {
		peer.NetworkError, peer.Refuses = digest.Clean(peer.NetworkError, maxWords), digest.Clean(peer.Refuses, maxWords)
		pv := peerView{Peer: peer}
		if r := p.past.trips[pair{peer.Rank, peer.Peer}]; r != nil {
			pv.Trips = traceOf(r.all())
		}
		if p.opts.Latency != nil {
			pv.Latency, pv.Known = p.opts.Latency(peer.Rank, peer.Peer)
		}
		v.Peers = append(v.Peers, pv)
	}
}

// Unlisted says how many peers there are besides.
func (v *shown) Unlisted() int { return v.FitPeers - v.Quiet - len(v.Peers) }
