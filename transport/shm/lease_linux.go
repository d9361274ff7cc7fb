package shm

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/lease"
)

// This file leases rings and shared buffers to C code, which uses them by the same rules. Nothing that is leased is
// unmapped: Poll frees the memory of links, and the engine takes a lease back before it polls; another process can take
// over a rank's buffer only when the buffer's mutex is free. Peers' mutexes are only tried here, because a goroutine
// that makes a link holds one while it waits for a buffer's mutex.

// address returns the address of memory that Go does not manage.
func address[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

// leasableLink returns the current link to a peer if C code can use it.
func (c *Conn) leasableLink(peer int) *link {
	p := c.peers[peer]
	if c.closed.Load() || c.linksChanged.Load() || c.inbox.linksPending || p == nil || !p.mu.TryLock() {
		return nil
	}
	defer p.mu.Unlock()
	l := p.link
	if l == nil || !l.reported || l.broken || l.ended.Load() || len(l.postponed) > 0 {
		return nil
	}
	return l
}

func (d *doorbell) lease() lease.Doorbell {
	return lease.Doorbell{Flag: address(&d.page[0]), Descriptor: int64(d.eventFD)}
}

// LeaseLink implements core.MemoryLessor. No goroutine may be polling the Conn.
func (c *Conn) LeaseLink(peer int, to *lease.Link) bool {
	l := c.leasableLink(peer)
	if l == nil {
		return false
	}
	out, in := &l.out, &l.in
	*to = lease.Link{
		Out: address(&out.ring[0]), In: address(&in.ring[0]), Size: uint64(len(out.ring)),
		OutHead: address(out.head), InHead: address(in.head),
		OutPos: out.pos, OutReadHead: out.readHead, OutCleared: out.clearedTo, InPos: in.pos, InPublished: in.published,
		Doorbell: l.peerDoorbell.lease(),
	}
	l.peer.leased = l
	return true
}

// ReturnLink implements core.MemoryLessor.
func (c *Conn) ReturnLink(peer int, from *lease.Link) {
	p := c.peers[peer]
	l := p.leased
	p.leased = nil
	l.out.pos, l.out.readHead, l.out.clearedTo = from.OutPos, from.OutReadHead, from.OutCleared
	l.in.pos, l.in.published = from.InPos, from.InPublished
}

// LeaseSlots implements collective.BufferLessor.
func (c *Conn) LeaseSlots(slot int, members []int, to *lease.Sharing) bool {
	for i, rank := range members {
		if rank == c.cfg.Rank {
			leaseSlot(to, i, c.shared.ownMem, slot)
			continue
		}
		l := c.leasableLink(rank)
		of := &c.shared.peerBuffers[rank]
		if l == nil || of.leases == 0 && !of.mu.TryLock() {
			c.ReturnSlots(members[:i])
			return false
		}
		of.leases++
		if of.mem == nil {
			c.ReturnSlots(members[:i+1])
			return false
		}
		to.Doorbells[i] = l.peerDoorbell.lease()
		leaseSlot(to, i, of.mem, slot)
	}
	return true
}

func leaseSlot(to *lease.Sharing, member int, mem []byte, slot int) {
	to.States[member], to.Slots[member] = address(stateWord(mem, slot, 0)), address(&slotMemory(mem, slot)[0])
}

// ReturnSlots implements collective.BufferLessor.
func (c *Conn) ReturnSlots(members []int) {
	for _, rank := range members {
		if rank == c.cfg.Rank {
			continue
		}
		of := &c.shared.peerBuffers[rank]
		if of.leases--; of.leases == 0 {
			of.mu.Unlock()
		}
	}
}
