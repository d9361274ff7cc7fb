package mpe

import (
	"math"
	"time"
)

// never is a time that is not reached.
const never = math.MaxInt64

// tickRetry is after how long to try again to act on what is due, if what has arrived has
// yet to be taken.
const tickRetry = time.Millisecond

// noteDeadline notes a peer's deadline. What is due early finds nothing to do, which
// costs less than moving the time back at every packet.
func (e *Engine) noteDeadline(p *peer) {
	at, ok := p.deadline()
	if !ok {
		return
	}
	if !p.timed {
		p.timed = true
		e.timed = append(e.timed, p)
	}
	e.driver.wakeAt(int64(at))
}

// expired is called by the timer. The poller may not have come to what has arrived.
func (e *Engine) expired() {
	if e.tick() {
		e.driver.group.Drain()
		e.tick()
	}
}

// tick lets peers act on their time-outs. It reports whether some are due that have to
// wait until what has arrived was taken.
func (e *Engine) tick() (wait bool) {
	e.lock()
	defer e.unlock()
	if len(e.driver.heartbeats) > 0 {
		e.notifyHeartbeats()
	}
	if e.state == closed {
		e.driver.due.Store(never)
		return false
	}
	now := e.at
	for _, s := range e.driver.sources {
		s.advance(now)
	}
	for i := 0; i < len(e.timed); i++ { // others may be added meanwhile
		p := e.timed[i]
		at, ok := p.deadline()
		switch horizon := p.horizon(now); {
		case !ok || at > now:
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
func (e *Engine) nextTick() {
	due := int64(never)
	kept := e.timed[:0]
	for _, p := range e.timed {
		at, ok := p.deadline()
		if !ok {
			p.timed = false
			continue
		}
		kept = append(kept, p)
		if at <= e.at && at > p.horizon(e.at) { // tick would have acted
			at = e.at + tickRetry
		}
		due = min(due, int64(at))
	}
	clear(e.timed[len(kept):])
	e.timed = kept
	e.driver.due.Store(due)
	e.driver.setTimer()
}
