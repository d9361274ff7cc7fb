package extended

import (
	"math"
	"time"
)

// Sizes of the congestion window in packets (E28).
const (
	initialWindow = 16
	minWindow     = 4
)

// Constants of CUBIC (RFC 9438): C in packets for each cubic second, β, and α, by how many
// packets Reno would grow in a round trip with that β.
const (
	cubicC     = 0.4
	cubicBeta  = 0.7
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

// congestion is the congestion window of E28: how many packets may be in flight. It is CUBIC
// (RFC 9438) with the slow start of RFC 9406.
type congestion struct {
	packets int // the window in whole packets
	curve
	slow hyStart
	// at is when something was last acknowledged, or sending began again.
	at Instant
	// recovery is the order of the first transmission after the last reduction.
	// What was lost before it is of the same round trip.
	recovery uint64
	// before is the curve before the last reduction, and suspected how many packets were
	// declared lost at that time of which none is known to have been only late.
	before    curve
	suspected int32
	// progress: something was acknowledged since the last reduction.
	progress bool
}

// curve is the window as a function of time. Its windows are in packets.
type curve struct {
	window, threshold float64
	// origin is W_max of the RFC, k the seconds until the window has grown to it, and elapsed
	// the time for which it has grown.
	origin, k float64
	elapsed   time.Duration
	// reno is W_est, the window that Reno would have, and prior the window before the
	// last reduction.
	reno, prior float64
}

func (w *congestion) reset() {
	*w = congestion{packets: initialWindow, curve: curve{window: initialWindow, threshold: math.Inf(1)}, progress: true}
}

// slowStart reports whether the window grows by a packet for each one acknowledged.
func (w *congestion) slowStart() bool { return w.window < w.threshold }

// unused notes that packets were acknowledged while less was in flight than the window lets.
func (w *congestion) unused(now Instant) { w.at, w.progress = now, true }

// acked notes that n packets were acknowledged while the window was used, of which the last
// transmission has the given order. most is the most that the window may be.
func (w *congestion) acked(now Instant, n int, order uint64, trip time.Duration, most int) {
	since := now - w.at
	w.at, w.progress = now, true
	if order < w.recovery {
		return
	}
	if w.slowStart() {
		w.window += w.slow.growth(n)
		if !w.slowStart() {
			w.avoid()
		}
	} else {
		w.elapsed += since
		w.grow(float64(n), trip)
	}
	w.window = min(w.window, float64(max(most, minWindow)))
	w.packets = int(w.window)
}

// avoid begins congestion avoidance without a loss.
func (w *congestion) avoid() {
	w.threshold = w.window
	w.origin, w.reno, w.prior, w.k, w.elapsed = w.window, w.window, w.window, 0, 0
}

// grow is congestion avoidance (RFC 9438, sections 4.2 to 4.5). The conversions keep
// processors that have an instruction for it from fusing operations, so that results are the
// same on all.
func (w *congestion) grow(n float64, trip time.Duration) {
	alpha := cubicAlpha
	if w.reno >= w.prior {
		alpha = 1
	}
	w.reno += float64(alpha * n / w.window)
	if w.cubic(w.elapsed) < w.reno {
		w.window = max(w.window, w.reno)
		return
	}
	target := min(max(w.cubic(w.elapsed+trip), w.window), 1.5*w.window)
	w.window += float64(n * (target - w.window) / w.window)
}

// cubic returns W_cubic: the window so long after the reduction.
func (c *curve) cubic(t time.Duration) float64 {
	d := t.Seconds() - c.k
	return c.origin + float64(cubicC*d*d*d)
}

// lost notes that a transmission was lost; next is the order of the one that comes next.
func (w *congestion) lost(order, next uint64) {
	if order < w.recovery {
		w.suspected++
		return
	}
	if !w.progress {
		return
	}
	w.before, w.suspected = w.curve, 1
	w.reduce()
	w.recovery, w.progress = next, false
}

// reduce is section 4.6 of RFC 9438, with the fast convergence of section 4.7.
func (w *congestion) reduce() {
	w.prior = w.window
	w.origin = w.window
	if w.window < w.before.origin {
		w.origin = w.window * (1 + cubicBeta) / 2
	}
	w.window = max(w.window*cubicBeta, minWindow)
	w.threshold, w.reno, w.elapsed = w.window, w.window, 0
	w.k = math.Cbrt(max(w.origin-w.window, 0) / cubicC)
	w.packets = int(w.window)
}

// late notes that a packet that was declared lost has arrived, whose last transmission has the
// given order, and reports whether the last reduction was for it. If that is so for all, the
// reduction is undone (section 4.9 of RFC 9438).
func (w *congestion) late(order uint64, retransmitted bool) bool {
	if w.suspected == 0 || retransmitted && order < w.recovery {
		return false
	}
	w.suspected--
	if w.suspected == 0 {
		w.before.window = max(w.before.window, w.window)
		w.curve, w.recovery, w.progress = w.before, 0, true
		w.packets = int(w.window)
	}
	return true
}

// keep has the last reduction stand.
func (w *congestion) keep() { w.suspected = 0 }

// collapse is for persistent congestion (RFC 9002, section 7.6): slow start from the least
// window to the threshold.
func (w *congestion) collapse() {
	w.window, w.packets, w.suspected = minWindow, minWindow, 0
	w.slow = hyStart{}
}

// idle notes that sending begins again after so long a pause. The window is halved for each
// time-out of it (RFC 2861), and slow start brings it back.
func (w *congestion) idle(pause, timeout time.Duration) {
	if w.window <= initialWindow || pause < timeout {
		return
	}
	w.threshold = max(w.threshold, w.window*3/4)
	for ; pause >= timeout && w.window > initialWindow; pause -= timeout {
		w.window = max(w.window/2, initialWindow)
	}
	w.packets = int(w.window)
	w.slow = hyStart{}
}
