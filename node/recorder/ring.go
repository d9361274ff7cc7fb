package recorder

import (
	"encoding/binary"
	"sync"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A slot holds an entry: a packet, an event or a call. Rings are bytes, so that the garbage collector does not scan
// them. Slots are whole cache lines, so that recording a packet costs little more than the cache misses.
const (
	// longSlot is for the extended profile: it fits a header, and the payload of an ACK with two ranges.
	longSlot = 128
	// shortSlot is for other profiles: it fits a header and three words.
	shortSlot = 64
	// slotHead is the number of bytes before the data.
	slotHead = 20
)

// SnapLength is the maximum number of bytes kept of a packet; ShortSnapLength applies to profiles other than extended.
const (
	SnapLength      = longSlot - slotHead
	ShortSnapLength = shortSlot - slotHead
)

// The longest headers fit.
const (
	_ = uint(SnapLength - protocol.ExtHeaderLen - protocol.AckLen - 2*protocol.AckRangeLen)
	_ = uint(ShortSnapLength - protocol.HeaderLen)
)

// entry is the contents of a slot.
type entry struct {
	at   int64 // nanoseconds on the engine's clock
	wire uint32
	peer int32 // or mpe.UnknownPeer
	kind entryKind
	// code is a state.DropReason, a state.Event, a coll.Collective, or the number of a part of a text, depending on
	// kind.
	code uint8
	data []byte
}

type entryKind uint8

const (
	entrySent entryKind = iota + 1
	entryReceived
	// entryForeign is a packet from an unknown address. Its data begins with the address, addressLen bytes.
	entryForeign
	entryDropped
	entryNoted
	// entryFailed holds a part of an error.
	entryFailed
	// entryCycle is the simulation cycle at the time of the preceding packet.
	entryCycle
	// entryPosted and entryEnded are calls.
	entryPosted
	entryEnded
)

// codeSend is the code of a call that sends a message. The code of a receive is 0.
const codeSend = 255

// packet reports whether the entry is a packet.
func (k entryKind) packet() bool { return k <= entryForeign }

// call reports whether the entry is a call.
func (k entryKind) call() bool { return k >= entryPosted }

// addressLen is the length in bytes of an IPv6 address and a port.
const addressLen = 16 + 2

// ring holds the last entries of one pair, or of several pairs of a rank.
type ring struct {
	mu    sync.Mutex
	mem   []byte // nil before the first entry if it is allocated on Go's heap
	slot  int    // size of a slot in bytes
	slots int
	at    int    // offset of the next entry in mem
	total uint64 // number of entries ever written
}

// size returns the size of the ring in bytes.
func (r *ring) size() int { return r.slot * r.slots }

// next begins an entry in the oldest slot, and returns the space for its data and for the data's length. The caller
// holds the lock.
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

// entryOf decodes the entry of a slot.
func entryOf(s []byte) entry {
	return entry{
		at: int64(binary.LittleEndian.Uint64(s)), wire: binary.LittleEndian.Uint32(s[8:]),
		peer: int32(binary.LittleEndian.Uint32(s[12:])),
		kind: entryKind(s[16]), code: s[17], data: s[slotHead : slotHead+int(s[18])],
	}
}

// oldest returns the number of the oldest entry still present.
func (r *ring) oldest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total - min(r.total, uint64(r.slots))
}

// readBatch is the number of entries copied at a time, which bounds the time that the rank waits for the lock.
const readBatch = 256

// read appends entries to list, beginning with number from: at most readBatch, and none after until. It returns the
// number of the next entry, the number of entries that were overwritten before they could be read, and whether there
// are more.
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
