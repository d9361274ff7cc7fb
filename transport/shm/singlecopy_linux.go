package shm

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Sharing returns the number of links, and the number of links that fetch long payload by single copy in both
// directions.
func (c *Conn) Sharing() (links, singleCopy int) {
	for _, p := range c.peers {
		if p == nil {
			continue
		}
		p.mu.Lock()
		if l := p.link; l != nil {
			links++
			if l.canExpose && l.canFetch {
				singleCopy++
			}
		}
		p.mu.Unlock()
	}
	return links, singleCopy
}

// LongPayload returns the maximum payload length in bytes of an exposed packet to peer. It is 0 if the peer cannot
// fetch payload, or if the Conn is pipelined and the peer is near. The result may change with every packet.
func (c *Conn) LongPayload(peer int) int {
	p, err := c.peer(peer)
	if err != nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == nil || !p.link.canExpose || c.cfg.Pipelined && !p.link.distance.isExposing() {
		return 0
	}
	return LongPayload(len(p.link.out.ring))
}

// Invalidate revokes all payload exposed to peer under number. It affects only the current link, because other links
// have no live descriptors.
func (c *Conn) Invalidate(peer int, number uint64) {
	p, err := c.peer(peer)
	if err != nil || number == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != nil {
		p.link.out.invalidate(number)
	}
}

// recordRemote records that the payload of a packet is still in its sender's memory.
func (in *inbox) recordRemote(to *mpe.RxPacket, l *link, a remotePayload) {
	to.RemoteBytes, to.Ticket = int(a.payloadLen), len(in.pendingGets)
	in.pendingGets = append(in.pendingGets, pendingGet{link: l, packet: to.Bytes, remotePayload: a})
}

// pendingGet describes the payload, not yet fetched, of a packet returned by Poll.
type pendingGet struct {
	link   *link
	packet []byte
	remotePayload
}

// Fetch copies payload that is still in its sender's memory to dst. If the payload is not resident, Fetch returns
// false, and Poll returns the packet again, with its payload, once it is. If resident payload cannot be read, Fetch
// ends the link; the next link retransmits all unacknowledged packets through the ring.
func (c *Conn) Fetch(a *mpe.RxPacket, dst []byte) bool {
	in := c.inbox
	if a.Ticket < 0 || a.Ticket >= len(in.pendingGets) {
		return false
	}
	get := &in.pendingGets[a.Ticket]
	l := get.link
	if l.broken || !l.canFetch || len(dst) != int(get.payloadLen) || !get.isValid() {
		return false
	}
	if !in.reader.resident(l.pages, get.addr, len(dst)) {
		l.postpone(get)
		return false
	}
	err := in.reader.readResident(&l.remote, dst, get.addr)
	if !get.confirmCopy() {
		return false
	}
	if err != nil {
		in.disableSingleCopy(l, err)
	}
	return err == nil
}

// disableSingleCopy ends a link, and prevents single copies over later links to the same process.
func (in *inbox) disableSingleCopy(l *link, err error) {
	p := l.peer
	p.mu.Lock()
	p.unreadableNonce = l.remote.nonce
	p.mu.Unlock()
	l.broken, l.fetchFailed, in.linksPending = true, true, true
	l.end(fmt.Errorf("the link to rank %d is closed: %w", p.rank, err))
}

// openRemote returns the process at the other end of a link, and its pagemap. The pagemap is nil if the process's
// memory cannot be read.
func (c *Conn) openRemote(p *peer, pid int, id memoryID) (remote, *pagemap) {
	r := remote{pid: pid, memoryID: id}
	if c.cfg.NoSingleCopy {
		return r, nil
	}
	p.mu.Lock()
	bad := p.unreadableNonce == id.nonce
	p.mu.Unlock()
	if bad {
		return r, nil
	}
	pages, err := p.copier.probe(r)
	if err != nil {
		return r, nil // all payload goes through the ring
	}
	return r, pages
}
