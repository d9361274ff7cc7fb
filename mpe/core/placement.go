package core

// minPlacement is the minimum number of remaining bytes of a message for direct placement in the receive's buffer.
// Shorter payload is cheap to copy, because it is still in the cache.
const minPlacement = 1 << 15

// placement is the receive whose payload is expected next from a peer: the rest of a long message that arrives in
// order. The transport writes the next payload there, outside of events, whichever message the payload belongs to.
// Therefore no part of the rest may have been received already, and the engine must own the memory until it revokes the
// placement.
type placement struct {
	// recv is the receive whose buffer the driver's placement refers to, or nil.
	recv *Request
	// next is the placement to set at the end of the current event, if changed.
	next struct {
		req *Request
		at  Placement
	}
	changed bool
}

// setPlacement sets the destination of the rest of a receive's message.
func (p *peer) setPlacement(r *Request, at Placement) {
	l := &p.placement
	at.Peer = p.rank
	l.next.req, l.next.at = r, at
	if r != nil {
		r.placingPeer = p
	}
	if !l.changed {
		l.changed = true
		p.e.pending.placements = append(p.e.pending.placements, p)
	}
}

// clearPlacement cancels the peer's placement, if any, at the end of the event.
func (p *peer) clearPlacement() {
	if l := &p.placement; l.recv != nil || l.next.req != nil {
		p.setPlacement(nil, Placement{})
	}
}

// movePlacements passes the placements changed by the current event to the driver.
func movePlacements(core *Core) {
	for i, p := range core.pending.placements {
		core.pending.placements[i] = nil
		l := &p.placement
		l.changed = false
		if l.recv != nil || l.next.req != nil {
			l.recv = l.next.req
			core.effects.Place(l.next.at)
			l.next.req, l.next.at = nil, Placement{}
		}
	}
	core.pending.placements = core.pending.placements[:0]
}

// revokePlacement revokes the placement of a receive at once, because the receive ends.
func revokePlacement(r *Request) {
	if r.placingPeer != nil {
		r.placingPeer.revokeFor(r)
	}
}

// revokeFor removes a receive from the placement in use and from the one to be set at the end of the event.
func (p *peer) revokeFor(request *Request) {
	l := &p.placement
	if l.next.req == request {
		l.next.req, l.next.at = nil, Placement{Peer: p.rank}
	}
	if l.recv == request {
		l.recv = nil
		p.e.effects.Revoke(p.rank)
	}
	request.placingPeer = nil
}

// same reports whether two non-empty slices begin at the same memory address.
func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
