package recorder

import (
	"encoding/binary"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// minRing is the least size of a ring in bytes. A rank with more peers than there is room for has several of them share a ring.
const minRing = 16 << 10

// Recorder has the rings of all ranks of a process.
type Recorder struct {
	ranks []*Rank
}

// Rank has the rings of a rank. It is the rank's mpe.Observer beside another one.
type Rank struct {
	mpe.Observer
	rank    int
	started atomic.Pointer[time.Time]
	rings   []ring
	pairs   []*pair // by peer; nil if nothing is recorded of it
}

// Peer says what is recorded of a peer.
type Peer struct {
	// Recorded: packets with it are.
	Recorded bool
	// Local: the peer is a rank of the same process, so that what it sends is recorded there.
	Local bool
}

// Plan is a rank and its peers.
type Plan struct {
	Rank int
	// Peers has an entry for each rank of the cluster.
	Peers []Peer
}

// New returns a recorder that takes at most so many bytes of memory, but for one entry of each rank at least. It takes the memory of a
// ring with the ring's first packet.
func New(memory int, plans []Plan) *Recorder {
	pairs := 0
	for i := range plans {
		pairs += plans[i].recorded()
	}
	rec := &Recorder{}
	for i := range plans {
		rec.ranks = append(rec.ranks, newRank(memory/max(pairs, 1)*plans[i].recorded(), &plans[i]))
	}
	return rec
}

// recorded returns how many pairs the rank has: those with its peers, and one for packets from addresses that are no rank's.
func (p *Plan) recorded() int {
	n := 1
	for _, peer := range p.Peers {
		if peer.Recorded {
			n++
		}
	}
	return n
}

func newRank(memory int, p *Plan) *Rank {
	pairs := p.recorded()
	r := &Rank{rank: p.Rank, pairs: make([]*pair, len(p.Peers)), rings: make([]ring, min(max(memory/minRing, 1), pairs))}
	for i := range r.rings {
		r.rings[i].size = max(memory/len(r.rings)/int(unsafe.Sizeof(entry{})), 1)
	}
	n := 0
	for peer, of := range p.Peers {
		if of.Recorded {
			n++ // the first ring is the one of unknown addresses
			r.pairs[peer] = &pair{ring: &r.rings[n%len(r.rings)], peer: int32(peer), local: of.Local}
		}
	}
	return r
}

// Rank returns a rank of the recorder, or nil.
func (rec *Recorder) Rank(rank int) *Rank {
	for _, r := range rec.ranks {
		if r.rank == rank {
			return r
		}
	}
	return nil
}

// Observe returns an observer that records the events of the rank's engine, and hands them on to the given one.
func (r *Rank) Observe(o mpe.Observer) mpe.Observer {
	r.Observer = o
	return r
}

// Start says when the engine's clock began, which is known after its start. Nothing of the rank is read before.
func (r *Rank) Start(began time.Time) { r.started.Store(&began) }

// Pair returns what records the packets with a peer, or nil if none are.
func (r *Rank) Pair(peer int) mpe.PacketRecorder {
	if p := r.pairs[peer]; p != nil {
		return p
	}
	return nil // and no interface of a nil pointer
}

// pair is a peer of a rank.
type pair struct {
	ring  *ring
	peer  int32
	local bool
}

// Packet implements mpe.PacketRecorder.
func (p *pair) Packet(at handshake.Instant, sent bool, wire int, header, payload []byte) {
	kind := entrySent
	if !sent {
		if p.local {
			return
		}
		kind = entryReceived
	}
	r := p.ring
	r.mu.Lock()
	e := r.next()
	e.at, e.wire, e.peer, e.kind = int64(at), uint32(wire), p.peer, kind
	n := copy(e.data[:], header)
	n += copy(e.data[n:], payload)
	e.n = uint8(min(n, wire))
	r.mu.Unlock()
}

// event records something that is no packet.
func (r *Rank) event(peer int, at handshake.Instant, kind entryKind, code uint8, text string) {
	if peer < 0 || peer >= len(r.pairs) || r.pairs[peer] == nil {
		return
	}
	ring := r.pairs[peer].ring
	ring.mu.Lock()
	defer ring.mu.Unlock()
	e := ring.next()
	e.at, e.peer, e.kind, e.code, e.wire = int64(at), int32(peer), kind, code, 0
	e.n = uint8(copy(e.data[:], text))
}

// Dropped implements mpe.Observer. A packet from an address that is no rank's has not been recorded before.
func (r *Rank) Dropped(rank, peer int, d mpe.Drop) {
	if a := d.Packet; peer == mpe.UnknownPeer && a != nil {
		r.foreign(d.At, a)
	} else {
		r.event(peer, d.At, entryDropped, uint8(d.Reason), "")
	}
	r.Observer.Dropped(rank, peer, d)
}

func (r *Rank) foreign(at handshake.Instant, a *mpe.RxPacket) {
	ring := &r.rings[0]
	ring.mu.Lock()
	defer ring.mu.Unlock()
	e := ring.next()
	e.at, e.peer, e.kind, e.wire = int64(at), mpe.UnknownPeer, entryForeign, uint32(len(a.Bytes)+len(a.Rest))
	from := a.From.Addr().As16()
	copy(e.data[:], from[:])
	binary.BigEndian.PutUint16(e.data[len(from):], a.From.Port())
	n := copy(e.data[addressLen:], a.Bytes)
	e.n = uint8(addressLen + n)
}

// Noted implements mpe.Observer.
func (r *Rank) Noted(rank, peer int, n mpe.Note) {
	r.event(peer, n.At, entryNoted, uint8(n.Event), "")
	r.Observer.Noted(rank, peer, n)
}

// Failed records that an operation with a peer has failed.
func (r *Rank) Failed(peer int, err error) {
	if began := r.started.Load(); began != nil {
		r.event(peer, time.Since(*began), entryFailed, 0, err.Error())
	}
}
