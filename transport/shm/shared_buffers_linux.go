package shm

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// A shared buffer is memory that its rank writes and all other ranks on the host read, for collective calls
// (collective.SharedBuffers). It begins with the states of the slots, on cache lines that no processor
// prefetches together. A state consists of the sequence, the epoch and, for each half, the last failed call and
// the digest and description of the last call. The slots follow, each with two halves. The system allocates
// memory only for pages that have been written.
const (
	sharedSlots   = 64
	stateLen      = 128
	sharedData    = sharedSlots * stateLen
	sharedSlotLen = 2 * SharedHalf
	sharedLen     = sharedData + sharedSlots*sharedSlotLen
)

// sharedBuffers holds the shared buffers of all ranks.
type sharedBuffers struct {
	fd     int
	ownMem []byte
	// slots is the number of slots that this process maps of each buffer, and mapped is the length in bytes of these
	// slots and the states. The members of a communicator agree on a slot mapped by all of them.
	slots, mapped int
	// peerBuffers holds the peers' buffers, indexed by rank. Data of a process remains readable after its exit, until
	// another process takes over the rank.
	peerBuffers []sharedBuffer
	// awaitedSlots contains a bit for each slot for which a call of Await is pending. Poll clears the bits.
	awaitedSlots  atomic.Uint64
	pendingAwaits [sharedSlots]struct {
		rank     atomic.Int64
		sequence atomic.Uint64
	}
}

// sharedBuffer is the shared buffer of a peer.
type sharedBuffer struct {
	mu  sync.Mutex
	mem []byte
	// leases is the number of communicators for which the buffer is leased. While it is positive, mu is locked. The
	// engine's lock guards it.
	leases int
}

// newSharedBuffers creates this rank's buffer. The memory always has sharedSlots slots, which occupy pages only once
// they are written, but the process maps only as many as fit in its address space.
func newSharedBuffers(ranks int) (buffers *sharedBuffers, err error) {
	buffers = &sharedBuffers{peerBuffers: make([]sharedBuffer, ranks), slots: affordableSlots(ranks)}
	buffers.mapped = sharedData + buffers.slots*sharedSlotLen
	if buffers.fd, err = sharedmem.Create(sharedLen); err != nil {
		return nil, err
	}
	if buffers.ownMem, err = sharedmem.MapPart(buffers.fd, sharedLen, buffers.mapped); err != nil {
		unix.Close(buffers.fd)
		return nil, err
	}
	return buffers, nil
}

// affordableSlots returns the number of slots per buffer for which the buffers of all ranks fit in a quarter of the
// process's free address space.
func affordableSlots(ranks int) int {
	left, limited := rlimit.AddressSpaceLeft()
	if !limited {
		return sharedSlots
	}
	return int(min(left/4/uint64(ranks)/sharedSlotLen, sharedSlots))
}

// setPeer makes mem the buffer of a rank, and takes ownership of it.
func (b *sharedBuffers) setPeer(rank int, mem []byte) {
	of := &b.peerBuffers[rank]
	of.mu.Lock()
	defer of.mu.Unlock()
	sharedmem.Unmap(of.mem)
	of.mem = mem
}

// free unmaps all buffers.
func (b *sharedBuffers) free() {
	for rank := range b.peerBuffers {
		b.setPeer(rank, nil)
	}
	sharedmem.Unmap(b.ownMem)
	b.ownMem = nil
}

// stateWord returns word i of the state of a slot.
func stateWord(mem []byte, slot, i int) *atomic.Uint64 { return wordAt(mem[slot*stateLen+8*i:]) }

func slotMemory(mem []byte, slot int) []byte {
	at := sharedData + slot*sharedSlotLen
	return mem[at : at+sharedSlotLen : at+sharedSlotLen]
}

// Slots implements collective.SharedBuffers.
func (c *Conn) Slots() (slots, half int) { return c.shared.slots, SharedHalf }

// Clear implements collective.SharedBuffers.
func (c *Conn) Clear(mask, sequence uint64) {
	for slot := range sharedSlots {
		if mask>>slot&1 != 0 {
			for i := range stateWords {
				stateWord(c.shared.ownMem, slot, i).Store(0)
			}
			stateWord(c.shared.ownMem, slot, sequenceWord).Store(sequence)
		}
	}
}

// Use implements collective.SharedBuffers.
func (c *Conn) Use(slot int, epoch uint64) { stateWord(c.shared.ownMem, slot, epochWord).Store(epoch) }

// Publish implements collective.SharedBuffers.
func (c *Conn) Publish(slot int, sequence uint64, members []int) {
	stateWord(c.shared.ownMem, slot, sequenceWord).Store(sequence)
	for _, rank := range members {
		if p := c.peers[rank]; p != nil {
			p.mu.Lock()
			if l := p.link; l != nil {
				l.peerDoorbell.wake()
			}
			p.mu.Unlock()
		}
	}
}

// Fail implements collective.SharedBuffers.
func (c *Conn) Fail(slot int, call uint64) {
	stateWord(c.shared.ownMem, slot, failedWord+int(call&1)).Store(call)
}

// Describe implements collective.SharedBuffers.
func (c *Conn) Describe(slot int, call, digest, description uint64) {
	stateWord(c.shared.ownMem, slot, digestWord+int(call&1)).Store(digest)
	stateWord(c.shared.ownMem, slot, descriptionWord+int(call&1)).Store(description)
}

// State implements collective.SharedBuffers.
func (c *Conn) State(rank, slot int, call uint64) (state collective.SlotState) {
	of := &c.shared.peerBuffers[rank]
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.mem == nil {
		return state
	}
	state.Sequence = stateWord(of.mem, slot, sequenceWord).Load() // must be loaded first: the rest was written before it
	state.Epoch = stateWord(of.mem, slot, epochWord).Load()
	state.Failed = stateWord(of.mem, slot, failedWord+int(call&1)).Load()
	state.BeforeFailed = stateWord(of.mem, slot, failedWord+int((call^1)&1)).Load()
	state.Digest = stateWord(of.mem, slot, digestWord+int(call&1)).Load()
	state.BeforeDigest = stateWord(of.mem, slot, digestWord+int((call^1)&1)).Load()
	return state
}

// Described implements collective.SharedBuffers.
func (c *Conn) Described(rank, slot int, call uint64) (digest, description uint64) {
	of := &c.shared.peerBuffers[rank]
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.mem == nil {
		return 0, 0
	}
	half := int(call & 1)
	return stateWord(of.mem, slot, digestWord+half).Load(), stateWord(of.mem, slot, descriptionWord+half).Load()
}

// View implements collective.SharedBuffers.
func (c *Conn) View(rank, slot int) (memory []byte, epoch uint64) {
	if rank == c.cfg.Rank {
		return slotMemory(c.shared.ownMem, slot), 0
	}
	of := &c.shared.peerBuffers[rank]
	of.mu.Lock()
	if of.mem == nil {
		return nil, 0
	}
	return slotMemory(of.mem, slot), stateWord(of.mem, slot, epochWord).Load()
}

// Release implements collective.SharedBuffers.
func (c *Conn) Release(rank int) {
	if rank != c.cfg.Rank {
		c.shared.peerBuffers[rank].mu.Unlock()
	}
}

// Await implements collective.SharedBuffers.
func (c *Conn) Await(rank, slot int, sequence uint64) {
	a := &c.shared.pendingAwaits[slot]
	a.rank.Store(int64(rank))
	a.sequence.Store(sequence)
	c.shared.awaitedSlots.Or(1 << slot)
	// The peer may have published after the caller checked. In that case, Sleep may have found neither a pending call
	// of Await nor anything to poll, and the peer will not ring again.
	if c.hasPublished(slot) {
		c.inbox.wake()
	}
}

// reportPublished reports completed calls of Await. A report may also end a newer call for the same slot, which the
// caller then retries if necessary.
func (c *Conn) reportPublished(batch []mpe.RxPacket) (n int) {
	for left := c.shared.awaitedSlots.Load(); left != 0 && n < len(batch); left &= left - 1 {
		if slot := bits.TrailingZeros64(left); c.hasPublished(slot) {
			c.shared.awaitedSlots.And(^uint64(1 << slot))
			batch[n] = mpe.RxPacket{Kind: mpe.RxPublished, Ticket: slot}
			n++
		}
	}
	return n
}

// hasPublished reports whether the pending call of Await for a slot is complete.
func (c *Conn) hasPublished(slot int) bool {
	a := &c.shared.pendingAwaits[slot]
	return c.State(int(a.rank.Load()), slot, 0).Sequence >= a.sequence.Load()
}

// anyPublished reports whether any call of Await is complete.
func (c *Conn) anyPublished() bool {
	for left := c.shared.awaitedSlots.Load(); left != 0; left &= left - 1 {
		if c.hasPublished(bits.TrailingZeros64(left)) {
			return true
		}
	}
	return false
}
