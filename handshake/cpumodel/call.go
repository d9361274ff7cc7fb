package cpumodel

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// baseTimeout is the first timeout of a call; it starts anew with each datagram. timeoutStep is added for each
	// earlier timeout in the same call.
	baseTimeout = 100 * time.Millisecond
	timeoutStep = time.Second
	// maxTimeouts is the number of timeouts in a call after which the library waits without a timeout.
	maxTimeouts = 3
)

// enter makes the model enter a state and executes the first actions of that state. If the awaited header was already
// deferred, enter continues with the next state.
func (m *Model) enter(s state) {
	m.state = s
	switch s {
	case waitClear:
		m.transmit(m.header(protocol.SendRequest, 0).bytes())
		if m.startWait(protocol.ClearToSend, protocol.RecvInt) {
			m.enter(sending)
			return
		}
	case sending:
		m.unsent = append(m.header(protocol.Data, uint32(m.count)).bytes(), m.data...)
		m.nextAt = m.now
		return
	case waitAck:
		if m.startWait(protocol.Ack, protocol.RecvInt) {
			m.enter(idle)
			return
		}
	case waitRequest:
		if m.startWait(protocol.SendRequest, protocol.SendInt) {
			m.enter(waitData)
			return
		}
	case waitData:
		m.transmit(m.header(protocol.ClearToSend, 0).bytes())
		m.startWait(protocol.Data, protocol.SendInt)
	case idle:
		m.done = true
		return
	}
	m.rearm()
}

// rearm restarts the timeout at its full length, for the next call of recvfrom.
func (m *Model) rearm() {
	m.nextAt = m.now + baseTimeout + time.Duration(m.timeouts)*timeoutStep +
		m.cfg.TimeoutDelay[min(m.timeouts, maxTimeouts-1)]
}

// deadline returns the time at which the recvfrom in progress times out, and false if it has no timeout.
func (m *Model) deadline() (time.Duration, bool) {
	switch m.state {
	case waitClear, waitAck, waitData:
		return m.nextAt, m.timeouts < maxTimeouts
	}
	return 0, false
}

func (m *Model) stalled() bool { return m.now < m.stalledUntil }

// run steps the process until it is blocked.
func (m *Model) run() {
	for m.crashReason == "" && !m.stalled() && m.step() {
	}
}

// step executes one step of the process, and returns false if there is nothing to do.
func (m *Model) step() bool {
	switch {
	case m.state == idle:
		return false
	case m.state == sending:
		if m.now < m.nextAt {
			return false
		}
		m.sendNext()
		return true
	case m.interrupted:
		m.interrupted = false
		m.continueCall(m.read(datagram{}, -1))
		return true
	}
	if d, ok := m.socket.dequeue(); ok {
		m.continueCall(m.read(d, len(d.b)))
		return true
	}
	if at, timed := m.deadline(); timed && m.now >= at {
		m.onTimeout()
		return true
	}
	return false
}

// continueCall continues the MPI call after a datagram was received. The parameter complete reports whether the wait is
// over with this datagram.
func (m *Model) continueCall(complete bool) {
	switch {
	case m.crashReason != "":
	case !complete:
		m.rearm()
	case m.state == waitRequest:
		m.enter(waitData)
	case m.wait.result() == timedOutResult:
		m.onTimeout()
	case m.state == waitClear:
		m.enter(sending)
	case m.state == waitAck:
		m.enter(idle)
	default:
		m.deliver()
		m.transmit(m.header(protocol.Ack, 0).bytes())
		m.enter(idle)
	}
}

// onTimeout retransmits the packet that began the wait. It discards the part of a message received so far, but leaves
// its bytes in the receive buffer.
func (m *Model) onTimeout() {
	m.timeouts++
	if m.state == waitAck {
		m.enter(sending)
		return
	}
	m.enter(m.state)
}

// sendNext transmits the next datagram of DATA. In a long message the process sleeps after each one.
func (m *Model) sendNext() {
	if len(m.unsent) == 0 {
		m.enter(waitAck)
		return
	}
	n := min(len(m.unsent), maxDatagram)
	m.transmit(m.unsent[:n])
	m.unsent = m.unsent[n:]
	if m.count > longMessage {
		m.nextAt = m.now + m.cfg.Pause
	}
}

func (m *Model) header(typ protocol.Type, size uint32) header {
	call := protocol.SendInt
	if m.isRecv {
		call = protocol.RecvInt
	}
	return header{dst: uint32(m.peer), src: uint32(m.cfg.Rank), size: size, call: call, typ: typ}
}

func (m *Model) transmit(b []byte) {
	m.transmitted = append(m.transmitted, Packet{To: m.peer, At: m.now, Bytes: slices.Clone(b)})
}

// NextEvent returns the time at which the process acts next if nothing arrives before: the end of a timeout, pause or
// stall. It returns false if the process would not act.
func (m *Model) NextEvent() (time.Duration, bool) {
	switch {
	case m.crashReason != "" || m.state == idle:
		return 0, false
	case m.stalled():
		return m.stalledUntil, true
	case m.state == sending:
		return m.nextAt, true
	}
	return m.deadline()
}

// advance advances the time to now, and executes the steps that are due until then.
func (m *Model) advance(now time.Duration) {
	for {
		at, ok := m.NextEvent()
		if !ok || at > now {
			break
		}
		m.now = max(m.now, at)
		m.run()
	}
	m.now = max(m.now, now)
}
