package digest

import (
	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// AnyRank is the Peer of a receive from any source.
const AnyRank = -1

// Digest is a status in the order in which it is read.
type Digest struct {
	// Waits are the messages that wait, the oldest first.
	Waits []Wait `json:"waits"`
	// Cycles are ranks that wait for each other.
	Cycles []Cycle `json:"cycles"`
	// Troubles are what is broken, the worst first.
	Troubles []Trouble `json:"troubles"`
	// Ranks are the local ones in rank order.
	Ranks []Rank `json:"ranks"`
	// Peers has an entry for each pair of a local rank and a peer, in rank order.
	Peers []Peer `json:"peers"`
	// Total is the sum of the local ranks' rates.
	Total Rates `json:"total"`
	// Posted and Unexpected are the sums of the local ranks' queues.
	Posted     int `json:"posted"`
	Unexpected int `json:"unexpected"`
}

// Rates are differences between two statuses, per second. A message between two
// local ranks counts at both.
type Rates struct {
	// Known: there were two statuses of the same run of the daemon.
	Known    bool    `json:"known"`
	Messages float64 `json:"messages_per_second"`
	// Bytes are those of packets, headers included.
	Bytes           float64 `json:"bytes_per_second"`
	Retransmissions float64 `json:"retransmissions_per_second"`
	Drops           float64 `json:"drops_per_second"`
}

func (r *Rates) add(o Rates) {
	r.Messages += o.Messages
	r.Bytes += o.Bytes
	r.Retransmissions += o.Retransmissions
	r.Drops += o.Drops
}

// Of returns the digest of a status. The status before serves for rates, and may be
// nil.
func Of(s, before *control.Status) *Digest {
	d := &Digest{Waits: waits(s), Troubles: troubles(s), Ranks: make([]Rank, 0, len(s.Ranks)), Peers: []Peer{}}
	d.Cycles = cycles(d.Waits)
	span := elapsed(s, before)
	d.Total.Known = span > 0
	past := make(map[pair]*Peer)
	if span > 0 {
		for i := range before.Ranks {
			for _, p := range peers(before, &before.Ranks[i]) {
				past[pair{p.Rank, p.Peer}] = &p
			}
		}
	}
	for i := range s.Ranks {
		r := rank(&s.Ranks[i])
		r.Rates.Known = span > 0
		own := peers(s, &s.Ranks[i])
		for j := range own {
			p := &own[j]
			p.Rates = p.since(past[pair{p.Rank, p.Peer}], span)
			r.Rates.add(p.Rates)
		}
		d.Total.add(r.Rates)
		d.Posted += r.Posted
		d.Unexpected += r.Unexpected
		d.Ranks, d.Peers = append(d.Ranks, r), append(d.Peers, own...)
	}
	d.age()
	return d
}

// pair is a local rank and a peer.
type pair struct{ rank, peer int }

// elapsed is the time between two statuses of the same run of a daemon in seconds,
// or 0 if they are none.
func elapsed(s, before *control.Status) float64 {
	if before == nil || before.PID != s.PID || !before.Started.Equal(s.Started) {
		return 0
	}
	return max(0, s.Uptime-before.Uptime)
}

// age tells pairs of their oldest waits.
func (d *Digest) age() {
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
		d.Peers[i].Oldest = oldest[pair{d.Peers[i].Rank, d.Peers[i].Peer}]
	}
}
