package core

import (
	"math"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// Never represents a time in the infinite future, which is never reached.
const Never = handshake.Instant(math.MaxInt64)

// tickRetry is the delay before a deadline is checked again that could not be acted on, because received packets had to
// be processed first.
const tickRetry = time.Millisecond

// noteDeadline records a peer's deadline. It never postpones the next tick: an early tick is harmless, and costs less
// than changing the time of the tick for every packet.
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

// deadline returns a peer's deadline, or the time until which the core lingers for the peer if that is earlier.
func (e *Core) deadline(p *peer) (handshake.Instant, bool) {
	at, ok := p.deadline()
	if e.state == lingering {
		if until, lingers := p.lingerUntil(); lingers && until > e.now && (!ok || until < at) {
			return until, true
		}
	}
	return at, ok
}

// Tick makes peers act on expired timeouts. The slice known holds, for each network, the time up to which all received
// packets have been processed. Tick reports whether some timeouts are due but must wait for received packets to be
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
		if at <= e.now && at > p.horizon(e.now) { // otherwise Tick would have acted
			at = e.now + tickRetry
		}
		e.tickDue = min(e.tickDue, at)
	}
	clear(e.deadlinePeers[len(kept):])
	e.deadlinePeers = kept
}
