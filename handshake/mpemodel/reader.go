package mpemodel

// readHeader reads the next header in a wait state, 16 bytes at a time. The
// first half is read as soon as it is there; then nothing but a second half
// goes on from there, not even a time-out. It is taken from wherever the next
// word comes from, so a datagram of one word eats the next one (trap 10).
func (m *Model) readHeader() bool {
	if !m.half {
		if !m.in.readable() {
			return false
		}
		m.source = m.in.popSource()
		if m.state == recvStart && m.mid && m.source == m.midSource {
			// Whatever this peer sends in mid-message is payload, a
			// header as well (trap 4).
			m.state = recvData
			return true
		}
		w, _ := m.in.popWord()
		copy(m.header[:wordLen], w.b[:])
		m.half = true
		return true
	}
	w, ok := m.in.popWord()
	if !ok {
		return false
	}
	copy(m.header[wordLen:], w.b[:])
	m.half = false
	m.judge(w.last)
	return true
}

// judge acts on a complete header. ended: the datagram holds nothing more. A
// control packet must end there, or is drained unread; DATA need not, and one
// that does is waited for in readPayload.
func (m *Model) judge(ended bool) {
	if !ended && m.state != recvStart {
		m.drainThen(m.state)
		return
	}
	h, ok := parse(m.header[:])
	v := invalid
	if ok {
		v = m.want.check(h)
		if int(h.Src) != m.source {
			v = foreign
		}
	}
	switch {
	case v == wanted && m.state != recvStart:
		m.accept()
	case v == wanted:
		m.startPayload(h.Size)
	case !ended:
		m.drainThen(recvStart)
	case v == foreign:
		m.cache.deferHeader(h)
	}
}

// accept acts on the control packet that was waited for.
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

// startPayload trusts the header's size: it is never compared with what the
// receiver posted (trap 12).
func (m *Model) startPayload(size uint32) {
	m.deq.lengths = append(m.deq.lengths, (size+1)/2)
	m.wantWords, m.gotWords = size, 0
	m.midSource = m.source
	m.state = recvData
}

// readPayload reads one word of payload. There is no time-out here: with no
// data behind the header, the MPE waits for the next datagram and takes that
// for payload (trap 8).
func (m *Model) readPayload() bool {
	if !m.deq.room() {
		return false
	}
	w, ok := m.in.popWord()
	if !ok {
		return false
	}
	m.deq.fifo = append(m.deq.fifo, w)
	m.gotWords += w.words()
	switch {
	case !w.last:
	case m.gotWords < m.wantWords:
		m.mid = true
		m.arm(1)
		m.state = recvStart
	default:
		m.state = recvDone
	}
	return true
}
