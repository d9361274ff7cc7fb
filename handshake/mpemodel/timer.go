package mpemodel

import "time"

// The MPE counts clock cycles of 6.4 ns; these are the same times.
const (
	// baseTimeout is the first time-out of rank 0.
	baseTimeout = 100 * time.Millisecond
	// rankTimeout is added once per rank below the own one, so that two
	// FPGAs do not retransmit in step.
	rankTimeout = 12500 * time.Microsecond
	// retransmitTimeout is added for every retransmission so far.
	retransmitTimeout = time.Second
	// maxRetransmissions bounds the retransmissions of one call, all phases together.
	maxRetransmissions = 3
	// ackFactor multiplies the individual time-out, not the part for
	// retransmits, in the wait for ACK.
	ackFactor = 2
)

// timer is the MPE's one time-out counter.
type timer struct {
	// left is what a wait must still last. It keeps its value while the
	// MPE does something else, and from one call to the next.
	left time.Duration
	// dead: the counter has passed zero. Nothing fires until it is set
	// again.
	dead bool
	// retransmissions of the current call.
	retransmissions int
}

// arm sets the counter for a wait.
func (m *Model) arm(factor int) {
	individual := baseTimeout + time.Duration(m.cfg.Rank)*rankTimeout
	m.timer.left = time.Duration(factor)*individual + time.Duration(m.timer.retransmissions)*retransmitTimeout
	m.timer.dead = false
}

// counting reports whether the counter runs: only in a wait, only while there
// is nothing to read, and not once half a header is read.
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

// advance lets the time pass until now, firing what is due on the way.
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
		// The MPE abandons the message but neither asks again nor sets
		// the counter again. The word it hands up as a mark of failure
		// is empty, and the dequeuer takes it for a line of data.
		m.wrap.feedback = append(m.wrap.feedback, feedbackFail)
		m.deq.fifo = append(m.deq.fifo, word{last: true})
		m.mid = false
	}
}
