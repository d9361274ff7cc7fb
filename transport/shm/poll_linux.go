package shm

import (
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

const (
	// nearLinks is the number of links read by every call of Poll: the links that most recently delivered packets. Each
	// call also reads farLinks of the remaining links, in rotation. The cost of a poll therefore does not depend on the
	// number of ranks.
	nearLinks, farLinks = 8, 8
)

// inbox holds the state of Poll. Other functions use only mu, freed and doorbell.
type inbox struct {
	// mu guards freed, and any use of resources that free releases.
	mu       sync.Mutex
	freed    bool
	doorbell doorbell
	// shared is freed with the inbox.
	shared *sharedBuffers

	// maxBytes is the approximate maximum number of bytes that one Poll returns.
	maxBytes int
	links    []*link
	// unlinked holds events to report, from peers without a link.
	unlinked []unlinkedEvent
	// unreleased holds the links whose rings still contain packets returned by the last Poll.
	unreleased []*link
	// pendingGets describes the payloads not yet fetched of packets returned by the last Poll. reader fetches them.
	pendingGets []pendingGet
	reader      remoteReader
	// nearRotation is the index of the first near link to read, and farCursor the index of the first far link to read.
	nearRotation, farCursor int
	// pollAll makes the next Poll read all links.
	pollAll bool
	// linksPending is set if a link is waiting to be reported or removed.
	linksPending bool
	// asleep is set if the doorbell's flag was already set when Sleep was last called. In that case, the bell may have
	// been rung since.
	asleep bool
}

// CanPoll returns true.
func (c *Conn) CanPoll() bool { return true }

// Poll is like Recv, but returns 0 immediately if no packet is available.
func (c *Conn) Poll(batch []mpe.RxPacket, _ *mpe.Placements) (n int, err error) {
	in := c.inbox
	for _, l := range in.unreleased {
		if len(l.postponed) == 0 { // postponed packets are still in the ring
			l.in.release()
		}
	}
	in.unreleased = in.unreleased[:0]
	clear(in.pendingGets)
	in.pendingGets = in.pendingGets[:0]
	if in.linksPending || c.linksChanged.Load() {
		if c.closed.Load() {
			in.free()
			return 0, mpe.ErrTransportClosed
		}
		c.addNewLinks()
		n = in.updateLinks(batch)
	}
	n += in.readLinks(batch[n:])
	if c.shared.awaitedSlots.Load() != 0 {
		n += c.reportPublished(batch[n:])
	}
	return n, nil
}

// addNewLinks adds new links to the inbox.
func (c *Conn) addNewLinks() {
	if !c.linksChanged.Swap(false) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.newLinks {
		l.previous, l.peer.newestLink = l.peer.newestLink, l
	}
	c.inbox.links = append(c.inbox.links, c.newLinks...)
	c.inbox.unlinked = append(c.inbox.unlinked, c.unlinked...)
	c.newLinks, c.unlinked = nil, nil
	if c.closed.Load() {
		c.linksChanged.Store(true)
	}
}

// updateLinks removes finished links once they are empty, and reports new links once their predecessors have
// been removed.
func (in *inbox) updateLinks(batch []mpe.RxPacket) (n int) {
	in.linksPending = false
	left := in.links[:0]
	for _, l := range in.links {
		ended := l.ended.Load() // must be loaded before the last poll
		if l.fetchFailed && n < len(batch) {
			l.fetchFailed = false
			batch[n] = mpe.RxPacket{Kind: mpe.RxBroken, Peer: l.peer.rank, SourceAddr: l.peer.addr}
			n++
		}
		if l.broken && !l.fetchFailed || ended && (len(l.postponed) > 0 || !l.in.ready()) {
			l.free()
			continue
		}
		left = append(left, l)
		in.linksPending = in.linksPending || ended || l.broken
	}
	clear(in.links[len(left):])
	in.links = left
	n += in.reportUnlinked(batch[n:])
	for _, l := range in.links {
		switch {
		case l.reported:
		case l.previous != nil && !l.previous.removed || n == len(batch):
			in.linksPending = true
		default:
			l.reported, l.previous = true, nil
			batch[n] = mpe.RxPacket{Kind: mpe.RxConnected, Peer: l.peer.rank, SourceAddr: l.peer.addr}
			n++
		}
	}
	return n
}

// unlinkedEvent reports about a peer without a link that its process is gone, or that no link can be made.
type unlinkedEvent struct {
	peer   *peer
	packet mpe.RxPacket
}

// reportUnlinked reports events of peers without a link, once all packets from those peers have been read.
func (in *inbox) reportUnlinked(batch []mpe.RxPacket) (n int) {
	left := in.unlinked[:0]
	for _, event := range in.unlinked {
		unread := slices.ContainsFunc(in.links, func(l *link) bool { return l.peer == event.peer && l.reported })
		if unread || n == len(batch) {
			left, in.linksPending = append(left, event), true
			continue
		}
		batch[n] = event.packet
		n++
	}
	clear(in.unlinked[len(left):])
	in.unlinked = left
	return n
}

// readLinks reads packets from the links.
func (in *inbox) readLinks(batch []mpe.RxPacket) (n int) {
	room := in.maxBytes
	if len(in.links) == 1 {
		return in.read(in.links[0], batch, &room)
	}
	near := in.links[:min(len(in.links), nearLinks)]
	far := in.links[len(near):]
	if in.nearRotation++; in.nearRotation >= len(near) {
		in.nearRotation = 0
	}
	for _, l := range near[in.nearRotation:] {
		n += in.read(l, batch[n:], &room)
	}
	for _, l := range near[:in.nearRotation] {
		n += in.read(l, batch[n:], &room)
	}
	polls := min(len(far), farLinks)
	if in.pollAll {
		polls, in.pollAll = len(far), false
	}
	for range polls {
		if in.farCursor++; in.farCursor >= len(far) {
			in.farCursor = 0
		}
		l := &far[in.farCursor]
		if got := in.read(*l, batch[n:], &room); got > 0 {
			n += got
			nearer := &near[in.nearRotation]
			*l, *nearer = *nearer, *l
		}
	}
	return n
}

// read reads packets from a link until the batch is full or the byte limit is reached.
func (in *inbox) read(l *link, batch []mpe.RxPacket, room *int) (n int) {
	if !l.reported || l.broken || len(batch) == 0 {
		return 0
	}
	if len(l.postponed) > 0 {
		return in.resumePostponed(l, batch)
	}
	var payload remotePayload
	for n < len(batch) && *room > 0 {
		packet, err := l.in.nextInto(&payload)
		if err != nil {
			l.broken, in.linksPending = true, true
			l.end(err)
			batch[n] = mpe.RxPacket{Kind: mpe.RxBroken, Peer: l.peer.rank, SourceAddr: l.peer.addr}
			n++
			break
		}
		if packet == nil {
			break
		}
		pkt := &batch[n]
		*pkt = mpe.RxPacket{}
		pkt.Kind, pkt.Peer, pkt.SourceAddr, pkt.Bytes = mpe.RxDatagram, l.peer.rank, l.peer.addr, packet
		switch {
		case payload.isShort:
			pkt.Kind = mpe.RxShort
		case payload.isAdvertised:
			pkt.Advertised = l.storeAdvert(payload)
		case payload.state != nil:
			in.recordRemote(pkt, l, payload)
		}
		*room -= len(packet) + pkt.RemoteBytes
		n++
	}
	if n > 0 {
		in.unreleased = append(in.unreleased, l)
	}
	return n
}

// free releases the memory of all links.
func (in *inbox) free() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.freed {
		return
	}
	for _, l := range in.links {
		l.free()
	}
	in.links, in.unreleased = nil, nil
	in.shared.free()
	in.freed = true
	in.doorbell.close()
}
