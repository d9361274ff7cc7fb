package extended

import "time"

// longTrip is the minimum round trip of a long path, on which packets are paced and more than shortWindow of them may
// be in flight. On shorter paths, packets of a window are too close together for timers.
const longTrip = 500 * time.Microsecond

// pacer spaces packets on a long path (E28). It is a bucket that allows bursts of an eighth of a window, and makes up
// for late timers.
type pacer struct {
	next   Instant // send time of the next packet if none had been sent early
	held   bool    // packets wait until resume
	resume Instant
}

// burst returns the number of packets that may be sent early.
func burst(window int) int { return max(window/8, 2) }

// room returns the number of packets that may be sent now, given the average interval between packets and the window.
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

// sent records that n packets were sent. If others are held, they are sent once half a burst is allowed.
func (p *pacer) sent(n int, every time.Duration, window int) {
	p.next += every * Instant(n)
	p.resume = p.next - every*Instant(burst(window)/2)
}

// interval returns the average interval between two packets: a window takes 4/5 of a round trip, or half of one in slow
// start.
func (r *recovery) interval() time.Duration {
	w, trip := &r.window, r.trip.smoothed
	if w.slowStart() {
		return max(trip/time.Duration(2*w.packets), 1)
	}
	return max(trip*4/time.Duration(5*w.packets), 1)
}
