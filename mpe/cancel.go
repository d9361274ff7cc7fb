package mpe

import (
	"bytes"
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// abandon gives a request up for its caller. The caller gets its buffer back at
// once. What the wire cannot take back goes on with a copy: a message whose
// DATA is out still needs its payload for repeats, and a sender that has been
// cleared will send, so its message is kept for the next receive.
func (e *Engine) abandon(r *Request, cause error) (Status, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-r.done: // it ended while the lock was awaited
		return r.status, r.err
	default:
	}
	p := r.p
	err := e.waitError(r, cause)
	switch {
	case p.sendq.remove(r) || p.recvq.remove(r):
	case r == p.sending:
		acts, ok := p.pair.CancelSend(e.now(), r.id, e.acts[:0])
		e.acts = acts
		if ok {
			p.sending = nil
			e.nextSend(p)
		} else {
			e.orphan(p, r, err)
		}
	case r == p.recving:
		if p.pair.CancelRecv(r.id) {
			p.recving = nil
			e.nextRecv(p)
		} else {
			e.orphan(p, r, err)
		}
	}
	if !r.orphan {
		e.finish(p, r, err)
	}
	e.act(p, nil)
	e.settle()
	return r.status, err
}

// orphan puts a stand-in for r into the transfer, with a buffer of its own, and
// ends r.
func (e *Engine) orphan(p *peer, r *Request, err *WaitError) {
	err.InTransfer = true
	heir := *r
	heir.buf = bytes.Clone(r.buf)
	heir.orphan = true
	heir.done = make(chan struct{})
	if r.send {
		p.sending = &heir
	} else {
		p.recving = &heir
	}
}

// waitError describes what r waits for.
func (e *Engine) waitError(r *Request, cause error) *WaitError {
	p, now := r.p, e.now()
	w := &WaitError{cause: cause, Network: p.sendErr}
	var active *Request
	q := &p.sendq
	if r.send {
		w.Wait, _ = p.pair.SendWait()
		active = p.sending
	} else {
		w.Wait, _ = p.pair.RecvWait()
		active, q = p.recving, &p.recvq
	}
	w.text = w.Describe(now)
	if active == r {
		return w
	}
	for _, other := range q.items[q.head:] {
		if other == r {
			break
		}
		w.Queued++
	}
	w.Queued++ // the active one
	w.text = fmt.Sprintf("queued behind %d others since %v, and %s", w.Queued, handshake.Round(now-r.posted), w.text)
	return w
}

// unclaimed keeps a message that arrived for a receive that was given up.
func (e *Engine) unclaimed(p *peer, r *Request) {
	// A receive that is already queued takes it at once.
	for i := p.recvq.head; i < len(p.recvq.items); i++ {
		if next := p.recvq.items[i]; p.fits(r, next) {
			p.recvq.remove(next)
			e.hand(p, r, next)
			return
		}
	}
	p.unclaimed = append(p.unclaimed, r)
}

// claim gives r a message that arrived before, if one fits.
func (e *Engine) claim(p *peer, r *Request) bool {
	for i, old := range p.unclaimed {
		if p.fits(old, r) {
			p.unclaimed = append(p.unclaimed[:i], p.unclaimed[i+1:]...)
			e.hand(p, old, r)
			return true
		}
	}
	return false
}

// fits reports whether a message that has arrived matches a posted receive.
func (p *peer) fits(msg, r *Request) bool {
	sameType := r.opts.AnyDatatype || p.cfg.Handshake.Peer.OnlyInt || msg.status.Datatype == r.opts.Datatype
	return sameType && (r.opts.AnyTag || msg.status.Tag == r.opts.Tag || msg.status.Tag == 0)
}

// hand copies a message that has arrived to the receive that gets it.
func (e *Engine) hand(p *peer, msg, r *Request) {
	r.status = msg.status
	stored := msg.buf[:min(len(msg.buf), int(msg.status.Words)*4)]
	copy(r.buf, stored)
	var err error
	if len(stored) > len(r.buf) {
		err = &handshake.TruncatedError{Remote: uint32(p.rank), Posted: r.words(), Sent: msg.status.Words}
	}
	e.finish(p, r, err)
}

// failQueued ends everything that has not begun its handshake.
func (e *Engine) failQueued(p *peer, err error) {
	for _, q := range []*queue{&p.sendq, &p.recvq} {
		for r := q.pop(); r != nil; r = q.pop() {
			e.finish(p, r, err)
		}
	}
}

// failActive ends what is in the pair's hands.
func (e *Engine) failActive(p *peer, err error) {
	if r := p.sending; r != nil {
		p.sending = nil
		if !r.orphan {
			e.finish(p, r, err)
		}
	}
	if r := p.recving; r != nil {
		p.recving = nil
		if !r.orphan {
			e.finish(p, r, err)
		}
	}
	p.unclaimed = nil
}
