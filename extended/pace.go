package extended

import "time"

// longTrip is the minimum round-trip time of a long path. On a long path, packets are paced, and more than shortWindow
// of them may be in flight. On a shorter path, the interval between packets is too short for timers.
const longTrip = 500 * time.Microsecond

// pacer spaces packets on a long path (E28). Like a token bucket, it allows bursts of an eighth of a window, and makes
// up for late timers.
type pacer struct {
	next   Instant // when the next packet would be sent if there were no bursts
	held   bool    // packets are waiting until resume
	resume Instant
}

// burst returns the maximum number of packets that may be sent early.
func burst(window int) int { return max(window/8, 2) }

// room returns the number of packets that may be sent now. every is the average interval between packets, and window
// the congestion window in packets.
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

// sent records that n packets were sent. If further packets are waiting, they wait until half a burst may be sent.
func (p *pacer) sent(n int, every time.Duration, window int) {
	p.next += every * Instant(n)
	p.resume = p.next - every*Instant(burst(window)/2)
}

// interval returns the average interval between two packets. At this interval, sending a whole window takes 4/5 of a
// round-trip time, or half of one in slow start.
func (r *recovery) interval() time.Duration {
	w, trip := &r.window, r.trip.smoothed
	if w.slowStart() {
		return max(trip/time.Duration(2*w.packets), 1)
	}
	return max(trip*4/time.Duration(5*w.packets), 1)
}
