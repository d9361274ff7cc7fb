package recorder

import (
	"encoding/binary"
	"sync"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A slot holds an entry: a packet, an event or a call. Rings consist of bytes, so that the garbage collector does not
// scan them. Slots consist of whole cache lines, so that recording a packet costs little more than the cache misses.
const (
	// longSlotSize is the slot size for the extended profile. A slot has space for a header and the payload of an ACK
	// with two ranges.
	longSlotSize = 128
	// shortSlotSize is the slot size for all other profiles. A slot has space for a header and three words.
	shortSlotSize = 64
	// slotHeaderLen is the number of bytes before the data.
	slotHeaderLen = 20
)

// SnapLength is the maximum number of bytes kept of a packet. ShortSnapLength applies to profiles other than extended.
const (
	SnapLength      = longSlotSize - slotHeaderLen
	ShortSnapLength = shortSlotSize - slotHeaderLen
)

// The longest headers fit.
const (
	_ = uint(SnapLength - protocol.ExtHeaderLen - protocol.AckLen - 2*protocol.AckRangeLen)
	_ = uint(ShortSnapLength - protocol.HeaderLen)
)

// entry is the contents of a slot.
type entry struct {
	engineTime int64 // nanoseconds on the engine's clock
	wireLen    uint32
	peer       int32 // or mpe.UnknownPeer
	kind       entryKind
	// code depends on kind. It is a state.DropReason, a state.Event, a coll.Collective, or the number of a part of a
	// text.
	code uint8
	data []byte
}

type entryKind uint8

const (
	entrySent entryKind = iota + 1
	entryReceived
	// entryForeign is a packet from an unknown address. The first addressLen bytes of its data are that address.
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

func (k entryKind) isPacket() bool { return k <= entryForeign }

func (k entryKind) isCall() bool { return k >= entryPosted }

// addressLen is the length in bytes of an IPv6 address and a port.
const addressLen = 16 + 2

// ring holds the most recent entries of one pair, or of several pairs of a rank.
type ring struct {
	mu          sync.Mutex
	mem         []byte // nil before the first entry if it is allocated on Go's heap
	slotSize    int    // size of a slot in bytes
	numSlots    int
	writeOffset int    // offset of the next entry in mem
	entryCount  uint64 // number of entries ever written
}

// size returns the size of the ring in bytes.
func (r *ring) size() int { return r.slotSize * r.numSlots }

// beginEntry begins an entry in the oldest slot. It returns the space for the entry's data, and the byte for the length
// of that data. The caller holds the lock.
func (r *ring) beginEntry(at int64, wire int, peer int32, kind entryKind, code uint8) (data []byte, length *byte) {
	if r.mem == nil {
		r.mem = make([]byte, r.size())
	}
	s := r.mem[r.writeOffset : r.writeOffset+r.slotSize]
	if r.writeOffset += r.slotSize; r.writeOffset == len(r.mem) {
		r.writeOffset = 0
	}
	r.entryCount++
	_ = s[slotHeaderLen]
	binary.LittleEndian.PutUint64(s, uint64(at))
	binary.LittleEndian.PutUint32(s[8:], uint32(wire))
	binary.LittleEndian.PutUint32(s[12:], uint32(peer))
	s[16], s[17] = byte(kind), code
	return s[slotHeaderLen:], &s[18]
}

// decodeEntry decodes the entry of a slot.
func decodeEntry(s []byte) entry {
	return entry{
		engineTime: int64(binary.LittleEndian.Uint64(s)), wireLen: binary.LittleEndian.Uint32(s[8:]),
		peer: int32(binary.LittleEndian.Uint32(s[12:])),
		kind: entryKind(s[16]), code: s[17], data: s[slotHeaderLen : slotHeaderLen+int(s[18])],
	}
}

// oldestEntry returns the number of the oldest entry still present.
func (r *ring) oldestEntry() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entryCount - min(r.entryCount, uint64(r.numSlots))
}

// readBatch is the number of entries copied at a time. It limits the time for which the rank waits for the lock.
const readBatch = 256

// readEntries appends entries to list, beginning with number from: at most readBatch, and none after until. It returns
// the number of the next entry, the number of entries that were overwritten before they could be read, and whether more
// entries follow.
func (r *ring) readEntries(list []entry, from uint64, until int64) (read []entry, next, lost uint64, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if oldest := r.entryCount - min(r.entryCount, uint64(r.numSlots)); from < oldest {
		from, lost = oldest, oldest-from
	}
	copied := make([]byte, 0, int(min(r.entryCount-from, readBatch))*r.slotSize)
	for ; from < r.entryCount; from++ {
		i := int(from%uint64(r.numSlots)) * r.slotSize
		if int64(binary.LittleEndian.Uint64(r.mem[i:])) > until {
			return list, from, lost, false
		}
		if len(copied) == cap(copied) {
			return list, from, lost, true
		}
		copied = append(copied, r.mem[i:i+r.slotSize]...)
		list = append(list, decodeEntry(copied[len(copied)-r.slotSize:]))
	}
	return list, from, lost, false
}
