package extended

import (
	"math"
	"time"
)

// These constants bound the congestion window, which counts packets (E28).
const (
	initialWindow = 16
	minWindow     = 4
)

// These constants are parameters of the CUBIC algorithm (RFC 9438). cubicC is C, in packets per second cubed. cubicBeta
// is β. cubicAlpha is α, the number of packets by which a Reno window with the same β grows per round trip.
const (
	cubicC     = 0.4
	cubicBeta  = 0.7
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

// congestion computes the congestion window of E28 by CUBIC (RFC 9438), with the slow start of RFC 9406.
type congestion struct {
	packets int // the window in whole packets
	curve
	hyStart hyStart
	// lastAckAt is the time of the last acknowledgement, or the time at which sending resumed after a pause.
	lastAckAt Instant
	// recoveryStart is the order of the first transmission after the window was last reduced. If an earlier
	// transmission is lost, the window is not reduced again.
	recoveryStart uint64
	// previous is the growth curve that applied before the last reduction, in case the reduction has to be undone.
	// suspectedLosses is the number of losses that led to the reduction and may still prove to be late packets.
	previous        curve
	suspectedLosses int32
	// progress is set if a packet was acknowledged since the last reduction.
	progress bool
}

// curve describes how the congestion window grows over time. All windows are measured in packets.
type curve struct {
	window, threshold float64
	// origin is called W_max in the RFC. The field k is the number of seconds from the reduction until the window
	// reaches origin, and elapsed is the time for which the window has grown so far.
	origin, k float64
	elapsed   time.Duration
	// reno is called W_est in the RFC: the window that the Reno algorithm would have. The field prior is the window
	// before the last reduction.
	reno, prior float64
}

func (w *congestion) reset() {
	*w = congestion{packets: initialWindow, curve: curve{window: initialWindow, threshold: math.Inf(1)}, progress: true}
}

// slowStart reports whether the window is still in the slow-start phase.
func (w *congestion) slowStart() bool { return w.window < w.threshold }

// onUnusedAck records an acknowledgement that does not enlarge the window, because too few packets were in flight to
// fill it.
func (w *congestion) onUnusedAck(now Instant) { w.lastAckAt, w.progress = now, true }

// onAcked records the acknowledgement of n packets that were sent while the window was full. order is the highest order
// of their transmissions, trip the smoothed round-trip time, and most the maximum window.
func (w *congestion) onAcked(now Instant, n int, order uint64, trip time.Duration, most int) {
	since := now - w.lastAckAt
	w.lastAckAt, w.progress = now, true
	if order < w.recoveryStart {
		return
	}
	if w.slowStart() {
		w.window += w.hyStart.growth(n)
		if !w.slowStart() {
			w.exitSlowStart()
		}
	} else {
		w.elapsed += since
		w.growCubic(float64(n), trip)
	}
	w.window = min(w.window, float64(max(most, minWindow)))
	w.packets = int(w.window)
}

// exitSlowStart ends slow start and begins congestion avoidance without a loss.
func (w *congestion) exitSlowStart() {
	w.threshold = w.window
	w.origin, w.reno, w.prior, w.k, w.elapsed = w.window, w.window, w.window, 0, 0
}

// growCubic enlarges the window in congestion avoidance, after the acknowledgement of n packets (RFC 9438, sections 4.2
// to 4.5). The conversions to float64 prevent the compiler from fusing multiplications and additions, so that all
// processors compute the same results.
func (w *congestion) growCubic(n float64, trip time.Duration) {
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

// cubic returns the window that CUBIC computes for the time t after the reduction, called W_cubic in the RFC.
func (c *curve) cubic(t time.Duration) float64 {
	d := t.Seconds() - c.k
	return c.origin + float64(cubicC*d*d*d)
}

// onLost records that a transmission was lost, and reduces the window if necessary. The parameter next is the order of
// the next transmission.
func (w *congestion) onLost(order, next uint64) {
	if order < w.recoveryStart {
		w.suspectedLosses++
		return
	}
	if !w.progress {
		return
	}
	w.previous, w.suspectedLosses = w.curve, 1
	w.reduce()
	w.recoveryStart, w.progress = next, false
}

// reduce reduces the window after a loss, as in section 4.6 of RFC 9438, with the fast convergence of section 4.7.
func (w *congestion) reduce() {
	w.prior = w.window
	w.origin = w.window
	if w.window < w.previous.origin {
		w.origin = w.window * (1 + cubicBeta) / 2
	}
	w.window = max(w.window*cubicBeta, minWindow)
	w.threshold, w.reno, w.elapsed = w.window, w.window, 0
	w.k = math.Cbrt(max(w.origin-w.window, 0) / cubicC)
	w.packets = int(w.window)
}

// onLate records that a packet declared lost was merely late, and reports whether its loss counted for the last
// reduction. order is the order of its last transmission. Once every loss that counted has proved to be a late packet,
// onLate undoes the reduction (section 4.9 of RFC 9438).
func (w *congestion) onLate(order uint64, retransmitted bool) bool {
	if w.suspectedLosses == 0 || retransmitted && order < w.recoveryStart {
		return false
	}
	w.suspectedLosses--
	if w.suspectedLosses == 0 {
		w.previous.window = max(w.previous.window, w.window)
		w.curve, w.recoveryStart, w.progress = w.previous, 0, true
		w.packets = int(w.window)
	}
	return true
}

// confirmReduction makes the last reduction final: onLate can no longer undo it.
func (w *congestion) confirmReduction() { w.suspectedLosses = 0 }

// collapse handles persistent congestion (RFC 9002, section 7.6). It sets the window to its minimum, from which slow
// start leads to the threshold.
func (w *congestion) collapse() {
	w.window, w.packets, w.suspectedLosses = minWindow, minWindow, 0
	w.hyStart = hyStart{}
}

// afterIdle records that sending resumes after a pause. It halves the window for each timeout that fits into the pause
// (RFC 2861); slow start then restores the window.
func (w *congestion) afterIdle(pause, timeout time.Duration) {
	if w.window <= initialWindow || pause < timeout {
		return
	}
	w.threshold = max(w.threshold, w.window*3/4)
	for ; pause >= timeout && w.window > initialWindow; pause -= timeout {
		w.window = max(w.window/2, initialWindow)
	}
	w.packets = int(w.window)
	w.hyStart = hyStart{}
}
