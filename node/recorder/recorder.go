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

// minRingSize is the minimum size of a ring in bytes. Peers of a rank share rings if separate rings would be smaller.
const minRingSize = 16 << 10

// Recorder holds the rings of all ranks of a process.
type Recorder struct {
	ranks []*Rank
}

// Rank holds the rings of a rank. It is the rank's mpe.Observer, and passes events on to another observer.
type Rank struct {
	mpe.Observer
	rank      int
	startTime atomic.Pointer[time.Time]
	rings     []ring
	pairs     []*pair // by peer; nil if the peer is not recorded
	calls     *ring   // for calls of the rank's program
	// simCycle returns the number of the rank's simulation and its current cycle. It is nil without a simulation.
	simCycle func() (simulation, cycle uint64)
}

// Peer describes a peer for recording.
type Peer struct {
	// Recorded is set if packets with the peer are recorded.
	Recorded bool
	// Extended is set if packets with the peer use the extended profile.
	Extended bool
}

// Plan describes a rank and its peers.
type Plan struct {
	Rank int
	// Peers contains an entry for each rank of the cluster.
	Peers []Peer
}

// New returns a recorder that uses at most memory bytes, but at least one entry per rank. The memory is outside of Go's
// heap, allocated as entries are written, and never released. If the address space is limited, the recorder uses at
// most an eighth of the free part.
func New(memory int, plans []Plan) *Recorder {
	if left, limited := rlimit.AddressSpaceLeft(); limited {
		memory = int(min(uint64(memory), left/8))
	}
	pairs := 0
	for i := range plans {
		pairs += plans[i].countPairs()
	}
	rec := &Recorder{}
	for i := range plans {
		rec.ranks = append(rec.ranks, newRank(memory/max(pairs, 1)*plans[i].countPairs(), &plans[i]))
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

// countPairs returns the number of pairs of the rank: one per recorded peer, one for unknown addresses, and one for
// calls.
func (p *Plan) countPairs() int {
	n := 2
	for _, peer := range p.Peers {
		if peer.Recorded {
			n++
		}
	}
	return n
}

// newRank divides the memory into rings: one for packets from unknown addresses, one for calls, and the others for the
// peers. With little memory, several of these share a ring.
func newRank(memory int, plan *Plan) *Rank {
	pairs := plan.countPairs()
	rank := &Rank{rank: plan.Rank, pairs: make([]*pair, len(plan.Peers)),
		rings: make([]ring, min(max(memory/minRingSize, 1), pairs))}
	for i := range rank.rings {
		rank.rings[i].slotSize = shortSlotSize
	}
	rank.rings[0].slotSize = longSlotSize // for packets from unknown addresses, which may be anything
	rank.calls = &rank.rings[1%len(rank.rings)]
	// Rings for peers are shared only among peers, unless there are too few rings.
	first := min(2, len(rank.rings)-1)
	n := 0
	for peer, of := range plan.Peers {
		if of.Recorded {
			ring := &rank.rings[first+n%(len(rank.rings)-first)]
			n++
			rank.pairs[peer] = &pair{ring: ring, rank: rank, peer: int32(peer)}
			if of.Extended {
				ring.slotSize = longSlotSize
			}
		}
	}
	total := 0
	for i := range rank.rings {
		rank.rings[i].numSlots = max(memory/len(rank.rings)/rank.rings[i].slotSize, 1)
		total += rank.rings[i].size()
	}
	// If the address space is exhausted, each ring allocates its memory on Go's heap.
	if mem, err := anonmem.Get(total); err == nil {
		for i := range rank.rings {
			n := rank.rings[i].size()
			rank.rings[i].mem, mem = mem[:n:n], mem[n:]
		}
	}
	return rank
}

// Rank returns a rank of the recorder, or nil if the recorder does not record the rank.
func (rec *Recorder) Rank(rank int) *Rank {
	for _, r := range rec.ranks {
		if r.rank == rank {
			return r
		}
	}
	return nil
}

// Observe returns an observer that records the events of the rank's engine, and passes them on to o.
func (r *Rank) Observe(o mpe.Observer) mpe.Observer {
	r.Observer = o
	return r
}

// SetStartTime sets the start of the engine's clock, which is known only once the engine has started. Until then,
// readers skip the rank.
func (r *Rank) SetStartTime(began time.Time) { r.startTime.Store(&began) }

// RecordCycles adds the simulation cycle of the rank's kernel to each packet of the rank, and to packets that other
// ranks of the recorder send to it. cycle returns the number of starts of the simulation, 0 if it has not started, and
// the last cycle that it has reported. cycle is called with locks of engines and rings held. RecordCycles must be
// called before any rank starts.
func (r *Rank) RecordCycles(cycle func() (simulation, cycle uint64)) { r.simCycle = cycle }

// Pair returns the recorder of packets with a peer, or nil if they are not recorded.
func (r *Rank) Pair(peer int) mpe.PacketRecorder {
	if p := r.pairs[peer]; p != nil {
		return p
	}
	return nil // not an interface that holds a nil pointer
}

// pair is a peer of a rank.
type pair struct {
	ring *ring
	rank *Rank
	peer int32
	// remote is the peer's Rank if the peer runs in this process, and nil otherwise. It records the packets that the
	// peer sends.
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
	data, length := r.beginEntry(int64(at), wire, p.peer, kind, 0)
	n := copy(data, header)
	n += copy(data[n:], payload)
	*length = uint8(min(n, wire))
	p.rank.recordCycle(at, p)
	if p.remote != nil {
		p.remote.recordCycle(at, p)
	}
	r.mu.Unlock()
}

// cycleEntryLen is the length of the data of a cycle entry: rank, simulation and cycle.
const cycleEntryLen = 4 + 8 + 8

// recordCycle records the cycle of the rank's simulation after a packet of a pair. The caller holds the lock of the
// ring.
func (r *Rank) recordCycle(at handshake.Instant, p *pair) {
	if r.simCycle == nil {
		return
	}
	simulation, cycle := r.simCycle()
	if simulation == 0 {
		return
	}
	data, length := p.ring.beginEntry(int64(at), 0, p.peer, entryCycle, 0)
	_ = data[cycleEntryLen-1]
	binary.LittleEndian.PutUint32(data, uint32(r.rank))
	binary.LittleEndian.PutUint64(data[4:], simulation)
	binary.LittleEndian.PutUint64(data[12:], cycle)
	*length = cycleEntryLen
}

// recordEvent records an entry other than a packet.
func (r *Rank) recordEvent(peer int, at handshake.Instant, kind entryKind, code uint8, text string) {
	if peer < 0 || peer >= len(r.pairs) || r.pairs[peer] == nil {
		return
	}
	ring := r.pairs[peer].ring
	ring.mu.Lock()
	defer ring.mu.Unlock()
	data, length := ring.beginEntry(int64(at), 0, int32(peer), kind, code)
	*length = uint8(copy(data, text))
}

// Dropped implements mpe.Observer. It also records a packet from an unknown address, which nothing has recorded yet.
func (r *Rank) Dropped(rank, peer int, drop mpe.Drop) {
	if a := drop.Packet; peer == mpe.UnknownPeer && a != nil {
		r.recordForeign(drop.At, a)
	} else {
		r.recordEvent(peer, drop.At, entryDropped, uint8(drop.Reason), "")
	}
	r.Observer.Dropped(rank, peer, drop)
}

// callEntryLen is the length of the data of a call entry.
const callEntryLen = 33

// Call implements mpe.CallRecorder.
func (r *Rank) Call(call *mpe.Call) {
	code, kind, failed := uint8(call.Collective), entryPosted, byte(0)
	if call.Send {
		code = codeSend
	}
	if call.Ended {
		kind = entryEnded
	}
	if call.Err != nil {
		failed = 1
	}
	r.calls.mu.Lock()
	data, length := r.calls.beginEntry(int64(call.At), 0, int32(call.Peer), kind, code)
	_ = data[callEntryLen-1]
	binary.LittleEndian.PutUint64(data, uint64(call.At-call.Posted))
	binary.LittleEndian.PutUint64(data[8:], uint64(call.ID))
	binary.LittleEndian.PutUint64(data[16:], uint64(call.Bytes))
	binary.LittleEndian.PutUint32(data[24:], uint32(int32(call.Tag)))
	binary.LittleEndian.PutUint32(data[28:], call.Comm)
	data[32] = failed
	*length = callEntryLen
	r.calls.mu.Unlock()
}

// recordForeign records the source address and the beginning of a packet whose source is not in the rank map.
func (r *Rank) recordForeign(at handshake.Instant, packet *mpe.RxPacket) {
	ring := &r.rings[0]
	ring.mu.Lock()
	defer ring.mu.Unlock()
	data, length := ring.beginEntry(int64(at), len(packet.Bytes)+len(packet.Tail), mpe.UnknownPeer, entryForeign, 0)
	from := packet.SourceAddr.Addr().As16()
	copy(data, from[:])
	binary.BigEndian.PutUint16(data[len(from):], packet.SourceAddr.Port())
	*length = uint8(addressLen + copy(data[addressLen:], packet.Bytes))
}

// Noted implements mpe.Observer.
func (r *Rank) Noted(rank, peer int, n mpe.Note) {
	r.recordEvent(peer, n.At, entryNoted, uint8(n.Event), "")
	r.Observer.Noted(rank, peer, n)
}

// maxErrorSlots is the maximum number of slots for an error.
const maxErrorSlots = 8

// RecordFailure records the failure of an operation with a peer.
func (r *Rank) RecordFailure(peer int, err error) {
	began := r.startTime.Load()
	if began == nil {
		return
	}
	at, text := time.Since(*began), err.Error()
	for part := range uint8(maxErrorSlots) {
		n := min(len(text), ShortSnapLength)
		r.recordEvent(peer, at, entryFailed, part, text[:n])
		if text = text[n:]; text == "" {
			return
		}
	}
}
