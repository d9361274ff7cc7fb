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

// PhaseNames contains the direction and the name of each phase.
var PhaseNames = [NumPhases]struct{ Direction, Phase string }{
	{"send", "clear"}, {"send", "data"}, {"send", "ack"}, {"send", "total"},
	{"receive", "request"}, {"receive", "data"}, {"receive", "total"},
}

// Peer describes what kind of rank a peer is.
type Peer struct{ Profile, Kind string }

// Recorder records the durations of the phases of a local rank's messages. The engine's lock guards it: the caller of
// RecordMessage and each reader of the Recorder must hold that lock.
type Recorder struct {
	rank  int
	peers []peerState // indexed by rank
	// classes contains one Class for each kind of peer in the cluster.
	classes []*Class
	// maxSeparate is the maximum number of peers with separate series. numSeparate is their current number.
	maxSeparate, numSeparate int
	// shared contains the series shared by all other peers.
	shared PeerTimes
}

// peerState holds a peer's class and histograms. The field times is nil until the first message is recorded.
type peerState struct {
	class *Class
	times *PeerTimes
}

// PeerTimes contains the histograms of one peer. Each is allocated when it is first needed.
type PeerTimes [NumPhases]*Histogram

// Class contains the histograms of all peers of one kind.
type Class struct {
	Peer
	Times [NumPhases]Histogram
}

// NewRecorder returns a Recorder for a rank. peers describes all ranks of the cluster in rank order. limit is the
// maximum number of peers with separate series.
func NewRecorder(rank int, peers []Peer, limit int) *Recorder {
	recorder := &Recorder{rank: rank, peers: make([]peerState, len(peers)), maxSeparate: limit}
	known := make(map[Peer]*Class)
	for i, peer := range peers {
		if i == rank {
			continue
		}
		if known[peer] == nil {
			known[peer] = &Class{Peer: peer}
			recorder.classes = append(recorder.classes, known[peer])
		}
		recorder.peers[i].class = known[peer]
	}
	return recorder
}

// seriesFor returns the series of an active peer. The first call for a peer assigns it separate series, or the shared
// series once maxSeparate is reached. The assignment is permanent.
func (r *Recorder) seriesFor(peer int) *PeerTimes {
	state := &r.peers[peer]
	switch {
	case state.times != nil:
	case r.numSeparate < r.maxSeparate:
		state.times = new(PeerTimes)
		r.numSeparate++
	default:
		state.times = &r.shared
	}
	return state.times
}

// RecordMessage records a message reported to mpe.Observer.Done. It ignores failed messages, and messages from the rank
// to itself.
func (r *Recorder) RecordMessage(status *mpe.Status, err error) {
	if err != nil || status.Peer < 0 || status.Peer >= len(r.peers) || status.Peer == r.rank {
		return
	}
	p := &r.peers[status.Peer]
	one := p.times
	if one == nil {
		one = r.seriesFor(status.Peer)
	}
	all, phases := p.class, &status.Phases
	if status.Send {
		addPhase(all, one, sendClear, int64(phases.Request), int64(phases.Clear))
		addPhase(all, one, sendData, int64(phases.Clear), int64(phases.Data))
		addPhase(all, one, sendAck, int64(phases.Data), int64(phases.Ack))
		addDuration(all, one, SendTotal, uint64(status.Elapsed()))
		return
	}
	addPhase(all, one, recvRequest, int64(phases.Start), int64(phases.Request))
	addPhase(all, one, recvData, int64(phases.Clear), int64(phases.Data))
	addDuration(all, one, recvTotal, uint64(status.Elapsed()))
}

// addPhase records a phase, given the times of its beginning and end. It ignores phases without duration, such as the
// clear phase of an eager message.
func addPhase(all *Class, one *PeerTimes, ph Phase, from, to int64) {
	if from > 0 && to > from {
		addDuration(all, one, ph, uint64(to-from))
	}
}

func addDuration(all *Class, one *PeerTimes, ph Phase, ns uint64) {
	histogram := one[ph]
	if histogram == nil {
		histogram = new(Histogram)
		one[ph] = histogram
	}
	c := &all.Times[ph]
	if ns == 0 {
		histogram.ZeroCount++
		c.ZeroCount++
		return
	}
	key := bucketKey(ns)
	histogram.addToBucket(key, ns)
	c.addToBucket(key, ns)
}

// Classes returns copies of the histograms of each kind of peer.
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

// HasSeries reports whether a peer has been assigned series.
func (r *Recorder) HasSeries(peer int) bool { return r.peers[peer].times != nil }

// AssignSeries assigns series to an active peer. It reports whether they are separate rather than shared.
func (r *Recorder) AssignSeries(peer int) (own bool) { return r.seriesFor(peer) != &r.shared }

// Peer returns copies of a peer's non-empty histograms, or of the shared ones if the peer uses shared series.
func (r *Recorder) Peer(peer int) (copied PeerTimes) {
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

// ClusterSize returns the number of ranks in the cluster.
func (r *Recorder) ClusterSize() int { return len(r.peers) }
