package core

// minPlacement is how many bytes of a message are still to come, at least, for the
// transport to put them straight into the receive's buffer. Shorter ones are in
// the cache when they are copied.
const minPlacement = 1 << 15

// placement is the receive whose payload is expected next of a peer: the rest of a long message
// that is arriving in order. A transport writes it where it belongs, outside of events, whatever
// it may be that really arrives. So nothing of the rest may be there already, and the
// memory must be the engine's until it is revoked.
type placement struct {
	// req is the receive that the driver's placement belongs to, or nil.
	req *Request
	// next is where the placement will be after the event at hand, if it is moved.
	next struct {
		req *Request
		at  Placement
	}
	moved bool
}

// expect notes that more of a receive's message is to come from the peer, to where at says.
func (p *peer) expect(r *Request, at Placement) {
	l := &p.placement
	at.Peer = p.rank
	l.next.req, l.next.at = r, at
	if r != nil {
		r.placed = p
	}
	if !l.moved {
		l.moved = true
		p.e.pending.placements = append(p.e.pending.placements, p)
	}
}

// expectNothing notes that what was expected before is wrong now.
func (p *peer) expectNothing() {
	if l := &p.placement; l.req != nil || l.next.req != nil {
		p.expect(nil, Placement{})
	}
}

// movePlacements puts the placements where the event at hand left them.
func movePlacements(e *Core) {
	for i, p := range e.pending.placements {
		e.pending.placements[i] = nil
		l := &p.placement
		l.moved = false
		if l.req != nil || l.next.req != nil {
			l.req = l.next.req
			e.effects.Place(l.next.at)
			l.next.req, l.next.at = nil, Placement{}
		}
	}
	e.pending.placements = e.pending.placements[:0]
}

// revokePlacement takes the memory of a receive away that ends.
func revokePlacement(r *Request) {
	if r.placed != nil {
		r.placed.revoke(r)
	}
}

func (p *peer) revoke(r *Request) {
	l := &p.placement
	if l.next.req == r {
		l.next.req, l.next.at = nil, Placement{Peer: p.rank}
	}
	if l.req == r {
		l.req = nil
		p.e.effects.Revoke(p.rank)
	}
	r.placed = nil
}

// same reports whether two slices that are not empty begin at the same place.
func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
