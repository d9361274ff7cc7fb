package mpe

// minPlacement is how many bytes of a message are still to come, at least, for the
// transport to put them straight into the receive's buffer. Shorter ones are in
// the cache when they are copied.
const minPlacement = 1 << 15

// placement is the receive whose payload is expected next: the rest of a long message that
// is arriving in order. A transport writes it where it belongs, outside of events, whatever
// it may be that really arrives. So nothing of the rest may be there already, and the
// memory must be the engine's until it is revoked.
type placement struct {
	// req is the receive that the driver's placement belongs to, or nil.
	req *Request
	// next is where the placement will be after the event at hand.
	next struct {
		p   *peer
		req *Request
		at  Placement
	}
}

// expect notes that more of a receive's message is to come, to where at says.
func (l *placement) expect(p *peer, r *Request, at Placement) {
	at.Peer = p.rank
	l.next.p, l.next.req, l.next.at = p, r, at
}

// expectNothing notes that what was expected before is wrong now.
func (l *placement) expectNothing() { l.next.p, l.next.req, l.next.at = nil, nil, Placement{} }

// movePlacement puts the placement where the event at hand left it.
func (e *core) movePlacement() {
	l := &e.placement
	if l.next.req == nil {
		if l.req != nil {
			l.req = nil
			e.driver.place(nil, Placement{})
		}
		return
	}
	l.req = l.next.req
	e.driver.place(l.next.p.tr, l.next.at)
	l.expectNothing()
}

// revokePlacement takes the memory of a receive away that ends.
func (e *core) revokePlacement(r *Request) {
	l := &e.placement
	if l.next.req == r {
		l.expectNothing()
	}
	if l.req == r {
		l.req = nil
		e.driver.revoke()
	}
}

// same reports whether two slices that are not empty begin at the same place.
func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
