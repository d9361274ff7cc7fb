package recorder

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/anonmem"
	"github.com/zrlmpi/zrlmpid/internal/rlimit"
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
	calls   *ring   // of the rank's program
	// cycle is nil unless the rank's kernel is a simulation.
	cycle func() (simulation, cycle uint64)
}

// Peer says what is recorded of a peer.
type Peer struct {
	// Recorded: packets with it are.
	Recorded bool
	// Extended: the peer's profile is.
	Extended bool
}

// Plan is a rank and its peers.
type Plan struct {
	Rank int
	// Peers has an entry for each rank of the cluster.
	Peers []Peer
}

// New returns a recorder that takes at most the given number of bytes, but at least one entry of each rank. It is
// outside Go's heap, and is taken as entries are written; it is never given back. Where the address space is limited,
// it takes at most an eighth of what is left.
func New(memory int, plans []Plan) *Recorder {
	if left, limited := rlimit.AddressSpaceLeft(); limited {
		memory = int(min(uint64(memory), left/8))
	}
	pairs := 0
	for i := range plans {
		pairs += plans[i].recorded()
	}
	rec := &Recorder{}
	for i := range plans {
		rec.ranks = append(rec.ranks, newRank(memory/max(pairs, 1)*plans[i].recorded(), &plans[i]))
	}
	for _, r := range rec.ranks {
		for _, p := range r.pairs {
			if p != nil {
				p.remote = rec.Rank(int(p.peer))
			}
		}
	}
	return rec
}

// recorded returns how many pairs the rank has: those with its peers, one for packets from addresses that are no rank's, and one for calls.
func (p *Plan) recorded() int {
	n := 2
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
		r.rings[i].slot = shortSlot
	}
	r.rings[0].slot = longSlot // packets from unknown addresses may be anything
	r.calls = &r.rings[1%len(r.rings)]
	// Peers that share rings share them with each other, unless there are too few.
	first := min(2, len(r.rings)-1)
	n := 0
	for peer, of := range p.Peers {
		if of.Recorded {
			ring := &r.rings[first+n%(len(r.rings)-first)]
			n++
			r.pairs[peer] = &pair{ring: ring, rank: r, peer: int32(peer)}
			if of.Extended {
				ring.slot = longSlot
			}
		}
	}
	total := 0
	for i := range r.rings {
		r.rings[i].slots = max(memory/len(r.rings)/r.rings[i].slot, 1)
		total += r.rings[i].size()
	}
	// Without address space each ring takes its memory from Go's heap.
	if mem, err := anonmem.Get(total); err == nil {
		for i := range r.rings {
			n := r.rings[i].size()
			r.rings[i].mem, mem = mem[:n:n], mem[n:]
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

// Simulate has packets of the rank, and those that other ranks of the recorder send to it, recorded with a cycle of its kernel's simulation.
// cycle returns how often that was started, 0 for not yet, and the cycle that it has reported last; locks of engines and rings are held
// then. Simulate is called before any rank starts.
func (r *Rank) Simulate(cycle func() (simulation, cycle uint64)) { r.cycle = cycle }

// Pair returns what records the packets with a peer, or nil if none are.
func (r *Rank) Pair(peer int) mpe.PacketRecorder {
	if p := r.pairs[peer]; p != nil {
		return p
	}
	return nil // and no interface of a nil pointer
}

// pair is a peer of a rank.
type pair struct {
	ring *ring
	rank *Rank
	peer int32
	// remote is the peer, if that is a rank of the same process: what it sends is recorded there.
	remote *Rank
}

// Packet implements mpe.PacketRecorder.
func (p *pair) Packet(at handshake.Instant, sent bool, wire int, header, payload []byte) {
	kind := entrySent
	if !sent {
		if p.remote != nil {
			return
		}
		kind = entryReceived
	}
	r := p.ring
	r.mu.Lock()
	data, length := r.next(int64(at), wire, p.peer, kind, 0)
	n := copy(data, header)
	n += copy(data[n:], payload)
	*length = uint8(min(n, wire))
	p.rank.cycleAt(at, p)
	if p.remote != nil {
		p.remote.cycleAt(at, p)
	}
	r.mu.Unlock()
}

// cycleLen is the length of the data of a cycle: rank, simulation and cycle.
const cycleLen = 4 + 8 + 8

// cycleAt records the cycle of the rank's simulation behind a packet of a pair, whose lock is held.
func (r *Rank) cycleAt(at handshake.Instant, p *pair) {
	if r.cycle == nil {
		return
	}
	simulation, cycle := r.cycle()
	if simulation == 0 {
		return
	}
	data, length := p.ring.next(int64(at), 0, p.peer, entryCycle, 0)
	_ = data[cycleLen-1]
	binary.LittleEndian.PutUint32(data, uint32(r.rank))
	binary.LittleEndian.PutUint64(data[4:], simulation)
	binary.LittleEndian.PutUint64(data[12:], cycle)
	*length = cycleLen
}

// event records something that is no packet.
func (r *Rank) event(peer int, at handshake.Instant, kind entryKind, code uint8, text string) {
	if peer < 0 || peer >= len(r.pairs) || r.pairs[peer] == nil {
		return
	}
	ring := r.pairs[peer].ring
	ring.mu.Lock()
	defer ring.mu.Unlock()
	data, length := ring.next(int64(at), 0, int32(peer), kind, code)
	*length = uint8(copy(data, text))
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

// callHead is the length of the data of a call.
const callHead = 33

// Call implements mpe.CallRecorder.
func (r *Rank) Call(c *mpe.Call) {
	code, kind, failed := uint8(c.Collective), entryPosted, byte(0)
	if c.Send {
		code = codeSend
	}
	if c.Ended {
		kind = entryEnded
	}
	if c.Err != nil {
		failed = 1
	}
	r.calls.mu.Lock()
	data, length := r.calls.next(int64(c.At), 0, int32(c.Peer), kind, code)
	_ = data[callHead-1]
	binary.LittleEndian.PutUint64(data, uint64(c.At-c.Posted))
	binary.LittleEndian.PutUint64(data[8:], uint64(c.ID))
	binary.LittleEndian.PutUint64(data[16:], uint64(c.Bytes))
	binary.LittleEndian.PutUint32(data[24:], uint32(int32(c.Tag)))
	binary.LittleEndian.PutUint32(data[28:], c.Comm)
	data[32] = failed
	*length = callHead
	r.calls.mu.Unlock()
}

func (r *Rank) foreign(at handshake.Instant, a *mpe.RxPacket) {
	ring := &r.rings[0]
	ring.mu.Lock()
	defer ring.mu.Unlock()
	data, length := ring.next(int64(at), len(a.Bytes)+len(a.Rest), mpe.UnknownPeer, entryForeign, 0)
	from := a.From.Addr().As16()
	copy(data, from[:])
	binary.BigEndian.PutUint16(data[len(from):], a.From.Port())
	*length = uint8(addressLen + copy(data[addressLen:], a.Bytes))
}

// Noted implements mpe.Observer.
func (r *Rank) Noted(rank, peer int, n mpe.Note) {
	r.event(peer, n.At, entryNoted, uint8(n.Event), "")
	r.Observer.Noted(rank, peer, n)
}

// maxParts is how many slots an error takes at most.
const maxParts = 8

// Failed records that an operation with a peer has failed.
func (r *Rank) Failed(peer int, err error) {
	began := r.started.Load()
	if began == nil {
		return
	}
	at, text := time.Since(*began), err.Error()
	for part := range uint8(maxParts) {
		n := min(len(text), ShortSnapLength)
		r.event(peer, at, entryFailed, part, text[:n])
		if text = text[n:]; text == "" {
			return
		}
	}
}
