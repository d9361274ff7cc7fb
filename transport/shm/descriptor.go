package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A descriptor follows the header of a packet whose payload is not in the ring. It has the address and the
// length of the payload in its sender's memory. The receiver copies the payload from there, and then changes
// the state from live to taken. The copy is valid only if that succeeds: a sender that needs its memory back
// first changes the state from live to over. So neither side ever waits for the other, however long a copy
// takes.
//
// A state includes the position of its record: the state of an older record at the same place does not match.
type descriptor struct {
	state         atomic.Uint64
	addr, payload atomic.Uint64
}

const (
	descriptorLen = 24
	// descriptorOff is the offset of the descriptor in a record.
	descriptorOff = wordLen + protocol.ExtHeaderLen
	// descriptorBit is set in the length of a record with a descriptor.
	descriptorBit = 1 << 31
	// States of the record at position 0.
	live, taken, over = 1, 2, 3
)

// MinSingleCopy is the payload length in bytes from which one copy by the kernel is faster than two copies.
const MinSingleCopy = 8 << 10

// nonceLen is the length in bytes of the number that identifies a process.
const nonceLen = 16

// maxSingleCopy is the longest payload in bytes of a packet that is exposed for a single copy. Longer ones are
// hardly faster, and occupy the receiver meanwhile.
const maxSingleCopy = 256 << 10

// LongPayload returns the longest payload in bytes of a packet that is exposed over a ring of this size: it
// fits in the ring, in case the receiver cannot read it from memory.
func LongPayload(ring int) int { return min(ring/4, maxSingleCopy) }

// descriptorAt returns the descriptor of the record at b.
func descriptorAt(b []byte) *descriptor {
	return (*descriptor)(unsafe.Pointer(&b[descriptorOff : descriptorOff+descriptorLen][0]))
}

// away is payload that is still in its sender's memory, as seen by the reader. All shared memory but the state
// is read once, since the other side may change it.
type away struct {
	// state is the state of the descriptor, or of the advertised buffer's slot.
	state      *atomic.Uint64
	advertised bool
	short      bool // no payload is away: the packet has a short header
	// good is the state in which the payload may be copied.
	good          uint64
	addr, payload uint64
}

// readDescriptor reads the descriptor of the record at b, which is at position pos.
func readDescriptor(b []byte, pos uint64) away {
	l := descriptorAt(b)
	return away{state: &l.state, good: pos + live, addr: l.addr.Load(), payload: l.payload.Load()}
}

// valid reports whether the payload may be copied.
func (a *away) valid() bool { return a.state.Load() == a.good }

// confirm ends the descriptor, and reports whether the copy is valid.
func (a *away) confirm() bool { return a.state.CompareAndSwap(a.good, a.good-live+taken) }

// exposedPacket is the writer's record of a descriptor.
type exposedPacket struct {
	pos uint64
	// id is the number by which invalidate ends it.
	id uint64
}

// expose writes a packet whose payload stays in place until invalidate. It returns false if the ring is full.
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

// invalidate ends the descriptors and the advertised buffer with number id, or all of them if id is 0. It
// forgets the oldest descriptors, up to the first that is still live.
func (w *writer) invalidate(id uint64) {
	w.adverts.invalidate(id)
	first := 0
	for i, k := range w.exposed {
		ended := true
		// Otherwise another record is at its place: it has been read.
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
