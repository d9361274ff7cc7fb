package metrics

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Engine contains those methods of *mpe.Engine that a scrape calls.
type Engine interface {
	Counters(rank func(*state.RankCounters), peer func(*state.PeerCounters))
	PeerCounters(rank int, visit func(*state.PeerCounters))
}

// Rank provides the metrics of a local rank.
type Rank struct {
	Engine Engine
	// Recorder contains the histograms of the rank, which the engine's observer fills.
	Recorder *phases.Recorder
	// State returns the part of the rank's state that its engine does not know. If the state names a kernel, the
	// receive in which that kernel waits for work does not count as a wait.
	State func() state.RankInfo
}

// Source provides the metrics of a daemon. Its functions are called during every scrape.
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

// collect adds all metrics of the source.
func (src *Source) collect(s *scrape) {
	s.startAt(src.Started)
	s.gauge(buildInfo, 1, src.Version, revision(), runtime.Version())
	s.counter(logLinesLost, src.LostLogLines())
	for socket, n := range src.AccessDenied() {
		s.counter(accessDenied, n, socket)
	}
	s.counter(webConfigFailures, src.WebConfigFailures())
	good, last := src.LastReload()
	s.gauge(reloadSuccess, boolToFloat(good))
	s.gauge(reloadTime, float64(last.UnixMilli())/1e3)
	for i := range src.Ranks {
		s.collectRank(&src.Ranks[i])
	}
	s.collectSharedBuckets()
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
	*scrape
	rank         string
	state        state.RankInfo
	rankCounters state.RankCounters
	peers        []peerSample
	classes      []phases.Class
}

type peerSample struct {
	label    string
	counters state.PeerCounters
	times    phases.PeerTimes // only if the client's format contains native histograms
}

// labelOtherPeers is the label for all peers without separate series. labelAnySource is the label for receives from any
// source. labelUnknownPeer is the label for addresses outside the rank map.
const (
	labelOtherPeers  = "other"
	labelAnySource   = "any"
	labelUnknownPeer = "unknown"
)

// collectRank adds the metrics of a rank.
func (s *scrape) collectRank(r *Rank) {
	l := s.sampleRank(r)
	l.collectState()
	l.collectPhases()
	for i := range l.peers {
		l.collectPeer(&l.peers[i])
	}
}

// sampleRank reads the state of a rank. It locks the engine separately for each peer, while it copies the peer's
// counters. The sample is valid until the next call.
func (s *scrape) sampleRank(r *Rank) *rankSample {
	l := &rankSample{scrape: s, state: r.State(), peers: s.peers[:0]}
	l.rank = strconv.Itoa(l.state.Rank)
	rec := r.Recorder
	other := peerSample{label: labelOtherPeers}
	hasOther := false
	times := func(peer int) (copied phases.PeerTimes) {
		if s.native {
			copied = rec.Peer(peer)
		}
		return copied
	}
	r.Engine.Counters(func(c *state.RankCounters) {
		l.rankCounters, l.classes = *c, rec.Classes()
	}, func(counters *state.PeerCounters) {
		switch {
		case !rec.HasSeries(counters.Rank) && isIdle(counters):
		case rec.AssignSeries(counters.Rank):
			l.peers = append(l.peers, peerSample{strconv.Itoa(counters.Rank), *counters, times(counters.Rank)})
		case !hasOther:
			other.counters, other.times, hasOther = *counters, times(counters.Rank), true
			other.counters.RoundTrip = 0
		default:
			mergeCounters(&other.counters, counters)
		}
	})
	if hasOther {
		l.peers = append(l.peers, other)
	}
	s.peers = l.peers
	return l
}

// isIdle reports whether all of a peer's counters are zero.
func isIdle(c *state.PeerCounters) bool {
	zero := state.PeerCounters{Rank: c.Rank, Extended: c.Extended}
	return *c == zero
}

// collectPhases adds the histograms of each kind of peer.
func (l *rankSample) collectPhases() {
	separate := l.native || l.classicRanks < maxClassicRanks
	used := false
	for i := range l.classes {
		k := &l.classes[i]
		for ph := range k.Times {
			h := &k.Times[ph]
			if h.IsEmpty() {
				continue
			}
			name := phases.PhaseNames[ph]
			if !separate {
				l.shareBuckets(phaseLabels{k.Profile, k.Kind, name.Direction, name.Phase}, h)
				continue
			}
			used = true
			l.addPhase(l.rank, phaseLabels{k.Profile, k.Kind, name.Direction, name.Phase}, l.phaseHistogram(h))
		}
	}
	if used {
		l.classicRanks++
	}
}

// collectState adds the series that do not belong to any particular peer.
func (l *rankSample) collectState() {
	l.gauge(postedReceives, float64(l.rankCounters.Posted), l.rank)
	l.gauge(unexpectedMessages, float64(l.rankCounters.Unexpected), l.rank)
	l.collectWait(l.rankCounters.AnySource, labelAnySource, directionReceive)
	for reason, n := range l.rankCounters.Drops {
		if n > 0 {
			l.counter(drops, n, l.rank, labelUnknownPeer, state.DropReason(reason).String())
		}
	}
	for _, n := range l.rankCounters.Collectives {
		name := strings.ToLower(n.Collective) // the configuration uses lower case as well
		l.counter(collectives, n.Calls, l.rank, name, n.Algorithm)
		l.counter(collectiveFailures, n.Failures, l.rank, name, n.Algorithm)
	}
	l.counter(disagreements, l.rankCounters.Disagreements, l.rank)
	if offload := l.state.Offload; offload != nil { // the rank has a UDP socket
		if n := l.state.SocketDrops; n != nil {
			l.counter(socketDrops, *n, l.rank)
		}
		l.gauge(socketBuffer, float64(l.state.ReceiveBuffer), l.rank)
		l.gauge(offloadEnabled, boolToFloat(offload.Batches), l.rank, "batches")
		l.gauge(offloadEnabled, boolToFloat(offload.Segmentation), l.rank, "segmentation")
		l.gauge(offloadEnabled, boolToFloat(offload.Coalescing), l.rank, "coalescing")
	}
	if path := l.state.Path; path != nil {
		l.gauge(offloadEnabled, boolToFloat(path.Error == ""), l.rank, "xdp")
		l.counter(pathDatagrams, path.Sent, l.rank, "sent")
		l.counter(pathDatagrams, path.Received, l.rank, "received")
		l.counter(pathDatagrams, path.Bypassed, l.rank, "bypassed")
		l.counter(pathDrops, path.Corrupt, l.rank, "corrupt")
		l.counter(pathDrops, path.Full, l.rank, "full")
	}
	l.gauge(attachedPrograms, float64(len(l.state.Attached)), l.rank)
	if l.state.Kernel != "" {
		l.gauge(kernelUp, boolToFloat(l.state.KernelState == state.KernelRunning), l.rank, l.state.Kernel)
	}
}
