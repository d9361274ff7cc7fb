package shm

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A ring is written by one side and read by the other. It is a row of records, each
// at a multiple of recordAlign: a word, and the packet behind it. The word is 0 until
// the packet is there, so that the reader learns of it and gets its beginning by one
// and the same cache line. Then it is the record's position, in units of recordAlign,
// and the packet's length or, where the ring's rest is too short for the next packet,
// padding. With descriptorBit or advertBit in the length, header and descriptor are all that is
// there.
// Positions are counted from the start of the link and never wrap around.
const (
	// recordAlign is a cache line.
	recordAlign = 64
	wordLen     = 8
	// padding is the length in a word that says that the next record is at the
	// beginning of the ring.
	padding = 1<<32 - 1
	// prepared is how many bytes prepare looks ahead.
	prepared = 4 * recordAlign
	// shortBit in the length says that a short header is there in the place of a header.
	shortBit = 1 << 29
	// publishParts is by which part of the ring what was read may lie back before
	// the writer sees: each update costs it a cache line.
	publishParts = 16
)

// errBroken says that what stands in a ring cannot be.
var errBroken = errors.New("the shared memory is invalid")

// word returns the 64 bits at b, which is aligned to them.
func word(b []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[:wordLen][0])) }

// recordLen is the length of the record of a packet of n bytes.
func recordLen(n int) int { return (wordLen + n + recordAlign - 1) &^ (recordAlign - 1) }

// ringSize reports whether a ring may have n bytes.
func ringSize(n int) bool { return n >= MinRing && n <= MaxRing && n&(n-1) == 0 }

// pollBytes is about how many bytes one Poll returns at most, so that the room of what
// was read is given back while there is more to come.
func pollBytes(ring int) int { return min(ring/8, 64<<10) }

// makeWord returns the word of a record.
func makeWord(pos uint64, length uint32) uint64 {
	return pos/recordAlign<<32 | uint64(length)
}

// writer is the side of a ring that puts packets in.
type writer struct {
	ring []byte
	// head is shared: up to where the reader has read.
	head *atomic.Uint64
	// pos is where the next record goes, and read the last that is known of head. The words of
	// all multiples of recordAlign from pos up to clean are 0.
	pos, read, clean uint64
	// exposed are those that may not have ended, the oldest first.
	exposed []exposedPacket
	adverts adverts
}

// putShort writes a packet with a short header, or reports that there is no room for it.
func (w *writer) putShort(h *protocol.ShortHeader, payload []byte) bool {
	length := protocol.ShortHeaderLen + len(payload)
	off, ok := w.place(recordLen(length))
	if !ok {
		return false
	}
	packet := w.ring[off+wordLen : off+wordLen+length]
	h.Put((*[protocol.ShortHeaderLen]byte)(packet))
	copy(packet[protocol.ShortHeaderLen:], payload)
	w.publish(off, length, shortBit)
	return true
}

// put writes a packet, or reports that there is no room for it.
func (w *writer) put(header *[protocol.ExtHeaderLen]byte, payload []byte) bool {
	length := protocol.ExtHeaderLen + len(payload)
	off, ok := w.place(recordLen(length))
	if !ok {
		return false
	}
	packet := w.ring[off+wordLen : off+wordLen+length]
	copy(packet[protocol.ExtHeaderLen:], payload)
	copy(packet, header[:])
	w.publish(off, length, 0)
	return true
}

// place finds the room for the next record and returns where it is, or reports that
// there is none.
func (w *writer) place(record int) (off int, ok bool) {
	size := len(w.ring)
	off = int(w.pos & uint64(size-1))
	pad := 0
	if record > size-off {
		pad = size - off
	}
	// The word behind the record has to be cleared, and so to be free.
	if !w.room(pad + record + recordAlign) {
		return 0, false
	}
	if pad > 0 {
		w.clearUpTo(w.pos + uint64(pad))
		word(w.ring[off:]).Store(makeWord(w.pos, padding))
		w.pos += uint64(pad)
		off = 0
	}
	return off, true
}

// publish lets the reader have the record at off, with so many bytes behind its word.
func (w *writer) publish(off, length int, bit uint32) {
	next := w.pos + uint64(recordLen(length))
	w.clearUpTo(next)
	word(w.ring[off:]).Store(makeWord(w.pos, uint32(length)|bit))
	w.pos = next
}

// clearUpTo clears the word at pos, and those before it that will not be part of a record.
func (w *writer) clearUpTo(pos uint64) {
	if pos < w.clean {
		return
	}
	off := int(pos & uint64(len(w.ring)-1))
	clear(w.ring[off : off+wordLen])
	w.clean = pos + recordAlign
}

// prepare clears the words behind the next record, as far as there is room, so that short records find
// them clear, and their lines in the cache: the reader has had them.
func (w *writer) prepare() {
	for w.clean < w.pos+prepared && w.clean+recordAlign-w.read <= uint64(len(w.ring)) {
		w.clearUpTo(w.clean)
	}
}

// room reports whether the next n bytes are free.
func (w *writer) room(n int) bool {
	size := uint64(len(w.ring))
	if w.pos+uint64(n)-w.read <= size {
		return true
	}
	head := w.head.Load()
	if head > w.pos || head < w.read {
		return false // it cannot be; it is the reader's loss
	}
	w.read = head
	return w.pos+uint64(n)-w.read <= size
}

// reader is the side of a ring that takes packets out.
type reader struct {
	ring []byte
	head *atomic.Uint64
	// pos is where the next record will be, and published the value of head.
	pos, published uint64
	// slots are shared: what became of the writer's advertised buffers.
	slots []byte
}

// ready reports whether there is something to be read.
func (r *reader) ready() bool {
	return word(r.ring[r.pos&uint64(len(r.ring)-1):]).Load() != 0
}

// nextInto returns the next packet, nil if there is none, or errBroken. The bytes are the
// ring's, and valid until release; the other side may change them nevertheless. If
// payload is not in the ring, of the packet or of the message that it announces, they are its
// header, and a says where it is, or that the header is a short one.
func (r *reader) nextInto(a *away) (packet []byte, err error) {
	*a = away{}
	size := len(r.ring)
	for {
		off := int(r.pos & uint64(size-1))
		w := word(r.ring[off:]).Load()
		if w == 0 {
			return nil, nil
		}
		length := w & (1<<32 - 1)
		if w-length != makeWord(r.pos, 0) {
			return nil, errBroken
		}
		if length == padding && off > 0 {
			r.pos += uint64(size - off)
			continue
		}
		if length&shortBit != 0 {
			length &^= shortBit
			if length < protocol.ShortHeaderLen || length > protocol.ShortHeaderLen+MaxPayload || recordLen(int(length)) > size-off {
				return nil, errBroken
			}
			r.pos += uint64(recordLen(int(length)))
			from, to := off+wordLen, off+wordLen+int(length)
			a.short = true
			return r.ring[from:to:to], nil
		}
		hasDescriptor, advertised := length&(descriptorBit|advertBit) != 0, length&advertBit != 0
		length &^= descriptorBit | advertBit
		if length < protocol.ExtHeaderLen || length > uint64(protocol.ExtHeaderLen+LongPayload(size)) ||
			hasDescriptor && length != protocol.ExtHeaderLen+descriptorLen {
			return nil, errBroken
		}
		record := recordLen(int(length))
		if record > size-off {
			return nil, errBroken
		}
		if hasDescriptor {
			most, good := LongPayload(size), true
			*a = readDescriptor(r.ring[off:], r.pos)
			if advertised {
				most, good = maxSingleCopy, a.resolve(r.slots)
			}
			if !good || a.payload == 0 || a.payload > uint64(most) {
				return nil, errBroken
			}
			length = protocol.ExtHeaderLen
		}
		r.pos += uint64(record)
		from, to := off+wordLen, off+wordLen+int(length)
		return r.ring[from:to:to], nil
	}
}

// release gives back the room of all that next has returned.
func (r *reader) release() {
	if r.pos-r.published >= uint64(len(r.ring)/publishParts) {
		r.published = r.pos
		r.head.Store(r.pos)
	}
}
