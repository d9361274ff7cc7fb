package udp

import "time"

// pacer gives every datagram of a message its slot on a fixed schedule. The zero
// pacer has no schedule.
type pacer struct {
	every time.Duration
	// next is the start of the next slot; zero before the first.
	next time.Time
}

// slot returns when to send the next datagram, given the time now, and moves the
// schedule on. A sender that is late by less than a slot keeps to the schedule,
// so that small delays do not add up. One that is later, say because another
// process had the CPU, starts a new schedule: what it missed, sent in a burst,
// is what pacing is to prevent.
func (p *pacer) slot(now time.Time) time.Time {
	at := p.next
	if now.Sub(at) >= p.every {
		at = now
	}
	p.next = at.Add(p.every)
	return at
}

// coarse is how much of a wait is left to a loop on the clock: sleeping is not
// exact to the microseconds that slots last.
const coarse = time.Millisecond

// wait returns at the start of the next slot.
func (p *pacer) wait() {
	if p.every <= 0 {
		return
	}
	now := time.Now()
	at := p.slot(now)
	if left := at.Sub(now); left > coarse {
		time.Sleep(left - coarse)
	}
	for time.Now().Before(at) {
	}
}
