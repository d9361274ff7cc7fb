package diagnosis

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// view combines what all sources have reported.
type view struct {
	// members is indexed by rank. ranks holds the ranks whose engines have reported, and silentRanks the ones that were
	// asked and have not answered.
	members     []state.Member
	ranks       map[int]*rankState
	silentRanks map[int]silentRank
	// hosts maps the IP address of a host to the job of which all ranks on that host are known.
	hosts map[netip.Addr]string
	// askFailures holds the reason why asking over links failed, for each rank with which it failed.
	askFailures map[int]string
	// unanswered contains the pairs of ranks in which the first rank has sent a question that the engine of the second
	// has not answered.
	unanswered map[[2]int]bool
	// askErr is the reason why no questions were sent over links, or nil if they were sent.
	askErr error
	edges  []*edge
	// outEdges holds, for each waiting rank, the edges of the wait graph that begin at it.
	outEdges map[int][]*edge
	// slack is the maximum difference, in seconds, between the times of two sources.
	slack float64
	// minAge is the minimum age, in seconds, of a wait that counts.
	minAge float64
}

// rankState is the reported state of a rank that has answered.
type rankState struct {
	*state.RankInfo
	Engine *state.Engine
	job    string // empty if the rank belongs to a daemon, or was asked over a link
	// cutShort is set if the rank's report omits some of its peers, calls or programs.
	cutShort bool
	peers    map[int]*state.Peer
	// failed is the last operation of the rank if that operation failed, and nil otherwise.
	failed *state.Failure
}

// silentRank is a rank of a job that does not answer although its process exists.
type silentRank struct {
	process state.SilentProcess
	job     string
}

// maxQueryGap is the maximum time, in seconds, between the queries of the first and the last source.
const maxQueryGap = 0.1

// newView merges the answers of all sources, and builds the graph of their waits. Waits of less than after seconds do
// not count.
func newView(sources []Source, after float64) *view {
	v := &view{ranks: map[int]*rankState{}, askFailures: map[int]string{}, unanswered: map[[2]int]bool{},
		silentRanks: map[int]silentRank{}, hosts: map[netip.Addr]string{}, outEdges: map[int][]*edge{}, minAge: after,
		slack: maxQueryGap}
	for _, src := range sources {
		if src.Status != nil {
			v.addStatus(src.Status)
			v.slack = max(v.slack, src.Age.Seconds()+maxQueryGap)
		}
	}
	for _, src := range sources { // after the statuses, which have more details
		v.addAsked(src.Asked)
		v.askErr = cmp.Or(v.askErr, src.AskErr)
	}
	for rank := range v.members {
		if r := v.ranks[rank]; r != nil {
			v.addEdges(r)
		}
	}
	for _, e := range v.edges {
		v.outEdges[e.from] = append(v.outEdges[e.from], e)
	}
	v.markBusyKernels()
	return v
}

// markBusyKernels counts the idle receives of a stand-in as waits if the stand-in is needed: some other rank, from
// which these receives do not receive, waits for it. The kernel is then not merely waiting for work.
func (v *view) markBusyKernels() {
	for again := true; again; {
		again = false
		for _, e := range v.edges {
			if e.isIdle || !v.isOldEnough(e) {
				continue
			}
			for _, o := range v.outEdges[e.to] {
				if o.isIdle && o.to != AnyRank && o.to != e.from {
					o.isIdle, again = false, true
				}
			}
		}
	}
}

// addStatus merges the status of a source into the view. It ignores ranks whose state is already known.
func (v *view) addStatus(s *state.Status) {
	v.members = append(v.members, s.Cluster[min(len(v.members), len(s.Cluster)):]...)
	for i := range s.Ranks {
		rank := &s.Ranks[i]
		if v.ranks[rank.Rank] != nil || rank.Rank < 0 || rank.Rank >= len(s.Cluster) || isSimulatedMPE(rank) {
			continue
		}
		state := &rankState{RankInfo: &rank.RankInfo, Engine: &rank.Engine, job: s.Job,
			peers: make(map[int]*state.Peer, len(rank.Engine.Peers))}
		for j := range rank.Engine.Peers {
			if p := &rank.Engine.Peers[j]; p.Rank >= 0 && p.Rank < len(s.Cluster) {
				state.peers[p.Rank] = p
			}
		}
		state.failed = lastFailed(s, rank)
		v.ranks[rank.Rank] = state
		if at, err := netip.ParseAddrPort(rank.Address); err == nil && s.Job != "" {
			v.hosts[at.Addr()] = s.Job
		}
	}
	for _, rank := range s.Silent {
		v.silentRanks[rank] = silentRank{job: s.Job}
	}
	for _, p := range s.SilentProcesses {
		v.silentRanks[p.Rank] = silentRank{p, s.Job}
	}
}

// lastFailed returns the last failed operation of a rank. It returns nil if an operation has completed since that
// failure.
func lastFailed(s *state.Status, rank *state.Rank) *state.Failure {
	for i := range s.Failures { // the newest first
		failure := &s.Failures[i]
		if failure.Rank != rank.Rank {
			continue
		}
		age := s.Uptime - failure.Time.Sub(s.Started).Seconds()
		if rank.Engine.SinceLastEnd != nil && *rank.Engine.SinceLastEnd < age-maxQueryGap {
			return nil
		}
		return failure
	}
	return nil
}

// addAsked adds the answers of ranks that other ranks asked over links.
func (v *view) addAsked(asked []state.AskResult) {
	for i := range asked {
		result := &asked[i]
		switch rank := result.Report; {
		case v.ranks[result.Rank] != nil || result.Rank < 0 || result.Rank >= len(v.members):
		case rank == nil:
			v.askFailures[result.Rank], v.unanswered[[2]int{result.AskedBy, result.Rank}] = result.Reason, result.Unanswered
		default:
			v.addStatus(&state.Status{Cluster: v.members, Ranks: []state.Rank{*rank.State()}})
			v.ranks[result.Rank].cutShort = rank.CutShort
			delete(v.askFailures, result.Rank)
		}
	}
}

// peerReport returns what rank has reported about peer, or nil if it has reported nothing.
func (v *view) peerReport(rank, peer int) *state.Peer {
	if r := v.ranks[rank]; r != nil && !hasOwnMPE(r.Kernel) { // its engine sees no packets
		return r.peers[peer]
	}
	return nil
}

// address returns the address of a rank in the rank map, or "" if the address is unknown.
func (v *view) address(rank int) string {
	if rank < 0 || rank >= len(v.members) {
		return ""
	}
	return v.members[rank].Address
}

// jobAt returns the host of a rank, and the job of which all ranks on that host are known. The job is "" if there is
// none.
func (v *view) jobAt(rank int) (host netip.Addr, job string) {
	at, _ := netip.ParseAddrPort(v.address(rank))
	return at.Addr(), v.hosts[at.Addr()]
}

// belongsToJob reports whether a rank whose state is unknown belongs to a job of which some ranks are known.
func (v *view) belongsToJob(rank int) bool { return len(v.hosts) > 0 && !v.isDeployed(rank) }

// isDeployed reports whether a rank is a deployed node, whose state cannot be queried.
func (v *view) isDeployed(rank int) bool {
	if rank < 0 || rank >= len(v.members) || v.ranks[rank] != nil ||
		v.members[rank].Role != "" && !hasOwnMPE(v.members[rank].Kernel) {
		return false
	}
	kind := v.members[rank].Kind
	return kind == state.KindFPGA || kind == state.KindCPU
}

// hasOwnMPE reports whether a stand-in's kernel includes an MPE, which does not report what it waits for.
func hasOwnMPE(kernel string) bool { return strings.HasPrefix(kernel, config.KernelRTLNet+":") }

// isSimulatedMPE reports whether all that is known about a rank is that its MPE is simulated and running.
func isSimulatedMPE(r *state.Rank) bool {
	return hasOwnMPE(r.Kernel) && r.KernelBlockReason == "" && r.KernelState == state.KernelRunning
}

// unknownReason returns the reason why the state of a rank is unknown. It returns false if the state is in fact known.
func (v *view) unknownReason(rank int) (UnknownRank, bool) {
	_, silent := v.silentRanks[rank]
	if rank < 0 || v.ranks[rank] != nil || silent {
		return UnknownRank{}, false
	}
	if _, job := v.jobAt(rank); job != "" && !v.isDeployed(rank) { // it is known to have no process there
		return UnknownRank{}, false
	}
	ask := ": name its daemon with --daemons"
	if v.belongsToJob(rank) {
		ask = ": run zrlctl why on its host"
	}
	unknownRank := UnknownRank{Rank: rank, Address: v.address(rank), Reason: "its host was not asked" + ask}
	reason := v.askFailures[rank]
	switch {
	case v.isDeployed(rank):
		unknownRank.Reason = "a deployed node cannot be asked"
	case reason != "":
		unknownRank.Reason = reason + ask
	case v.askErr != nil:
		unknownRank.Reason = fmt.Sprintf("it was not asked: %v%s", v.askErr, ask)
	}
	return unknownRank, true
}
