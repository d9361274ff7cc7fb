package mpemodel

import "github.com/zrlmpi/zrlmpid/protocol"

// run executes steps of all parts of the model until every part is blocked.
func (m *Model) run() {
	for m.in.fillFIFOs() || m.step() || m.dequeuer.step(&m.wrapper) || m.wrapper.step() {
	}
}

// step executes one step of the MPE's state machine, and returns false if the state machine is blocked.
func (m *Model) step() bool {
	switch m.state {
	case idle:
		m.timer.retransmissions = 0
		if !m.wrapper.posted {
			return false
		}
		m.wrapper.posted = false
		m.call = m.wrapper.call
		if m.call.call.IsSend() {
			m.requestToSend()
		} else {
			m.startReceive()
		}
		return true
	case sendData:
		if !m.wrapper.linesReady {
			return false
		}
		m.wrapper.linesReady = false
		m.transmitData()
		return true
	case recvData:
		return m.readPayload()
	case recvDone:
		if m.dequeuer.pendingDone == 0 {
			return false
		}
		m.dequeuer.pendingDone--
		m.acknowledge()
		return true
	case drain:
		w, ok := m.in.popWord()
		if ok && w.last {
			m.state = m.afterDrain
		}
		return ok
	}
	return m.readHeader()
}

// requestToSend begins a send, or retransmits the SEND_REQUEST of the current one.
func (m *Model) requestToSend() {
	m.transmit(m.packet(protocol.SendRequest, 0))
	m.expect(protocol.ClearToSend, m.call.call.Counterpart())
	m.arm(1)
	if h, ok := m.cache.lookup(m.expected.src); ok && m.expected.check(h) == awaited {
		m.startData()
		return
	}
	m.state = wait4Clear
}

// startData begins to send or retransmit DATA. It deletes the peer's deferred header, so that a SEND_REQUEST that
// crossed with the FPGA's own one is lost (trap 3).
func (m *Model) startData() {
	m.cache.drop(m.expected.src)
	m.state = sendData
}

// transmitData sends the whole message. It need not look for a deferred ACK, because startData has emptied the cache
// line and the MPE has read nothing since.
func (m *Model) transmitData() {
	m.transmit(m.wrapper.appendLines(m.packet(protocol.Data, m.call.count)))
	m.expect(protocol.Ack, m.call.call.Counterpart())
	m.arm(ackFactor)
	m.state = wait4Ack
}

// startReceive searches for a deferred SEND_REQUEST. If it finds another header, it enters the wait for ACK, although
// it still expects SEND_REQUEST, and leaves the counter at its value in an earlier wait (trap 2).
func (m *Model) startReceive() {
	m.expect(protocol.SendRequest, m.call.call.Counterpart())
	h, ok := m.cache.lookup(m.expected.src)
	switch {
	case !ok:
		m.state = wait4Req
	case m.expected.check(h) == awaited:
		m.sendClear()
	default:
		m.state = wait4Ack
	}
}

// sendClear sends or retransmits CLEAR_TO_SEND.
func (m *Model) sendClear() {
	m.cache.drop(m.expected.src)
	m.transmit(m.packet(protocol.ClearToSend, 0))
	m.expect(protocol.Data, m.call.call.Counterpart())
	m.arm(1)
	m.midMessage = false
	m.state = recvStart
}

// acknowledge sends ACK and ends the receive. It runs once per message, even if the peer retransmits DATA (trap 6).
func (m *Model) acknowledge() {
	m.transmit(m.packet(protocol.Ack, 0))
	m.finish()
}

// finish ends a call on the side of the MPE, and reports its success to the wrapper.
func (m *Model) finish() {
	m.cache.drop(m.expected.src)
	m.wrapper.feedback = append(m.wrapper.feedback, feedbackOK)
	m.state = idle
}

func (m *Model) expect(t protocol.Type, c protocol.Call) {
	m.expected = expectation{src: m.call.peer, typ: t, call: c}
}

// packet returns an encoded header for a packet to the peer of the current call.
func (m *Model) packet(t protocol.Type, size uint32) []byte {
	return protocol.CloudFPGA.Append(nil, protocol.Header{
		Dst: m.call.peer, Src: uint32(m.cfg.Rank), Size: size, Call: m.call.call, Type: t,
	})
}
