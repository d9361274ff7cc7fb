package diagnosis

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// view is what all sources together know.
type view struct {
	members []state.Member
	ranks   map[int]*rankState
	silent  map[int]silentRank
	// hosts are the IP addresses of which all ranks that run are known: those of a job's ranks on a host.
	hosts map[netip.Addr]string // the job
	// reasons are why ranks that were asked over links have not answered, and askErr why they were not asked, or nil.
	reasons map[int]string
	// unanswered are pairs of a rank that has sent the question, and one whose engine has not answered it.
	unanswered map[[2]int]bool
	askErr     error
	edges      []*edge
	// out are the edges of each rank that waits.
	out map[int][]*edge
	// slack is by how many seconds the times of two sources may differ.
	slack float64
	// after is the age in seconds from which a wait counts.
	after float64
}

// rankState is the state of a rank that has answered.
type rankState struct {
	*state.RankInfo
	Engine *state.Engine
	job    string // or empty: it is a daemon's, or was asked over a link
	// cutShort: it has more peers and calls than it has reported.
	cutShort bool
	peers    map[int]*state.Peer
	// failed is the last operation, if it has failed.
	failed *state.Failure
}

// silentRank is a rank of a job whose process is there and does not answer.
type silentRank struct {
	process state.SilentProcess
	job     string
}

// slack is how many seconds may pass until the last of all sources is asked.
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
	for _, src := range sources { // what ranks say to their own tools is more
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

// busy has the receives of a stand-in count as waits if a rank waits for it that it does not receive from: then its
// kernel does not wait for work.
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

// add joins a status with those before.
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

// lastFailed returns the last operation of a rank that has failed, unless one has ended since.
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

// addAsked adds ranks that were asked over links.
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

// about returns what a rank that has answered knows of a peer, or nil.
func (v *view) about(rank, peer int) *state.Peer {
	if r := v.ranks[rank]; r != nil && !onWire(r.Kernel) { // whose engine sees no packets
		return r.peers[peer]
	}
	return nil
}

// address returns where a rank is, as the others have it.
func (v *view) address(rank int) string {
	if rank < 0 || rank >= len(v.members) {
		return ""
	}
	return v.members[rank].Address
}

// jobAt returns the host of a rank, and the job whose processes there are known, if there is one.
func (v *view) jobAt(rank int) (host netip.Addr, job string) {
	at, _ := netip.ParseAddrPort(v.address(rank))
	return at.Addr(), v.hosts[at.Addr()]
}

// ofJob reports whether a rank whose state is not known is a process of a job that has ranks here.
func (v *view) ofJob(rank int) bool { return len(v.hosts) > 0 && !v.deployed(rank) }

// deployed reports whether a rank is a deployed node, which nobody can ask.
func (v *view) deployed(rank int) bool {
	if rank < 0 || rank >= len(v.members) || v.ranks[rank] != nil ||
		v.members[rank].Role != "" && !onWire(v.members[rank].Kernel) {
		return false
	}
	kind := v.members[rank].Kind
	return kind == state.KindFPGA || kind == state.KindCPU
}

// onWire reports whether a stand-in's kernel has an MPE of its own, which does not say what it waits for.
func onWire(kernel string) bool { return strings.HasPrefix(kernel, config.KernelRTLNet+":") }

// simulatedMPE reports whether all that is known of a rank is that its MPE is simulated, and runs.
func simulatedMPE(r *state.Rank) bool {
	return onWire(r.Kernel) && r.KernelHolds == "" && r.KernelState == state.KernelRunning
}

// unknown returns why the state of a rank is not known, and false if it is.
func (v *view) unknown(rank int) (Unknown, bool) {
	_, silent := v.silent[rank]
	if rank < 0 || v.ranks[rank] != nil || silent {
		return Unknown{}, false
	}
	if _, job := v.jobAt(rank); job != "" && !v.deployed(rank) { // that it has no process there is known
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
