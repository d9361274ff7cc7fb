package core

import (
	"math"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// Never is a time that is never reached.
const Never = handshake.Instant(math.MaxInt64)

// tickRetry is the time until the next attempt to act on a deadline that had to wait because received packets
// are unprocessed.
const tickRetry = time.Millisecond

// noteDeadline records a peer's deadline. It never postpones the next tick: a tick that comes too early has no
// effect, and costs less than moving the time at every packet.
func (e *Core) noteDeadline(p *peer) {
	at, ok := e.deadline(p)
	if !ok {
		return
	}
	if !p.isTimed {
		p.isTimed = true
		e.deadlinePeers = append(e.deadlinePeers, p)
	}
	e.tickDue = min(e.tickDue, at)
}

// deadline returns a peer's deadline, which may be the time until which the core lingers for the peer.
func (e *Core) deadline(p *peer) (handshake.Instant, bool) {
	at, ok := p.deadline()
	if e.state == lingering {
		if until, lingers := p.lingerUntil(); lingers && until > e.now && (!ok || until < at) {
			return until, true
		}
	}
	return at, ok
}

// Tick lets peers act on their time-outs. known holds, for each network, the time up to which all received packets
// have been processed. Tick reports whether some time-outs are due but must wait until received packets are
// processed.
func (e *Core) Tick(known []handshake.Instant) (wait bool) {
	e.processedUntil = known
	if e.state == closed {
		e.tickDue = Never
		return false
	}
	for i := 0; i < len(e.deadlinePeers); i++ { // others may be added meanwhile
		p := e.deadlinePeers[i]
		at, ok := e.deadline(p)
		switch horizon := p.horizon(e.now); {
		case !ok || at > e.now:
		case at > horizon:
			wait = true
		default:
			p.tick(horizon)
		}
	}
	e.flush()
	e.nextTick()
	return wait
}

// nextTick determines when the next tick is due.
func (e *Core) nextTick() {
	e.tickDue = Never
	kept := e.deadlinePeers[:0]
	for _, p := range e.deadlinePeers {
		at, ok := e.deadline(p)
		if !ok {
			p.isTimed = false
			continue
		}
		kept = append(kept, p)
		if at <= e.now && at > p.horizon(e.now) { // tick would have acted
			at = e.now + tickRetry
		}
		e.tickDue = min(e.tickDue, at)
	}
	clear(e.deadlinePeers[len(kept):])
	e.deadlinePeers = kept
}
