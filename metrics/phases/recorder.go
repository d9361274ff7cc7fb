// Package phases records the durations of message phases in histograms. It does not depend on the readers of
// the histograms.
//
// Recording a message must not cost more than a few increments. Whatever peers do, the package must not
// allocate more memory than its limit permits.
package phases

import "github.com/zrlmpi/zrlmpid/mpe"

// Phase is a phase of a message, as seen by the sender or by the receiver.
type Phase uint8

const (
	sendClear Phase = iota
	sendData
	sendAck
	SendTotal
	recvRequest
	recvData
	recvTotal
	NumPhases
)

// Names contains the direction and the name of each phase.
var Names = [NumPhases]struct{ Direction, Phase string }{
	{"send", "clear"}, {"send", "data"}, {"send", "ack"}, {"send", "total"},
	{"receive", "request"}, {"receive", "data"}, {"receive", "total"},
}

// Peer describes the kind of a remote rank.
type Peer struct{ Profile, Kind string }

// Recorder records the durations of the phases of a local rank's messages. It is guarded by the engine's lock,
// which the callers of Done and the collectors that read the Recorder must hold.
type Recorder struct {
	rank  int
	peers []recorded // indexed by rank
	// classes contains a Class for each kind of peer in the cluster.
	classes []*Class
	// limit is the maximum number of peers that have separate series. own is the number of peers that have them
	// now.
	limit, own int
	// other contains the series that all other peers share.
	other PerPeer
}

// recorded is the state of a peer: its class and its histograms, which are nil before the first message.
type recorded struct {
	class *Class
	times *PerPeer
}

// PerPeer contains the histograms of one peer. They are allocated on demand.
type PerPeer [NumPhases]*Histogram

// Class contains the histograms of all peers of one kind.
type Class struct {
	Peer
	Times [NumPhases]Histogram
}

// NewRecorder returns a Recorder for a rank. peers describes all ranks of the cluster in rank order. limit is
// the maximum number of peers that get separate series.
func NewRecorder(rank int, peers []Peer, limit int) *Recorder {
	r := &Recorder{rank: rank, peers: make([]recorded, len(peers)), limit: limit}
	known := make(map[Peer]*Class)
	for i, p := range peers {
		if i == rank {
			continue
		}
		if known[p] == nil {
			known[p] = &Class{Peer: p}
			r.classes = append(r.classes, known[p])
		}
		r.peers[i].class = known[p]
	}
	return r
}

// admit returns the series of an active peer. It gives the peer separate series the first time, or the shared
// series if the limit has been reached. A peer keeps its series from then on.
func (r *Recorder) admit(peer int) *PerPeer {
	p := &r.peers[peer]
	switch {
	case p.times != nil:
	case r.own < r.limit:
		p.times = new(PerPeer)
		r.own++
	default:
		p.times = &r.other
	}
	return p.times
}

// Done records a completed message that was reported to mpe.Observer.Done. It ignores failed messages, and
// messages that the rank sent to itself.
func (r *Recorder) Done(s *mpe.Status, err error) {
	if err != nil || s.Peer < 0 || s.Peer >= len(r.peers) || s.Peer == r.rank {
		return
	}
	p := &r.peers[s.Peer]
	one := p.times
	if one == nil {
		one = r.admit(s.Peer)
	}
	all, t := p.class, &s.Phases
	if s.Send {
		between(all, one, sendClear, int64(t.Request), int64(t.Clear))
		between(all, one, sendData, int64(t.Clear), int64(t.Data))
		between(all, one, sendAck, int64(t.Data), int64(t.Ack))
		add(all, one, SendTotal, uint64(s.Elapsed()))
		return
	}
	between(all, one, recvRequest, int64(t.Start), int64(t.Request))
	between(all, one, recvData, int64(t.Clear), int64(t.Data))
	add(all, one, recvTotal, uint64(s.Elapsed()))
}

// between records a phase, given the times of its beginning and end. It ignores a phase without duration: an
// eager message, for example, has no clear phase.
func between(all *Class, one *PerPeer, ph Phase, from, to int64) {
	if from > 0 && to > from {
		add(all, one, ph, uint64(to-from))
	}
}

func add(all *Class, one *PerPeer, ph Phase, ns uint64) {
	h := one[ph]
	if h == nil {
		h = new(Histogram)
		one[ph] = h
	}
	c := &all.Times[ph]
	if ns == 0 {
		h.Zero++
		c.Zero++
		return
	}
	key := keyOf(ns)
	h.add(key, ns)
	c.add(key, ns)
}

// Classes returns copies of the histograms of all kinds of peers.
func (r *Recorder) Classes() []Class {
	copied := make([]Class, len(r.classes))
	for i, k := range r.classes {
		copied[i].Peer = k.Peer
		for ph := range k.Times {
			copied[i].Times[ph] = k.Times[ph].clone()
		}
	}
	return copied
}

// Known reports whether a peer has been assigned series.
func (r *Recorder) Known(peer int) bool { return r.peers[peer].times != nil }

// Admit assigns series to an active peer. It reports whether the peer has them to itself instead of sharing
// them.
func (r *Recorder) Admit(peer int) (own bool) { return r.admit(peer) != &r.other }

// Peer returns copies of a peer's non-empty histograms. These are the shared ones if the peer uses shared
// series.
func (r *Recorder) Peer(peer int) (copied PerPeer) {
	if times := r.peers[peer].times; times != nil {
		for ph, h := range times {
			if h != nil {
				c := h.clone()
				copied[ph] = &c
			}
		}
	}
	return copied
}

// Size returns the number of ranks in the cluster.
func (r *Recorder) Size() int { return len(r.peers) }
