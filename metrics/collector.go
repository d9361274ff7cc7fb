package metrics

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Engine contains those methods of *mpe.Engine that a Collector calls.
type Engine interface {
	Counters(rank func(*state.RankCounters), peer func(*state.PeerCounters))
	PeerCounters(rank int, visit func(*state.PeerCounters))
}

// Rank provides a Collector with the metrics of a local rank.
type Rank struct {
	Engine Engine
	// Recorder contains the histograms of the rank, which the engine's observer fills.
	Recorder *phases.Recorder
	// State returns the part of the rank's state that its engine does not know. If the state names a kernel, the
	// receive in which that kernel waits for work does not count as a wait.
	State func() state.RankInfo
}

// Source provides the input of a Collector. Its functions are called during every scrape.
type Source struct {
	// Version is the version of the running program.
	Version string
	// Started is the time at which the engines' counters started at zero.
	Started time.Time
	Ranks   []Rank
	// LostLogLines returns the number of log lines that were lost.
	LostLogLines func() uint64
	// AccessDenied returns, for each socket, the number of programs and requests refused for lack of permission.
	AccessDenied func() map[string]uint64
	// WebConfigFailures returns the number of times that the server rejected a changed web configuration.
	WebConfigFailures func() uint64
	// LastReload reports whether the last reload of the configuration succeeded, and returns the time of the last
	// successful one.
	LastReload func() (good bool, last time.Time)
}

// Collector is a prometheus.Collector that reads its source at the time of a scrape.
type Collector struct{ src Source }

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a Collector that reads src.
func NewCollector(src Source) *Collector { return &Collector{src} }

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range families {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	out <- buildInfo.gauge(1, c.src.Version, revision(), runtime.Version())
	out <- logLinesLost.counterAt(c.src.Started, c.src.LostLogLines())
	for socket, n := range c.src.AccessDenied() {
		out <- accessDenied.counterAt(c.src.Started, n, socket)
	}
	out <- webConfigFailures.counterAt(c.src.Started, c.src.WebConfigFailures())
	good, last := c.src.LastReload()
	out <- reloadSuccess.gauge(boolToFloat(good))
	out <- reloadTime.gauge(float64(last.UnixMilli()) / 1e3)
	for i := range c.src.Ranks {
		r := sampleRank(&c.src.Ranks[i], c.src.Started)
		r.collect(out)
	}
}

// revision returns the version control revision of the program's source code.
var revision = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-dirty"
		}
	}
	return revision + modified
})

func boolToFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// rankSample contains the state of a rank at the time of a scrape. All counters of a peer are read at the same time.
type rankSample struct {
	createdAt    time.Time
	rank         string
	state        state.RankInfo
	rankCounters state.RankCounters
	peers        []peerSample
	classes      []phases.Class
}

type peerSample struct {
	label    string
	counters state.PeerCounters
	times    phases.PeerTimes
}

// labelOtherPeers is the label for all peers without separate series. labelAnySource is the label for receives from any
// source. labelUnknownPeer is the label for addresses outside the rank map.
const (
	labelOtherPeers  = "other"
	labelAnySource   = "any"
	labelUnknownPeer = "unknown"
)

// sampleRank reads the state of a rank. It locks the engine separately for each peer, while it copies the peer's
// counters.
func sampleRank(r *Rank, created time.Time) *rankSample {
	l := &rankSample{createdAt: created, state: r.State()}
	l.rank = strconv.Itoa(l.state.Rank)
	rec := r.Recorder
	var other *peerSample
	var spare state.PeerCounters
	r.Engine.Counters(func(c *state.RankCounters) {
		l.rankCounters, l.classes = *c, rec.Classes()
	}, func(counters *state.PeerCounters) {
		if !rec.HasSeries(counters.Rank) && isIdle(counters) {
			return
		}
		if rec.AssignSeries(counters.Rank) {
			l.peers = append(l.peers, peerSample{label: strconv.Itoa(counters.Rank), counters: *counters,
				times: rec.Peer(counters.Rank)})
			return
		}
		if other == nil {
			other = &peerSample{label: labelOtherPeers, counters: *counters, times: rec.Peer(counters.Rank)}
			other.counters.RoundTrip = 0
			return
		}
		spare = *counters
		mergeCounters(&other.counters, &spare)
	})
	if other != nil {
		l.peers = append(l.peers, *other)
	}
	return l
}

// isIdle reports whether all of a peer's counters are zero.
func isIdle(c *state.PeerCounters) bool {
	zero := state.PeerCounters{Rank: c.Rank, Extended: c.Extended}
	return *c == zero
}

func (l *rankSample) collect(out chan<- prometheus.Metric) {
	l.collectState(out)
	for i := range l.classes {
		k := &l.classes[i]
		for ph := range k.Times {
			if h := &k.Times[ph]; !h.IsEmpty() {
				out <- phaseSeconds.histogram(h, l.createdAt, l.rank, k.Profile, k.Kind, phases.PhaseNames[ph].Direction,
					phases.PhaseNames[ph].Phase)
			}
		}
	}
	for i := range l.peers {
		l.collectPeer(out, &l.peers[i])
	}
}

// collectState exposes the series that do not belong to any particular peer.
func (l *rankSample) collectState(out chan<- prometheus.Metric) {
	out <- postedReceives.gauge(float64(l.rankCounters.Posted), l.rank)
	out <- unexpectedMessages.gauge(float64(l.rankCounters.Unexpected), l.rank)
	l.collectWait(out, l.rankCounters.AnySource, labelAnySource, directionReceive)
	for reason, n := range l.rankCounters.Drops {
		if n > 0 {
			out <- drops.counterAt(l.createdAt, n, l.rank, labelUnknownPeer, state.DropReason(reason).String())
		}
	}
	for _, n := range l.rankCounters.Collectives {
		name := strings.ToLower(n.Collective) // the configuration uses lower case as well
		out <- collectives.counterAt(l.createdAt, n.Calls, l.rank, name, n.Algorithm)
		out <- collectiveFailures.counterAt(l.createdAt, n.Failures, l.rank, name, n.Algorithm)
	}
	out <- disagreements.counterAt(l.createdAt, l.rankCounters.Disagreements, l.rank)
	if offload := l.state.Offload; offload != nil { // the rank has a UDP socket
		if n := l.state.SocketDrops; n != nil {
			out <- socketDrops.counterAt(l.createdAt, *n, l.rank)
		}
		out <- socketBuffer.gauge(float64(l.state.ReceiveBuffer), l.rank)
		out <- offloadEnabled.gauge(boolToFloat(offload.Batches), l.rank, "batches")
		out <- offloadEnabled.gauge(boolToFloat(offload.Segmentation), l.rank, "segmentation")
		out <- offloadEnabled.gauge(boolToFloat(offload.Coalescing), l.rank, "coalescing")
	}
	if path := l.state.Path; path != nil {
		out <- offloadEnabled.gauge(boolToFloat(path.Error == ""), l.rank, "xdp")
		out <- pathDatagrams.counterAt(l.createdAt, path.Sent, l.rank, "sent")
		out <- pathDatagrams.counterAt(l.createdAt, path.Received, l.rank, "received")
		out <- pathDatagrams.counterAt(l.createdAt, path.Bypassed, l.rank, "bypassed")
		out <- pathDrops.counterAt(l.createdAt, path.Corrupt, l.rank, "corrupt")
		out <- pathDrops.counterAt(l.createdAt, path.Full, l.rank, "full")
	}
	out <- attachedPrograms.gauge(float64(len(l.state.Attached)), l.rank)
	if l.state.Kernel != "" {
		out <- kernelUp.gauge(boolToFloat(l.state.KernelState == state.KernelRunning), l.rank, l.state.Kernel)
	}
}
