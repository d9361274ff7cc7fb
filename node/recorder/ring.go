package recorder

import (
	"encoding/binary"
	"sync"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A slot has an entry: a packet or an event. Rings are bytes, so that the garbage collector does not look at them, and slots are whole
// cache lines: to record a packet costs little more than the misses that they cause.
const (
	// longSlot is for the extended profile: it has room for a header, and for the payload of an ACK with two ranges.
	longSlot = 128
	// shortSlot is for the others: it has room for a header, and for three words.
	shortSlot = 64
	// slotHead is what comes before the data.
	slotHead = 20
)

// SnapLength is how many bytes of a packet are kept at most; of one that is not of the extended profile, ShortSnapLength.
const (
	SnapLength      = longSlot - slotHead
	ShortSnapLength = shortSlot - slotHead
)

// The longest headers fit.
const (
	_ = uint(SnapLength - protocol.ExtHeaderLen - protocol.AckLen - 2*protocol.AckRangeLen)
	_ = uint(ShortSnapLength - protocol.HeaderLen)
)

// entry is what a slot has.
type entry struct {
	at   int64 // on the engine's clock, in nanoseconds
	wire uint32
	peer int32 // or mpe.UnknownPeer
	kind entryKind
	// code is an state.DropReason, state.Event or coll.Collective, or the number of a part of a text, by kind.
	code uint8
	data []byte
}

type entryKind uint8

const (
	entrySent entryKind = iota + 1
	entryReceived
	// entryForeign is a packet from an address that is no rank's. Its data begins with the address: addressLen bytes.
	entryForeign
	entryDropped
	entryNoted
	// entryFailed has a part of an error as data.
	entryFailed
	// entryCycle has the cycle of a simulation at the time of the packet before.
	entryCycle
	// entryPosted and entryEnded are calls.
	entryPosted
	entryEnded
)

// codeSend is the code of a call that sends a message. That of a receive is 0.
const codeSend = 255

// packet reports whether the entry is a packet.
func (k entryKind) packet() bool { return k <= entryForeign }

// call reports whether the entry is a call.
func (k entryKind) call() bool { return k >= entryPosted }

// addressLen is the length in bytes of an IPv6 address and a port.
const addressLen = 16 + 2

// ring has the last entries of one pair, or of several of a rank.
type ring struct {
	mu    sync.Mutex
	mem   []byte // nil before the first entry, if it is to be of Go's heap
	slot  int    // bytes of a slot
	slots int
	at    int    // where the next one begins in mem
	total uint64 // how many entries there were
}

// size is how many bytes the ring has.
func (r *ring) size() int { return r.slot * r.slots }

// next begins an entry in the slot that was the oldest, and returns the room for its data and for the length of that. The lock is held.
func (r *ring) next(at int64, wire int, peer int32, kind entryKind, code uint8) (data []byte, length *byte) {
	if r.mem == nil {
		r.mem = make([]byte, r.size())
	}
	s := r.mem[r.at : r.at+r.slot]
	if r.at += r.slot; r.at == len(r.mem) {
		r.at = 0
	}
	r.total++
	_ = s[slotHead]
	binary.LittleEndian.PutUint64(s, uint64(at))
	binary.LittleEndian.PutUint32(s[8:], uint32(wire))
	binary.LittleEndian.PutUint32(s[12:], uint32(peer))
	s[16], s[17] = byte(kind), code
	return s[slotHead:], &s[18]
}

// entryOf returns the entry of a slot.
func entryOf(s []byte) entry {
	return entry{
		at: int64(binary.LittleEndian.Uint64(s)), wire: binary.LittleEndian.Uint32(s[8:]), peer: int32(binary.LittleEndian.Uint32(s[12:])),
		kind: entryKind(s[16]), code: s[17], data: s[slotHead : slotHead+int(s[18])],
	}
}

// oldest returns the number of the oldest entry that is there.
func (r *ring) oldest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total - min(r.total, uint64(r.slots))
}

// readBatch is how many entries are copied at a time, so that the rank does not wait for long.
const readBatch = 256

// read appends entries from number from on, at most readBatch, and none after until, to list. It returns the number of the next one,
// and how many were overwritten before they could be read. more: there are others.
func (r *ring) read(list []entry, from uint64, until int64) (read []entry, next, lost uint64, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if oldest := r.total - min(r.total, uint64(r.slots)); from < oldest {
		from, lost = oldest, oldest-from
	}
	copied := make([]byte, 0, int(min(r.total-from, readBatch))*r.slot)
	for ; from < r.total; from++ {
		i := int(from%uint64(r.slots)) * r.slot
		if int64(binary.LittleEndian.Uint64(r.mem[i:])) > until {
			return list, from, lost, false
		}
		if len(copied) == cap(copied) {
			return list, from, lost, true
		}
		copied = append(copied, r.mem[i:i+r.slot]...)
		list = append(list, entryOf(copied[len(copied)-r.slot:]))
	}
	return list, from, lost, false
}
