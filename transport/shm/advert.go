package shm

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// An advertised buffer is a descriptor of a whole message. It follows the packet that announces the message. The
// receiver reads that packet long before a receive may match the message, so the state of the buffer is kept in a
// separate slot until the message is complete, not in the record. In place of the state, the record contains the slot
// value with which the message may be copied. The value is unique among the advertised buffers of a link, and encodes
// the slot.
const (
	// advertSlots is the maximum number of advertised buffers on each side.
	advertSlots = 64
	// slotLen is the length of a slot. It is that of a cache line, so that no two advertised buffers share a line.
	slotLen  = 64
	slotsLen = advertSlots * slotLen
	// advertBit is set in the length of a record if an advertised buffer follows the header.
	advertBit = 1 << 30
	// statesPerAdvert is the number of consecutive values of a slot's state that one advertised buffer uses.
	statesPerAdvert = 4
)

// slotAt returns the state in slot i.
func slotAt(slots []byte, i int) *atomic.Uint64 { return wordAt(slots[i*slotLen:]) }

// advertTable lists the advertised buffers of a writer.
type advertTable struct {
	// slots is in shared memory.
	slots []byte
	// usedSlots contains a bit for each slot in use. ids contains the message number of each buffer, by which
	// invalidate finds it.
	usedSlots uint64
	ids       [advertSlots]uint64
	// validStates contains, for each buffer, the state value in which it may be copied. created counts all buffers ever
	// advertised.
	validStates [advertSlots]uint64
	created     uint64
}

// find returns the slot of the advertised buffer with number id, or -1.
func (o *advertTable) find(id uint64) int {
	for left := o.usedSlots; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(left); o.ids[i] == id {
			return i
		}
	}
	return -1
}

// add creates an advertised buffer numbered id and returns its slot, or -1 if no slot is free.
func (o *advertTable) add(id uint64) int {
	i := bits.TrailingZeros64(^o.usedSlots)
	if i == advertSlots || len(o.slots) == 0 {
		return -1
	}
	o.created++
	o.usedSlots |= 1 << i
	o.ids[i], o.validStates[i] = id, (o.created*advertSlots+uint64(i))*statesPerAdvert+stateLive
	slotAt(o.slots, i).Store(o.validStates[i])
	return i
}

// invalidate revokes the advertised buffer with number id, or all of them if id is 0.
func (o *advertTable) invalidate(id uint64) {
	for left := o.usedSlots; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(left); id == 0 || id == o.ids[i] {
			slotAt(o.slots, i).Store(o.validStates[i] - stateLive + stateRevoked)
			o.usedSlots &^= 1 << i
		}
	}
}

// advertise writes a packet that announces a message whose payload remains in the sender's memory. The payload must
// remain valid until invalidate is called. advertise returns false if the ring is full. If no slot is free, it writes
// the packet without an advertised buffer. A message that is announced again keeps its advertised buffer.
func (w *writer) advertise(header *[protocol.ExtHeaderLen]byte, payload []byte, id uint64) bool {
	slot := w.adverts.find(id)
	off, ok := w.reserve(recordLen(protocol.ExtHeaderLen + descriptorLen))
	if !ok {
		return false
	}
	if slot < 0 {
		slot = w.adverts.add(id)
	}
	copy(w.ring[off+wordLen:], header[:])
	if slot < 0 {
		w.publish(off, protocol.ExtHeaderLen, 0)
		return true
	}
	l := descriptorAt(w.ring[off:])
	l.addr.Store(uint64(uintptr(unsafe.Pointer(&payload[0]))))
	l.payloadLen.Store(uint64(len(payload)))
	l.state.Store(w.adverts.validStates[slot])
	w.publish(off, protocol.ExtHeaderLen+descriptorLen, advertBit)
	return true
}

// resolve turns a descriptor read from the ring into an advertised buffer, and reports whether it is valid.
func (a *remotePayload) resolve(slots []byte) bool {
	a.isAdvertised, a.liveState = true, a.state.Load()
	if a.liveState%statesPerAdvert != stateLive || len(slots) == 0 {
		return false
	}
	a.state = slotAt(slots, a.slot())
	return true
}

// slot returns the slot of an advertised buffer.
func (a *remotePayload) slot() int { return int(a.liveState / statesPerAdvert % advertSlots) }
