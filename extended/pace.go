package extended

import "time"

// longRTT is the minimum round-trip time of a long path. On a long path, packets are paced, and more than shortWindow
// of them may be in flight. On a shorter path, the interval between packets is too short for timers.
const longRTT = 500 * time.Microsecond

// pacer spaces packets on a long path (E28). Like a token bucket, it allows bursts of an eighth of a window, and makes
// up for late timers.
type pacer struct {
	nextSend Instant // when the next packet would be sent if there were no bursts
	waiting  bool    // packets are waiting until resumeAt
	resumeAt Instant
}

// maxBurst returns the maximum number of packets that may be sent early.
func maxBurst(window int) int { return max(window/8, 2) }

// sendBudget returns the number of packets that may be sent now. every is the average interval between packets, and
// window the congestion window in packets.
func (p *pacer) sendBudget(now Instant, every time.Duration, window int) int {
	if !p.waiting {
		p.nextSend = max(p.nextSend, now)
	}
	p.waiting = false
	if early := p.nextSend - now; early > 0 {
		return maxBurst(window) - int((early+every-1)/every)
	}
	return maxBurst(window) + int((now-p.nextSend)/every)
}

// onSent records that n packets were sent. Packets that are still waiting are sent once half a burst is allowed.
func (p *pacer) onSent(n int, every time.Duration, window int) {
	p.nextSend += every * Instant(n)
	p.resumeAt = p.nextSend - every*Instant(maxBurst(window)/2)
}

// packetInterval returns the average interval between two packets. At this interval, sending a whole window takes 4/5
// of a round-trip time, or half of one in slow start.
func (r *recovery) packetInterval() time.Duration {
	w, trip := &r.window, r.rtt.smoothed
	if w.slowStart() {
		return max(trip/time.Duration(2*w.packets), 1)
	}
	return max(trip*4/time.Duration(5*w.packets), 1)
}
