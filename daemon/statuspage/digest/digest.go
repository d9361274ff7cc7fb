package digest

import (
	"encoding/json"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// AnyRank is the value of Peer for a receive from any source.
const AnyRank = -1

// Digest is a status prepared for display. It shares memory with the status, so the caller must not modify the status.
type Digest struct {
	// Doubtful is set if the status may be incomplete or wrong. Problems then lists the details.
	Doubtful bool `json:"doubtful,omitempty"`
	// Waits lists the waiting operations, oldest first.
	Waits []Wait `json:"waits"`
	// Cycles lists the cycles of ranks that wait for each other.
	Cycles []Cycle `json:"cycles"`
	// Problems is sorted by severity, failures first.
	Problems []Problem `json:"problems"`
	// Hosts is the number of local ranks that are hosts, and StandIns the number of stand-ins.
	Hosts    int `json:"hosts"`
	StandIns int `json:"stand_ins"`
	// Ranks lists the local ranks in rank order.
	Ranks []Rank `json:"ranks"`
	// Peers contains an entry for each pair of a local rank and one of its peers, in rank order.
	Peers []Peer `json:"peers"`
	// Total is the sum of the rates of all local ranks.
	Total Rates `json:"total"`
	// Posted and Unexpected are the lengths of the two matching queues, summed over all local ranks.
	Posted     int `json:"posted"`
	Unexpected int `json:"unexpected"`
}

// Rates contains rates per second, computed from the differences between two statuses. A message between two local
// ranks is counted by both of them.
type Rates struct {
	// Known is set if both statuses describe the same run of the daemon.
	Known    bool    `json:"known"`
	Messages float64 `json:"messages_per_second"`
	// Bytes is the number of bytes per second in whole packets, including their headers.
	Bytes           float64 `json:"bytes_per_second"`
	Retransmissions float64 `json:"retransmissions_per_second"`
	Drops           float64 `json:"drops_per_second"`
}

// MarshalJSON encodes unknown rates as null.
func (r Rates) MarshalJSON() ([]byte, error) {
	type known Rates
	if r.Known {
		return json.Marshal(known(r))
	}
	return []byte(`{"known":false,"messages_per_second":null,"bytes_per_second":null,"retransmissions_per_second":null,"drops_per_second":null}`), nil
}

func (r *Rates) add(o Rates) {
	r.Messages += o.Messages
	r.Bytes += o.Bytes
	r.Retransmissions += o.Retransmissions
	r.Drops += o.Drops
}

// New returns the digest of s. Rates are relative to the earlier status before; they are unknown if before is nil.
func New(s, before *state.Status) *Digest {
	digest := &Digest{Doubtful: len(s.Warnings()) > 0, Waits: collectWaits(s), Problems: findProblems(s),
		Ranks: make([]Rank, 0, len(s.Ranks)), Peers: []Peer{}}
	digest.Cycles = findCycles(digest.Waits)
	span := secondsBetween(s, before)
	digest.Total.Known = span > 0
	past := make(map[pair]*Peer)
	if span > 0 {
		for i := range before.Ranks {
			for _, p := range collectPeers(&before.Ranks[i]) {
				past[pair{p.Rank, p.Peer}] = &p
			}
		}
	}
	for i := range s.Ranks {
		local := &s.Ranks[i]
		rank := Rank{RankInfo: &local.RankInfo, Posted: local.Engine.Posted, Unexpected: local.Engine.Unexpected,
			Rates: Rates{Known: span > 0}}
		own := collectPeers(local)
		for j := range own {
			p := &own[j]
			p.Rates = p.ratesSince(past[pair{p.Rank, p.Peer}], span)
			rank.Rates.add(p.Rates)
		}
		if rank.Role == state.RoleHost {
			digest.Hosts++
		} else {
			digest.StandIns++
		}
		digest.Total.add(rank.Rates)
		digest.Posted += rank.Posted
		digest.Unexpected += rank.Unexpected
		digest.Ranks, digest.Peers = append(digest.Ranks, rank), append(digest.Peers, own...)
	}
	digest.setOldestWaits()
	return digest
}

// splitBrief separates brief waits from the others. It returns the waits that are not brief, and the number of brief
// ones.
func (d *Digest) splitBrief() (old []Wait, brief int) {
	n := slices.IndexFunc(d.Waits, func(w Wait) bool { return w.Age() == Brief }) // sorted, oldest first
	if n < 0 {
		n = len(d.Waits)
	}
	return d.Waits[:n], len(d.Waits) - n
}

// Brief returns the number of waits too short to be shown.
func (d *Digest) Brief() int {
	_, brief := d.splitBrief()
	return brief
}

// pair identifies a local rank and one of its peers.
type pair struct{ rank, peer int }

// secondsBetween returns the time in seconds between two statuses of the same run of a daemon, and 0 otherwise.
func secondsBetween(s, before *state.Status) float64 {
	if before == nil || before.PID != s.PID || !before.Started.Equal(s.Started) {
		return 0
	}
	return max(0, s.Uptime-before.Uptime)
}

// setOldestWaits sets OldestWait of all peers.
func (d *Digest) setOldestWaits() {
	oldest := make(map[pair]float64)
	for i := range d.Waits {
		w := &d.Waits[i]
		at := pair{w.Rank, w.Peer}
		if w.Remote {
			at = pair{w.Peer, w.Rank}
		}
		oldest[at] = max(oldest[at], w.Seconds)
	}
	for i := range d.Peers {
		d.Peers[i].OldestWait = oldest[pair{d.Peers[i].Rank, d.Peers[i].Peer}]
	}
}
