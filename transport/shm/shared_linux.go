package shm

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// A shared buffer is memory that its rank writes and all others of the host read, for
// collective calls (collective.SharedBuffers). It begins with the state of each slot, on cache lines
// that no processor fetches together: the sequence, for each half the call that has failed
// last, and the epoch. Behind that are the slots, of two halves each. Memory that nothing was written to is not used.
const (
	sharedSlots = 64
	sharedHalf  = 256 << 10
	stateLen    = 128
	sharedData  = sharedSlots * stateLen
	sharedLen   = sharedData + sharedSlots*2*sharedHalf
)

// sharedBuffers are those of all ranks.
type sharedBuffers struct {
	fd  int
	own []byte
	// of has those of the peers, by rank. What a process has published is read also when it has
	// ended, until another one is the rank.
	of []sharedBuffer
	// awaited has a bit for each slot whose await is under way. Poll takes it away.
	awaited atomic.Uint64
	awaits  [sharedSlots]struct {
		rank     atomic.Int64
		sequence atomic.Uint64
	}
}

// sharedBuffer is a peer's.
type sharedBuffer struct {
	mu  sync.Mutex
	mem []byte
}

func newSharedBuffers(ranks int) (b *sharedBuffers, err error) {
	b = &sharedBuffers{of: make([]sharedBuffer, ranks)}
	if b.fd, err = sharedmem.Create(sharedLen); err != nil {
		return nil, err
	}
	if b.own, err = sharedmem.Map(b.fd, sharedLen); err != nil {
		unix.Close(b.fd)
		return nil, err
	}
	return b, nil
}

// set makes mem that of a rank, and takes it over.
func (b *sharedBuffers) set(rank int, mem []byte) {
	of := &b.of[rank]
	of.mu.Lock()
	defer of.mu.Unlock()
	sharedmem.Unmap(of.mem)
	of.mem = mem
}

// free gives all of it back.
func (b *sharedBuffers) free() {
	for rank := range b.of {
		b.set(rank, nil)
	}
	sharedmem.Unmap(b.own)
	b.own = nil
}

// state is a word of the state of a slot: 0 is the sequence, 1 and 2 are what has failed, 3 is the epoch.
func state(mem []byte, slot, i int) *atomic.Uint64 { return word(mem[slot*stateLen+8*i:]) }

// failed is which word is for a call.
func failed(call uint64) int { return 1 + int(call&1) }

func slotOf(mem []byte, slot int) []byte {
	at := sharedData + slot*2*sharedHalf
	return mem[at : at+2*sharedHalf : at+2*sharedHalf]
}

// Slots implements collective.SharedBuffers.
func (c *Conn) Slots() (slots, half int) { return sharedSlots, sharedHalf }

// Clear implements collective.SharedBuffers.
func (c *Conn) Clear(mask, sequence uint64) {
	for slot := range sharedSlots {
		if mask>>slot&1 != 0 {
			own := c.shared.own
			state(own, slot, 1).Store(0)
			state(own, slot, 2).Store(0)
			state(own, slot, 3).Store(0)
			state(own, slot, 0).Store(sequence)
		}
	}
}

// Use implements collective.SharedBuffers.
func (c *Conn) Use(slot int, epoch uint64) { state(c.shared.own, slot, 3).Store(epoch) }

// Publish implements collective.SharedBuffers.
func (c *Conn) Publish(slot int, sequence uint64, members []int) {
	state(c.shared.own, slot, 0).Store(sequence)
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
func (c *Conn) Fail(slot int, call uint64) { state(c.shared.own, slot, failed(call)).Store(call) }

// State implements collective.SharedBuffers.
func (c *Conn) State(rank, slot int, call uint64) (sequence, last, epoch uint64) {
	of := &c.shared.of[rank]
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.mem == nil {
		return 0, 0, 0
	}
	sequence = state(of.mem, slot, 0).Load()
	return sequence, state(of.mem, slot, failed(call)).Load(), state(of.mem, slot, 3).Load()
}

// View implements collective.SharedBuffers.
func (c *Conn) View(rank, slot int) (memory []byte, epoch uint64) {
	if rank == c.cfg.Rank {
		return slotOf(c.shared.own, slot), 0
	}
	of := &c.shared.of[rank]
	of.mu.Lock()
	if of.mem == nil {
		return nil, 0
	}
	return slotOf(of.mem, slot), state(of.mem, slot, 3).Load()
}

// Release implements collective.SharedBuffers.
func (c *Conn) Release(rank int) {
	if rank != c.cfg.Rank {
		c.shared.of[rank].mu.Unlock()
	}
}

// Await implements collective.SharedBuffers.
func (c *Conn) Await(rank, slot int, sequence uint64) {
	a := &c.shared.awaits[slot]
	a.rank.Store(int64(rank))
	a.sequence.Store(sequence)
	c.shared.awaited.Or(1 << slot)
}

// published reports the awaits that have ended. An await that takes the place of one that has is
// reported with it, and is made again if need be.
func (c *Conn) published(batch []mpe.RxPacket) (n int) {
	for left := c.shared.awaited.Load(); left != 0 && n < len(batch); left &= left - 1 {
		if slot := bits.TrailingZeros64(left); c.hasPublished(slot) {
			c.shared.awaited.And(^uint64(1 << slot))
			batch[n] = mpe.RxPacket{Kind: mpe.RxPublished, Ticket: slot}
			n++
		}
	}
	return n
}

// hasPublished reports whether the await of a slot, of which there is one, is over.
func (c *Conn) hasPublished(slot int) bool {
	a := &c.shared.awaits[slot]
	sequence, _, _ := c.State(int(a.rank.Load()), slot, 0)
	return sequence >= a.sequence.Load()
}

// anyPublished reports whether any await is over.
func (c *Conn) anyPublished() bool {
	for left := c.shared.awaited.Load(); left != 0; left &= left - 1 {
		if c.hasPublished(bits.TrailingZeros64(left)) {
			return true
		}
	}
	return false
}
