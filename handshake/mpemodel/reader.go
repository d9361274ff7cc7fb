package mpemodel

// readHeader reads the next header in a wait state, 16 bytes at a time. After the first half, the MPE waits for a
// second half without a timeout. It takes the next word of any datagram for the second half, so after a datagram of a
// single word, it loses the beginning of the next datagram (trap 10).
func (m *Model) readHeader() bool {
	if !m.halfRead {
		if !m.in.readable() {
			return false
		}
		m.source = m.in.popSource()
		if m.state == recvStart && m.midMessage && m.source == m.midSource {
			// In the middle of a message, the MPE stores every packet from this peer as payload, including its header
			// (trap 4).
			m.state = recvData
			return true
		}
		w, _ := m.in.popWord()
		copy(m.header[:wordLen], w.b[:])
		m.halfRead = true
		return true
	}
	w, ok := m.in.popWord()
	if !ok {
		return false
	}
	copy(m.header[wordLen:], w.b[:])
	m.halfRead = false
	m.handleHeader(w.last)
	return true
}

// handleHeader handles a complete header. ended reports whether the datagram ends after it. handleHeader discards a
// control packet that does not end there, with the rest of its datagram. If DATA ends there, readPayload waits for its
// payload.
func (m *Model) handleHeader(ended bool) {
	if !ended && m.state != recvStart {
		m.drainThen(m.state)
		return
	}
	header, ok := parse(m.header[:])
	v := invalid
	if ok {
		v = m.expected.check(header)
		if int(header.Src) != m.source {
			v = unexpected
		}
	}
	switch {
	case v == awaited && m.state != recvStart:
		m.accept()
	case v == awaited:
		m.startPayload(header.Size)
	case !ended:
		m.drainThen(recvStart)
	case v == unexpected:
		m.cache.deferHeader(header)
	}
}

// accept reacts to the control packet that the MPE was waiting for.
func (m *Model) accept() {
	switch m.state {
	case wait4Clear:
		m.startData()
	case wait4Req:
		m.sendClear()
	case wait4Ack:
		m.finish()
	}
}

func (m *Model) drainThen(s state) {
	m.afterDrain = s
	m.state = drain
}

// startPayload begins to receive payload. It trusts the size in the header, which the MPE never compares with the
// receiver's count (trap 12).
func (m *Model) startPayload(size uint32) {
	m.dequeuer.lengths = append(m.dequeuer.lengths, (size+1)/2)
	m.expectedWords, m.receivedWords = size, 0
	m.midSource = m.source
	m.state = recvData
}

// readPayload reads one word of payload. This state has no timeout. If no data follows the header, the MPE waits for
// the next datagram and takes it for payload (trap 8).
func (m *Model) readPayload() bool {
	if !m.dequeuer.hasSpace() {
		return false
	}
	w, ok := m.in.popWord()
	if !ok {
		return false
	}
	m.dequeuer.fifo = append(m.dequeuer.fifo, w)
	m.receivedWords += w.words()
	switch {
	case !w.last:
	case m.receivedWords < m.expectedWords:
		m.midMessage = true
		m.arm(1)
		m.state = recvStart
	default:
		m.state = recvDone
	}
	return true
}
