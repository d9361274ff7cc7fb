package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A descriptor stands behind the header of a packet whose payload is not in the ring:
// address and length of the payload in its sender's memory. The receiver copies it from there,
// and then changes the state from live to taken. The copy is valid only if that
// succeeded: a sender that needs its memory back changes the state from live to
// over before. So neither has to wait for the other, however long it takes.
//
// The states have the record's position in them: a state of an older record
// at the same place does not match.
type descriptor struct {
	state         atomic.Uint64
	addr, payload atomic.Uint64
}

const (
	descriptorLen = 24
	// descriptorOff is where in a record the descriptor is.
	descriptorOff = wordLen + protocol.ExtHeaderLen
	// descriptorBit is set in the length of such a record.
	descriptorBit = 1 << 31
	// The states of the record at position 0.
	live, taken, over = 1, 2, 3
)

// MinSingleCopy is from how many bytes of payload on it is quicker to have the kernel copy
// them once than to copy them twice.
const MinSingleCopy = 8 << 10

// nonceLen is the length in bytes of the number that a process is known by.
const nonceLen = 16

// maxSingleCopy is the longest payload of a packet in bytes that is exposed for a single copy. Longer ones are
// hardly faster, and the receiver does nothing else meanwhile.
const maxSingleCopy = 256 << 10

// LongPayload is the longest payload of a packet in bytes that is exposed over a ring of
// that size: it fits into the ring if the receiver cannot read it.
func LongPayload(ring int) int { return min(ring/4, maxSingleCopy) }

// descriptorAt returns the descriptor of the record at b.
func descriptorAt(b []byte) *descriptor {
	return (*descriptor)(unsafe.Pointer(&b[descriptorOff : descriptorOff+descriptorLen][0]))
}

// away is payload that is still in its sender's memory, as the reader sees it. Shared
// memory is read once, but for the state: the other side may change it.
type away struct {
	// state is that of the descriptor, or of the slot of the advertised buffer.
	state      *atomic.Uint64
	advertised bool
	short      bool // nothing is away: the packet has a short header
	// good is the state in which it may be copied.
	good          uint64
	addr, payload uint64
}

// readDescriptor reads the descriptor of the record at b, which has the position pos.
func readDescriptor(b []byte, pos uint64) away {
	l := descriptorAt(b)
	return away{state: &l.state, good: pos + live, addr: l.addr.Load(), payload: l.payload.Load()}
}

// valid reports whether the payload may be copied.
func (a *away) valid() bool { return a.state.Load() == a.good }

// confirm reports whether the copy is valid. The descriptor has ended.
func (a *away) confirm() bool { return a.state.CompareAndSwap(a.good, a.good-live+taken) }

// exposedPacket is what the writer keeps of a descriptor.
type exposedPacket struct {
	pos uint64
	// id is the number that ends it.
	id uint64
}

// expose writes a packet whose payload stays where it is until invalidate, or reports that
// there is no room for it.
func (w *writer) expose(header *[protocol.ExtHeaderLen]byte, payload []byte, id uint64) bool {
	off, ok := w.place(recordLen(protocol.ExtHeaderLen + descriptorLen))
	if !ok {
		return false
	}
	copy(w.ring[off+wordLen:], header[:])
	l := descriptorAt(w.ring[off:])
	l.addr.Store(uint64(uintptr(unsafe.Pointer(&payload[0]))))
	l.payload.Store(uint64(len(payload)))
	l.state.Store(w.pos + live)
	w.exposed = append(w.exposed, exposedPacket{pos: w.pos, id: id})
	w.publish(off, protocol.ExtHeaderLen+descriptorLen, descriptorBit)
	return true
}

// invalidate ends the descriptors and the advertised buffer of that number, or all of them if it is 0, and
// drops the descriptors at the beginning that have ended.
func (w *writer) invalidate(id uint64) {
	w.adverts.invalidate(id)
	first := 0
	for i, k := range w.exposed {
		ended := true
		// Otherwise there is another record in its place: it has been read.
		if w.pos-k.pos < uint64(len(w.ring)) {
			state := &descriptorAt(w.ring[k.pos&uint64(len(w.ring)-1):]).state
			if id == 0 || id == k.id {
				state.CompareAndSwap(k.pos+live, k.pos+over)
			}
			ended = state.Load() != k.pos+live
		}
		if ended && first == i {
			first++
		}
	}
	if first > 0 {
		w.exposed = w.exposed[:copy(w.exposed, w.exposed[first:])]
	}
}
