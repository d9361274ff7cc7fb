package extended

import "time"

// longTrip is the least round trip of a path on which packets are paced and more than
// shortWindow of them may be in flight. On shorter ones a window is smaller than what timers
// can space.
const longTrip = 500 * time.Microsecond

// pacer spaces packets on a long path (E28): a bucket of an eighth of a window, and what a timer
// was late.
type pacer struct {
	next   Instant // when the next packet would be sent if none were sent early
	held   bool    // packets wait for resume
	resume Instant
}

// burst is how many packets may be sent early.
func burst(window int) int { return max(window/8, 2) }

// room returns how many packets may be sent now, of a window of so many, one every so often on average.
func (p *pacer) room(now Instant, every time.Duration, window int) int {
	if !p.held {
		p.next = max(p.next, now)
	}
	p.held = false
	if early := p.next - now; early > 0 {
		return burst(window) - int((early+every-1)/every)
	}
	return burst(window) + int((now-p.next)/every)
}

// sent notes that so many were sent. If others are held, they go when there is room for half a burst.
func (p *pacer) sent(n int, every time.Duration, window int) {
	p.next += every * Instant(n)
	p.resume = p.next - every*Instant(burst(window)/2)
}

// interval returns the time between two packets: a window in 4/5 of a round trip, or half of one in slow
// start.
func (r *recovery) interval() time.Duration {
	w, trip := &r.window, r.trip.smoothed
	if w.slowStart() {
		return max(trip/time.Duration(2*w.packets), 1)
	}
	return max(trip*4/time.Duration(5*w.packets), 1)
}
