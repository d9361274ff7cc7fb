package mpemodel

import "time"

// The MPE counts clock cycles of 6.4 ns; these are the corresponding times.
const (
	// baseTimeout is the first time-out of rank 0.
	baseTimeout = 100 * time.Millisecond
	// rankTimeout is added for every lower rank, so that two FPGAs do not retransmit in step.
	rankTimeout = 12500 * time.Microsecond
	// retransmitTimeout is added for every earlier retransmission.
	retransmitTimeout = time.Second
	// maxRetransmissions is the number of retransmissions of one call, in all phases together.
	maxRetransmissions = 3
	// ackFactor multiplies the rank's time-out in the wait for ACK, but not the part for retransmissions.
	ackFactor = 2
)

// timer is the MPE's only time-out counter.
type timer struct {
	// left is the remaining time of a wait. It keeps its value while the MPE does something else, and from one call to
	// the next.
	left time.Duration
	// dead: the counter has passed zero. It does not fire until it is set again.
	dead bool
	// Retransmissions of the current call.
	retransmissions int
}

// arm sets the counter for a wait.
func (m *Model) arm(factor int) {
	individual := baseTimeout + time.Duration(m.cfg.Rank)*rankTimeout
	m.timer.left = time.Duration(factor)*individual + time.Duration(m.timer.retransmissions)*retransmitTimeout
	m.timer.dead = false
}

// counting reports whether the counter runs: only in a wait, only while there is nothing to read, and not after half a
// header was read.
func (m *Model) counting() bool {
	if m.half || m.in.readable() {
		return false
	}
	switch m.state {
	case wait4Clear, wait4Ack:
		return true
	case recvStart:
		return m.deq.room()
	}
	return false
}

// advance advances the time to now, and fires the time-outs on the way.
func (m *Model) advance(now time.Duration) {
	for m.counting() && !m.timer.dead && now > m.now {
		if d := now - m.now; d < m.timer.left {
			m.timer.left -= d
			break
		}
		m.now += m.timer.left
		m.timer.left = 0
		m.timer.dead = true
		if m.timer.retransmissions < maxRetransmissions {
			m.timer.retransmissions++
			m.timeOut()
			m.run()
		}
	}
	m.now = max(m.now, now)
}

func (m *Model) timeOut() {
	switch m.state {
	case wait4Clear:
		m.requestToSend()
	case wait4Ack:
		m.wrap.feedback = append(m.wrap.feedback, feedbackFail)
		m.startData()
	case recvStart:
		if !m.mid {
			m.sendClear()
			return
		}
		// The MPE abandons the message, but neither asks again nor sets the counter again. The word that it hands up to
		// mark the failure is empty, and the dequeuer mistakes it for a line of data.
		m.wrap.feedback = append(m.wrap.feedback, feedbackFail)
		m.deq.fifo = append(m.deq.fifo, word{last: true})
		m.mid = false
	}
}
