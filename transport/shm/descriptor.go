package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A descriptor follows the header of a packet whose payload is not in the ring. It contains the address and the length
// of the payload in the sender's memory. The receiver copies the payload from there, and then changes the state from
// live to copied. The copy is valid only if that change succeeds: a sender that needs its memory back earlier changes
// the state from live to revoked. Therefore neither side ever waits for the other, however long a copy takes.
//
// A state includes the position of its record, so that it never matches the state of an older record at the same
// offset.
type descriptor struct {
	state            atomic.Uint64
	addr, payloadLen atomic.Uint64
}

const (
	descriptorLen = 24
	// descriptorOff is the offset of the descriptor in a record.
	descriptorOff = wordLen + protocol.ExtHeaderLen
	// descriptorBit is set in the length of a record if a descriptor follows the header.
	descriptorBit = 1 << 31
	// States of a descriptor whose record is at position 0.
	stateLive, stateCopied, stateRevoked = 1, 2, 3
)

// MinSingleCopy is the payload length in bytes from which a single copy by the kernel is faster than two copies
// through the ring.
const MinSingleCopy = 8 << 10

// nonceLen is the length in bytes of the number that identifies a process.
const nonceLen = 16

// maxSingleCopy is the maximum payload length, in bytes, of a packet exposed for a single copy. Copying longer payloads
// is hardly faster, and occupies the receiver for longer.
const maxSingleCopy = 256 << 10

// LongPayload returns the maximum payload length in bytes of a packet exposed on a link with rings of this size. Such a
// payload also fits in the ring, through which it is sent if the receiver cannot read the sender's memory.
func LongPayload(ring int) int { return min(ring/4, maxSingleCopy) }

// descriptorAt returns the descriptor of the record at b.
func descriptorAt(b []byte) *descriptor {
	return (*descriptor)(unsafe.Pointer(&b[descriptorOff : descriptorOff+descriptorLen][0]))
}

// remotePayload is the reader's view of payload that is still in its sender's memory. Except for the state, all shared
// memory is read only once, because the other side may change it.
type remotePayload struct {
	// state points to the state of the descriptor, or to the slot of the advertised buffer.
	state        *atomic.Uint64
	isAdvertised bool
	isShort      bool // the packet has a short header, and its payload is in the ring
	// liveState is the value that the state has as long as the payload may be copied.
	liveState        uint64
	addr, payloadLen uint64
}

// readDescriptor reads the descriptor of the record at b. pos is the position of the record.
func readDescriptor(b []byte, pos uint64) remotePayload {
	l := descriptorAt(b)
	return remotePayload{state: &l.state, liveState: pos + stateLive, addr: l.addr.Load(), payloadLen: l.payloadLen.Load()}
}

// isValid reports whether the payload may still be copied.
func (a *remotePayload) isValid() bool { return a.state.Load() == a.liveState }

// confirmCopy marks the payload as copied, and reports whether the copy is valid.
func (a *remotePayload) confirmCopy() bool {
	return a.state.CompareAndSwap(a.liveState, a.liveState-stateLive+stateCopied)
}

// exposedPacket is what the writer remembers of a descriptor: its position and the number of its message.
type exposedPacket struct {
	pos uint64
	// id is the message number by which invalidate finds the descriptor.
	id uint64
}

// expose writes a packet whose payload is not copied. The payload must remain valid until invalidate is called.
// expose returns false if the ring is full.
func (w *writer) expose(header *[protocol.ExtHeaderLen]byte, payload []byte, id uint64) bool {
	off, ok := w.reserve(recordLen(protocol.ExtHeaderLen + descriptorLen))
	if !ok {
		return false
	}
	copy(w.ring[off+wordLen:], header[:])
	l := descriptorAt(w.ring[off:])
	l.addr.Store(uint64(uintptr(unsafe.Pointer(&payload[0]))))
	l.payloadLen.Store(uint64(len(payload)))
	l.state.Store(w.pos + stateLive)
	w.exposed = append(w.exposed, exposedPacket{pos: w.pos, id: id})
	w.publish(off, protocol.ExtHeaderLen+descriptorLen, descriptorBit)
	return true
}

// invalidate revokes the descriptors and the advertised buffer with number id, or all of them if id is 0. It forgets
// the oldest descriptors up to the first live one.
func (w *writer) invalidate(id uint64) {
	w.adverts.invalidate(id)
	first := 0
	for i, packet := range w.exposed {
		ended := true
		// Otherwise the reader is done with the packet, and another record may be in its place.
		if w.pos-packet.pos < uint64(len(w.ring)) {
			state := &descriptorAt(w.ring[packet.pos&uint64(len(w.ring)-1):]).state
			if id == 0 || id == packet.id {
				state.CompareAndSwap(packet.pos+stateLive, packet.pos+stateRevoked)
			}
			ended = state.Load() != packet.pos+stateLive
		}
		if ended && first == i {
			first++
		}
	}
	if first > 0 {
		w.exposed = w.exposed[:copy(w.exposed, w.exposed[first:])]
	}
}
