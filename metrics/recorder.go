package metrics

import "github.com/zrlmpi/zrlmpid/mpe"

// phase is a phase of a message at its sender or its receiver.
type phase uint8

const (
	sendClear phase = iota
	sendData
	sendAck
	sendTotal
	recvRequest
	recvData
	recvTotal
	numPhases
)

// phaseNames are the values of the labels direction and phase.
var phaseNames = [numPhases]struct{ direction, phase string }{
	{"send", "clear"}, {"send", "data"}, {"send", "ack"}, {"send", "total"},
	{"receive", "request"}, {"receive", "data"}, {"receive", "total"},
}

// Peer is what kind of peer a remote rank is.
type Peer struct{ Profile, Kind string }

// Recorder counts how long the phases of one local rank's messages take. It is guarded by
// the engine's lock, which the callers of Done and of a collector hold.
type Recorder struct {
	rank  int
	peers []recorded // by rank
	// classes has the kinds of peers there are.
	classes []*class
	// limit bounds the peers with series of their own, and own counts them.
	limit, own int
	// other is shared by all other peers.
	other perPeer
}

// recorded is the state of a peer: its class, and its histograms, which are nil before the
// first message.
type recorded struct {
	class *class
	times *perPeer
}

// perPeer are the histograms of a peer, made when they are first needed.
type perPeer [numPhases]*histogram

// class are the histograms of one kind of peers.
type class struct {
	Peer
	times [numPhases]histogram
}

// NewRecorder returns a recorder for a rank of a cluster that peers lists in rank
// order. limit is how many peers have series of their own.
func NewRecorder(rank int, peers []Peer, limit int) *Recorder {
	r := &Recorder{rank: rank, peers: make([]recorded, len(peers)), limit: limit}
	known := make(map[Peer]*class)
	for i, p := range peers {
		if i == rank {
			continue
		}
		if known[p] == nil {
			known[p] = &class{Peer: p}
			r.classes = append(r.classes, known[p])
		}
		r.peers[i].class = known[p]
	}
	return r
}

// admit gives an active peer series of its own, or those of the other peers if the limit is
// reached. A peer keeps its series.
func (r *Recorder) admit(peer int) *perPeer {
	p := &r.peers[peer]
	switch {
	case p.times != nil:
	case r.own < r.limit:
		p.times = new(perPeer)
		r.own++
	default:
		p.times = &r.other
	}
	return p.times
}

// Done counts a message that has ended, as mpe.Observer's Done. It ignores failed messages
// and messages of the rank to itself.
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
		add(all, one, sendTotal, uint64(s.Elapsed()))
		return
	}
	between(all, one, recvRequest, int64(t.Start), int64(t.Request))
	between(all, one, recvData, int64(t.Clear), int64(t.Data))
	add(all, one, recvTotal, uint64(s.Elapsed()))
}

// between counts a phase with a beginning and an end. A phase of no duration is not counted:
// an eager message is not cleared.
func between(all *class, one *perPeer, ph phase, from, to int64) {
	if from > 0 && to > from {
		add(all, one, ph, uint64(to-from))
	}
}

func add(all *class, one *perPeer, ph phase, ns uint64) {
	h := one[ph]
	if h == nil {
		h = new(histogram)
		one[ph] = h
	}
	c := &all.times[ph]
	if ns == 0 {
		h.zero++
		c.zero++
		return
	}
	key := keyOf(ns)
	h.add(key, ns)
	c.add(key, ns)
}
