package shm

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A ring is written by one side and read by the other. It is a sequence of records, each at a multiple of recordAlign.
// A record is a word followed by a packet. The word is 0 until the packet is complete, so the reader can poll it, and
// gets the start of the packet with the same cache line. The complete record's word contains its position, in units of
// recordAlign, and the packet's length. If the part before the end of the ring is too short for the next packet, the
// word there contains padding instead of a length. With descriptorBit or advertBit in the length, the record contains
// only a header and a descriptor. Positions count bytes from the start of the link and never wrap around.
const (
	// recordAlign is the alignment of records, which is the length of a cache line.
	recordAlign = 64
	wordLen     = 8
	// paddingLength takes the place of a record's length if the next record is at the start of the ring.
	paddingLength = 1<<32 - 1
	// prepareLen is the number of bytes that prepare clears in advance.
	prepareLen = 4 * recordAlign
	// shortBit is set in the length of a record if its header is a short one.
	shortBit = 1 << 29
	// publishParts determines how often the reader updates the head: whenever it has read this fraction
	// (1/publishParts) of the ring. Each update costs the writer a cache miss.
	publishParts = 16
)

// errCorruptRing reports invalid content of a ring.
var errCorruptRing = errors.New("the shared memory is invalid")

// wordAt returns the 64-bit word that begins at b, which must be aligned.
func wordAt(b []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[:wordLen][0])) }

// recordLen returns the length of a record that holds a packet of n bytes.
func recordLen(n int) int { return (wordLen + n + recordAlign - 1) &^ (recordAlign - 1) }

// isRingSize reports whether n is a valid ring size.
func isRingSize(n int) bool { return n >= MinRing && n <= MaxRing && n&(n-1) == 0 }

// maxPollBytes returns the approximate maximum number of bytes that one Poll returns. The limit ensures that space
// is released while more packets are pending.
func maxPollBytes(ring int) int { return min(ring/8, 64<<10) }

// recordWord returns the word of a record.
func recordWord(pos uint64, length uint32) uint64 {
	return pos/recordAlign<<32 | uint64(length)
}

// writer is the sending side of a ring.
type writer struct {
	ring []byte
	// head is the position up to which the reader has released the ring. It is in shared memory.
	head *atomic.Uint64
	// pos is the position of the next record. readHead is the last known value of head. The words at all multiples of
	// recordAlign from pos up to clearedTo are 0.
	pos, readHead, clearedTo uint64
	// exposed holds the descriptors that may still be live, oldest first.
	exposed []exposedPacket
	adverts advertTable
}

// putShort writes a packet with a short header. It returns false if the ring is full.
func (w *writer) putShort(header *protocol.ShortHeader, payload []byte) bool {
	length := protocol.ShortHeaderLen + len(payload)
	off, ok := w.reserve(recordLen(length))
	if !ok {
		return false
	}
	packet := w.ring[off+wordLen : off+wordLen+length]
	header.Put((*[protocol.ShortHeaderLen]byte)(packet))
	copy(packet[protocol.ShortHeaderLen:], payload)
	w.publish(off, length, shortBit)
	return true
}

// put writes a packet. It returns false if the ring is full.
func (w *writer) put(header *[protocol.ExtHeaderLen]byte, payload []byte) bool {
	length := protocol.ExtHeaderLen + len(payload)
	off, ok := w.reserve(recordLen(length))
	if !ok {
		return false
	}
	packet := w.ring[off+wordLen : off+wordLen+length]
	copy(packet[protocol.ExtHeaderLen:], payload)
	copy(packet, header[:])
	w.publish(off, length, 0)
	return true
}

// reserve returns the offset of the next record. It returns false if the record does not fit.
func (w *writer) reserve(record int) (off int, ok bool) {
	size := len(w.ring)
	off = int(w.pos & uint64(size-1))
	pad := 0
	if record > size-off {
		pad = size - off
	}
	// The word after the record is cleared as well, so it must be free.
	if !w.hasSpace(pad + record + recordAlign) {
		return 0, false
	}
	if pad > 0 {
		w.clearUpTo(w.pos + uint64(pad))
		wordAt(w.ring[off:]).Store(recordWord(w.pos, paddingLength))
		w.pos += uint64(pad)
		off = 0
	}
	return off, true
}

// publish makes the record at off, with length bytes after its word, visible to the reader.
func (w *writer) publish(off, length int, bit uint32) {
	next := w.pos + uint64(recordLen(length))
	w.clearUpTo(next)
	wordAt(w.ring[off:]).Store(recordWord(w.pos, uint32(length)|bit))
	w.pos = next
}

// clearUpTo clears the word at pos. The words between clearedTo and pos become part of a record.
func (w *writer) clearUpTo(pos uint64) {
	if pos < w.clearedTo {
		return
	}
	off := int(pos & uint64(len(w.ring)-1))
	clear(w.ring[off : off+wordLen])
	w.clearedTo = pos + recordAlign
}

// prepare clears the free words after the next record. Short records then find their words cleared and in the writer's
// cache, although the lines were in the reader's cache before.
func (w *writer) prepare() {
	for w.clearedTo < w.pos+prepareLen && w.clearedTo+recordAlign-w.readHead <= uint64(len(w.ring)) {
		w.clearUpTo(w.clearedTo)
	}
}

// hasSpace reports whether the next n bytes are free.
func (w *writer) hasSpace(n int) bool {
	size := uint64(len(w.ring))
	if w.pos+uint64(n)-w.readHead <= size {
		return true
	}
	head := w.head.Load()
	if head > w.pos || head < w.readHead {
		return false // head is invalid; the reader loses the packets
	}
	w.readHead = head
	return w.pos+uint64(n)-w.readHead <= size
}

// reader is the receiving side of a ring.
type reader struct {
	ring []byte
	head *atomic.Uint64
	// pos is the position of the next record. published is the last value written to head.
	pos, published uint64
	// slots holds the states of the writer's advertised buffers, in shared memory.
	slots []byte
}

// ready reports whether a record is available.
func (r *reader) ready() bool {
	return wordAt(r.ring[r.pos&uint64(len(r.ring)-1):]).Load() != 0
}

// nextInto returns the next packet, nil if no packet is available, or errCorruptRing. The bytes are in the ring and
// valid until release, but the other side may still change them. If the payload of the packet, or of the message that
// it announces, is not in the ring, nextInto returns only the header, and sets payload to the location of the payload.
// payload.isShort reports whether the header is a short one.
func (r *reader) nextInto(payload *remotePayload) (packet []byte, err error) {
	*payload = remotePayload{}
	size := len(r.ring)
	for {
		off := int(r.pos & uint64(size-1))
		w := wordAt(r.ring[off:]).Load()
		if w == 0 {
			return nil, nil
		}
		length := w & (1<<32 - 1)
		if w-length != recordWord(r.pos, 0) {
			return nil, errCorruptRing
		}
		if length == paddingLength && off > 0 {
			r.pos += uint64(size - off)
			continue
		}
		if length&shortBit != 0 {
			length &^= shortBit
			if length < protocol.ShortHeaderLen || length > protocol.ShortHeaderLen+MaxPayload ||
				recordLen(int(length)) > size-off {
				return nil, errCorruptRing
			}
			r.pos += uint64(recordLen(int(length)))
			from, to := off+wordLen, off+wordLen+int(length)
			payload.isShort = true
			return r.ring[from:to:to], nil
		}
		hasDescriptor, advertised := length&(descriptorBit|advertBit) != 0, length&advertBit != 0
		length &^= descriptorBit | advertBit
		if length < protocol.ExtHeaderLen || length > uint64(protocol.ExtHeaderLen+LongPayload(size)) ||
			hasDescriptor && length != protocol.ExtHeaderLen+descriptorLen {
			return nil, errCorruptRing
		}
		record := recordLen(int(length))
		if record > size-off {
			return nil, errCorruptRing
		}
		if hasDescriptor {
			most, good := LongPayload(size), true
			*payload = readDescriptor(r.ring[off:], r.pos)
			if advertised {
				most, good = maxSingleCopy, payload.resolve(r.slots)
			}
			if !good || payload.payloadLen == 0 || payload.payloadLen > uint64(most) {
				return nil, errCorruptRing
			}
			length = protocol.ExtHeaderLen
		}
		r.pos += uint64(record)
		from, to := off+wordLen, off+wordLen+int(length)
		return r.ring[from:to:to], nil
	}
}

// release frees the space of all packets that nextInto returned.
func (r *reader) release() {
	if r.pos-r.published >= uint64(len(r.ring)/publishParts) {
		r.published = r.pos
		r.head.Store(r.pos)
	}
}
