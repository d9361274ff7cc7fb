package diagnosis

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// view is the combined knowledge of all sources.
type view struct {
	members []state.Member
	ranks   map[int]*rankState
	silent  map[int]silentRank
	// hosts maps the IP address of a host to a job, all of whose ranks that run on the host are known.
	hosts map[netip.Addr]string
	// reasons holds, for each rank that has not answered a question sent over links, the reason why.
	reasons map[int]string
	// unanswered holds the pairs of a rank that has sent the question and a rank whose engine has not answered it.
	unanswered map[[2]int]bool
	// askErr is the reason why no questions were sent over links, or nil.
	askErr error
	edges  []*edge
	// out holds the edges that begin at each waiting rank.
	out map[int][]*edge
	// slack is the maximum difference, in seconds, between the times of two sources.
	slack float64
	// after is the minimum age, in seconds, of a wait that counts.
	after float64
}

// rankState is the state of a rank that has answered.
type rankState struct {
	*state.RankInfo
	Engine *state.Engine
	job    string // empty if the rank belongs to a daemon, or was asked over a link
	// cutShort is set if the report omits some of the peers, calls or programs of the rank.
	cutShort bool
	peers    map[int]*state.Peer
	// failed describes the last operation of the rank if it failed, and is nil otherwise.
	failed *state.Failure
}

// silentRank is a rank of a job whose process exists but does not answer.
type silentRank struct {
	process state.SilentProcess
	job     string
}

// slack is the maximum time, in seconds, between the queries of the first and the last source.
const slack = 0.1

func newView(sources []Source, after float64) *view {
	v := &view{ranks: map[int]*rankState{}, reasons: map[int]string{}, unanswered: map[[2]int]bool{},
		silent: map[int]silentRank{}, hosts: map[netip.Addr]string{}, out: map[int][]*edge{}, after: after,
		slack: slack}
	for _, src := range sources {
		if src.Status != nil {
			v.add(src.Status)
			v.slack = max(v.slack, src.Age.Seconds()+slack)
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
		v.out[e.from] = append(v.out[e.from], e)
	}
	v.busy()
	return v
}

// busy counts the idle receives of a stand-in as waits if a rank from which they do not receive waits for the stand-in:
// its kernel is then not just waiting for work.
func (v *view) busy() {
	for again := true; again; {
		again = false
		for _, e := range v.edges {
			if e.idle || !v.old(e) {
				continue
			}
			for _, o := range v.out[e.to] {
				if o.idle && o.to != AnyRank && o.to != e.from {
					o.idle, again = false, true
				}
			}
		}
	}
}

// add merges a status into the view. It ignores ranks whose state is already known.
func (v *view) add(s *state.Status) {
	v.members = append(v.members, s.Cluster[min(len(v.members), len(s.Cluster)):]...)
	for i := range s.Ranks {
		r := &s.Ranks[i]
		if v.ranks[r.Rank] != nil || r.Rank < 0 || r.Rank >= len(s.Cluster) || simulatedMPE(r) {
			continue
		}
		state := &rankState{RankInfo: &r.RankInfo, Engine: &r.Engine, job: s.Job,
			peers: make(map[int]*state.Peer, len(r.Engine.Peers))}
		for j := range r.Engine.Peers {
			if p := &r.Engine.Peers[j]; p.Rank >= 0 && p.Rank < len(s.Cluster) {
				state.peers[p.Rank] = p
			}
		}
		state.failed = lastFailed(s, r)
		v.ranks[r.Rank] = state
		if at, err := netip.ParseAddrPort(r.Address); err == nil && s.Job != "" {
			v.hosts[at.Addr()] = s.Job
		}
	}
	for _, rank := range s.Silent {
		v.silent[rank] = silentRank{job: s.Job}
	}
	for _, p := range s.SilentProcesses {
		v.silent[p.Rank] = silentRank{p, s.Job}
	}
}

// lastFailed returns the last failed operation of a rank, or nil if an operation has ended since.
func lastFailed(s *state.Status, r *state.Rank) *state.Failure {
	for i := range s.Failures { // the newest first
		f := &s.Failures[i]
		if f.Rank != r.Rank {
			continue
		}
		age := s.Uptime - f.Time.Sub(s.Started).Seconds()
		if r.Engine.Ended != nil && *r.Engine.Ended < age-slack {
			return nil
		}
		return f
	}
	return nil
}

// addAsked adds the answers of ranks that were asked over links.
func (v *view) addAsked(asked []state.Asked) {
	for i := range asked {
		a := &asked[i]
		switch r := a.Report; {
		case v.ranks[a.Rank] != nil || a.Rank < 0 || a.Rank >= len(v.members):
		case r == nil:
			v.reasons[a.Rank], v.unanswered[[2]int{a.By, a.Rank}] = a.Reason, a.Unanswered
		default:
			v.add(&state.Status{Cluster: v.members, Ranks: []state.Rank{*r.State()}})
			v.ranks[a.Rank].cutShort = r.CutShort
			delete(v.reasons, a.Rank)
		}
	}
}

// about returns what rank reports about peer, or nil if it reports nothing.
func (v *view) about(rank, peer int) *state.Peer {
	if r := v.ranks[rank]; r != nil && !onWire(r.Kernel) { // its engine sees no packets
		return r.peers[peer]
	}
	return nil
}

// address returns the address of a rank in the rank map, or an empty string.
func (v *view) address(rank int) string {
	if rank < 0 || rank >= len(v.members) {
		return ""
	}
	return v.members[rank].Address
}

// jobAt returns the host of a rank, and the job whose processes on that host are known, or an empty string.
func (v *view) jobAt(rank int) (host netip.Addr, job string) {
	at, _ := netip.ParseAddrPort(v.address(rank))
	return at.Addr(), v.hosts[at.Addr()]
}

// ofJob reports whether a rank whose state is not known belongs to a job that has ranks here.
func (v *view) ofJob(rank int) bool { return len(v.hosts) > 0 && !v.deployed(rank) }

// deployed reports whether a rank is a deployed node, which cannot be asked for its state.
func (v *view) deployed(rank int) bool {
	if rank < 0 || rank >= len(v.members) || v.ranks[rank] != nil ||
		v.members[rank].Role != "" && !onWire(v.members[rank].Kernel) {
		return false
	}
	kind := v.members[rank].Kind
	return kind == state.KindFPGA || kind == state.KindCPU
}

// onWire reports whether a stand-in's kernel has its own MPE, which does not report what it waits for.
func onWire(kernel string) bool { return strings.HasPrefix(kernel, config.KernelRTLNet+":") }

// simulatedMPE reports whether nothing is known about a rank except that its MPE is simulated and running.
func simulatedMPE(r *state.Rank) bool {
	return onWire(r.Kernel) && r.KernelHolds == "" && r.KernelState == state.KernelRunning
}

// unknown returns the reason why the state of a rank is not known. It returns false if the state is known.
func (v *view) unknown(rank int) (Unknown, bool) {
	_, silent := v.silent[rank]
	if rank < 0 || v.ranks[rank] != nil || silent {
		return Unknown{}, false
	}
	if _, job := v.jobAt(rank); job != "" && !v.deployed(rank) { // it is known to have no process there
		return Unknown{}, false
	}
	ask := ": name its daemon with --daemons"
	if v.ofJob(rank) {
		ask = ": run zrlctl why on its host"
	}
	u := Unknown{Rank: rank, Address: v.address(rank), Reason: "its host was not asked" + ask}
	reason := v.reasons[rank]
	switch {
	case v.deployed(rank):
		u.Reason = "a deployed node cannot be asked"
	case reason != "":
		u.Reason = reason + ask
	case v.askErr != nil:
		u.Reason = fmt.Sprintf("it was not asked: %v%s", v.askErr, ask)
	}
	return u, true
}
