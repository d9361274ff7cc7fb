package shm

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// An advertised buffer is the descriptor of a whole message; it stands behind the packet
// that announces it. That packet is read long before a receive may want the message, so the state is
// not in its record but in a slot of its own, until the message is done. What the
// record has in the state's place is the state in which the message may be copied. No
// two advertised buffers of a link have the same, and it says which slot it is.
const (
	// advertSlots is how many advertised buffers there are at a time, of each side.
	advertSlots = 64
	// slotLen is a cache line: two advertised buffers do not disturb each other.
	slotLen  = 64
	slotsLen = advertSlots * slotLen
	// advertBit is set in the length of such a record.
	advertBit = 1 << 30
	// states is how many values of the state one advertised buffer has.
	states = 4
)

// slotAt returns the state in a slot.
func slotAt(slots []byte, i int) *atomic.Uint64 { return word(slots[i*slotLen:]) }

// adverts is what the writer remembers of its advertised buffers.
type adverts struct {
	// slots are shared.
	slots []byte
	// used has a bit for each slot that is taken, and ids the numbers by which
	// invalidate ends those.
	used uint64
	ids  [advertSlots]uint64
	// good are the states in which they may be copied, and made is how many there
	// have been.
	good [advertSlots]uint64
	made uint64
}

// find returns the slot of the advertised buffer of that number, or -1.
func (o *adverts) find(id uint64) int {
	for left := o.used; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(left); o.ids[i] == id {
			return i
		}
	}
	return -1
}

// add makes an advertised buffer, and returns its slot, or -1 if there is none left.
func (o *adverts) add(id uint64) int {
	i := bits.TrailingZeros64(^o.used)
	if i == advertSlots || len(o.slots) == 0 {
		return -1
	}
	o.made++
	o.used |= 1 << i
	o.ids[i], o.good[i] = id, (o.made*advertSlots+uint64(i))*states+live
	slotAt(o.slots, i).Store(o.good[i])
	return i
}

// invalidate ends the advertised buffer of that number, or all of them if it is 0.
func (o *adverts) invalidate(id uint64) {
	for left := o.used; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(left); id == 0 || id == o.ids[i] {
			slotAt(o.slots, i).Store(o.good[i] - live + over)
			o.used &^= 1 << i
		}
	}
}

// advertise writes a packet that announces a message whose payload stays where it is until
// invalidate, or reports that there is no room for it. Where there is no slot left, the
// packet says nothing of the payload. A message that is announced again has one advertised buffer.
func (w *writer) advertise(header *[protocol.ExtHeaderLen]byte, payload []byte, id uint64) bool {
	slot := w.adverts.find(id)
	off, ok := w.place(recordLen(protocol.ExtHeaderLen + descriptorLen))
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
	l.payload.Store(uint64(len(payload)))
	l.state.Store(w.adverts.good[slot])
	w.publish(off, protocol.ExtHeaderLen+descriptorLen, advertBit)
	return true
}

// resolve makes an advertised buffer of the descriptor that was read, and reports
// whether that can be.
func (a *away) resolve(slots []byte) bool {
	a.advertised, a.good = true, a.state.Load()
	if a.good%states != live || len(slots) == 0 {
		return false
	}
	a.state = slotAt(slots, a.slot())
	return true
}

// slot is that of an advertised buffer.
func (a *away) slot() int { return int(a.good / states % advertSlots) }
