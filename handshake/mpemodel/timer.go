package mpemodel

import "time"

// The MPE counts clock cycles of 6.4 ns; these constants are the resulting times.
const (
	// baseTimeout is the first timeout of rank 0.
	baseTimeout = 100 * time.Millisecond
	// rankTimeout is multiplied by the rank and added to the first timeout, so that two FPGAs do not retransmit in
	// step.
	rankTimeout = 12500 * time.Microsecond
	// retransmitTimeout is added for every earlier retransmission.
	retransmitTimeout = time.Second
	// maxRetransmissions limits the number of retransmissions in one call. All phases of the call share this limit.
	maxRetransmissions = 3
	// ackFactor is the factor by which the rank's timeout is longer in the wait for ACK. It does not apply to the time
	// added for earlier retransmissions.
	ackFactor = 2
)

// timer is the MPE's only timeout counter.
type timer struct {
	// remaining is the time until the timeout of a wait. It stands still while the MPE is not waiting, and keeps its
	// value after the end of a call.
	remaining time.Duration
	// expired is set once the counter has passed zero. The counter does not fire again before arm restarts it.
	expired bool
	// retransmissions is the number of retransmissions in the current call.
	retransmissions int
}

// arm restarts the timeout counter for a wait. The rank's timeout is multiplied by the parameter factor.
func (m *Model) arm(factor int) {
	individual := baseTimeout + time.Duration(m.cfg.Rank)*rankTimeout
	m.timer.remaining = time.Duration(factor)*individual + time.Duration(m.timer.retransmissions)*retransmitTimeout
	m.timer.expired = false
}

// counting reports whether the counter is running. It runs only in a wait with nothing to read, and stops after half a
// header was read.
func (m *Model) counting() bool {
	if m.halfRead || m.in.readable() {
		return false
	}
	switch m.state {
	case wait4Clear, wait4Ack:
		return true
	case recvStart:
		return m.dequeuer.hasSpace()
	}
	return false
}

// advance advances the time of the model to now, and executes the timeouts that expire until then.
func (m *Model) advance(now time.Duration) {
	for m.counting() && !m.timer.expired && now > m.now {
		if d := now - m.now; d < m.timer.remaining {
			m.timer.remaining -= d
			break
		}
		m.now += m.timer.remaining
		m.timer.remaining = 0
		m.timer.expired = true
		if m.timer.retransmissions < maxRetransmissions {
			m.timer.retransmissions++
			m.onTimeout()
			m.run()
		}
	}
	m.now = max(m.now, now)
}

// onTimeout retransmits what the current wait allows: SEND_REQUEST, the whole message, or CLEAR_TO_SEND.
func (m *Model) onTimeout() {
	switch m.state {
	case wait4Clear:
		m.requestToSend()
	case wait4Ack:
		m.wrapper.feedback = append(m.wrapper.feedback, feedbackFail)
		m.startData()
	case recvStart:
		if !m.midMessage {
			m.sendClear()
			return
		}
		// The MPE abandons the message, but neither asks for it again nor restarts the counter. To mark the failure, it
		// passes an empty word to the dequeuer, which mistakes the word for a line of data.
		m.wrapper.feedback = append(m.wrapper.feedback, feedbackFail)
		m.dequeuer.fifo = append(m.dequeuer.fifo, word{last: true})
		m.midMessage = false
	}
}
