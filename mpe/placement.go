package mpe

import (
	"sync"
	"sync/atomic"
)

// minPlacement is how many bytes of a message are still to come, at least, for the
// transport to put them straight into the receive's buffer. Shorter ones are in
// the cache when they are copied.
const minPlacement = 1 << 15

// placement is where the payload belongs that is expected next: the rest of a long
// message that is arriving in order. A transport writes it there without the
// engine's lock, whatever it may be that really arrives. So nothing of the rest
// may be there already, and the memory must be the engine's until it is revoked.
type placement struct {
	// mu is held while the transport uses what is below. It is taken with the
	// engine's lock held, or without, and never the other way round.
	mu sync.Mutex
	on atomic.Bool
	tr Transport
	at Placement
	// gen changes when the placement is revoked. What has been written by then is
	// lost, as a network loses it.
	gen uint32
	// req is the receive that it belongs to, or nil. The engine's lock guards
	// it.
	req *Request
	// next is where the placement will be after the event at hand.
	next struct {
		p    *peer
		req  *Request
		head int
		buf  []byte
	}
}

// poll is Poll of the transport, into the placement if there is one for it. It
// returns the generation, or 0 if there is none.
func (l *placement) poll(tr DirectPlacer, batch []RxPacket) (n int, gen uint32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tr != tr || len(l.at.Buf) == 0 {
		n, err = tr.Poll(batch)
		return n, 0, err
	}
	n, err = tr.PollInto(batch, l.at)
	return n, l.gen, err
}

// expect notes that more of a receive's message is to come, into buf; or that
// nothing does, for what was expected before is wrong now.
func (l *placement) expect(p *peer, r *Request, head int, buf []byte) {
	l.next.p, l.next.req, l.next.head, l.next.buf = p, r, head, buf
}

// move puts the placement where the event at hand left it.
func (l *placement) move() {
	if l.next.req == nil {
		if l.req != nil {
			l.set(nil, nil, Placement{})
		}
		return
	}
	p := l.next.p
	l.set(l.next.req, p.tr, Placement{Peer: p.rank, Head: l.next.head, Buf: l.next.buf})
	l.expect(nil, nil, 0, nil)
}

func (l *placement) set(r *Request, tr Transport, at Placement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.req, l.tr, l.at = r, tr, at
	l.on.Store(r != nil)
}

// revoke takes the memory of a receive away that ends.
func (l *placement) revoke(r *Request) {
	if l.next.req == r {
		l.expect(nil, nil, 0, nil)
	}
	if l.req != r {
		return
	}
	l.set(nil, nil, Placement{})
	if l.gen++; l.gen == 0 {
		l.gen++
	}
}

// same reports whether two slices that are not empty begin at the same place.
func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
