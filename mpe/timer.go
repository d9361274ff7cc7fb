package mpe

import (
	"math"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// never is a time that is not reached.
const never = math.MaxInt64

// wakeFor notes a peer's deadline. What is due early finds nothing to do, which
// costs less than moving the time back at every packet.
func (e *Engine) wakeFor(p *peer) {
	at, ok := p.deadline()
	if !ok {
		return
	}
	if !p.timed {
		p.timed = true
		e.timed = append(e.timed, p)
	}
	if int64(at) < e.due.Load() {
		e.due.Store(int64(at))
		e.setTimer()
	}
}

// setTimer sets the timer, unless whoever takes packets looks at the clock as
// well. It is called whenever that may have changed, with the lock or without.
func (e *Engine) setTimer() {
	if !e.group.Armed() {
		return
	}
	if due := e.due.Load(); due != never {
		e.timer.Reset(max(time.Duration(due)-e.now(), 0))
	}
}

// tickIfDue calls tick if it is time.
func (e *Engine) tickIfDue(now handshake.Instant) {
	if int64(now) >= e.due.Load() {
		e.tick()
	}
}

// tick lets peers act on their time-outs.
func (e *Engine) tick() {
	e.lock()
	defer e.mu.Unlock()
	if len(e.pulses) > 0 {
		e.beat()
	}
	if e.state == closed {
		e.due.Store(never)
		return
	}
	now := e.at
	for i := 0; i < len(e.timed); i++ { // others may be added meanwhile
		p := e.timed[i]
		if at, ok := p.deadline(); !ok || at > now {
			continue
		}
		if p.conn != nil {
			e.xacts = p.conn.Tick(now, e.xacts[:0])
			e.actExtended(p, nil)
		} else {
			e.acts = p.pair.Tick(now, e.acts[:0])
			e.act(p, nil)
		}
	}
	e.settle()
	e.nextTick()
}

// nextTick finds out when the next tick is due.
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
		due = min(due, int64(at))
	}
	clear(e.timed[len(kept):])
	e.timed = kept
	e.due.Store(due)
	e.setTimer()
}
