package mpemodel

import "fmt"

// Wedged reports whether the FPGA is in a state that it cannot leave by itself, and why. If the reason contains
// "forever", no packet helps; otherwise the reason names the packet that does. An FPGA that is idle or waits for a
// SEND_REQUEST is not wedged; the wait for SEND_REQUEST has no timeout by design.
func (m *Model) Wedged() (string, bool) {
	if !m.Busy() {
		return "", false
	}
	why := m.stuckReason()
	if why == "" {
		return "", false
	}
	return fmt.Sprintf("rank %d: %s of rank %d: %s: %s", m.cfg.Rank, m.wrapper.call.call, m.wrapper.call.peer, m.State(),
		why), true
}

func (m *Model) stuckReason() string {
	recv := m.wrapper.call.call.IsRecv()
	switch {
	case m.in.sourcesFull() && len(m.in.words) == 0:
		return "the FIFO of source ranks is full of the ranks of discarded datagrams and accepts no more data, forever"
	case m.halfRead:
		return "half a header is read; the first 16 bytes of the next datagram will be read as the other half (trap 10)"
	case m.state == idle:
		return "the MPE completed the call, but the program waits for more lines of it, forever"
	case m.state == sendData:
		return "the MPE waits for data to send from a program that receives, forever (trap 2)"
	case m.state == wait4Ack && recv:
		return "a deferred header of another type moved the receive to the wait for ACK, where it discards the " +
			"SEND_REQUEST, forever (trap 2)"
	case m.state == recvData && !m.dequeuer.hasSpace():
		return "the data FIFO is full after the end of a message, forever"
	case m.state == recvData:
		return "no payload came with the header; the next datagram, whatever it is, will be read as payload (trap 8)"
	case m.state == recvDone:
		return "the dequeuer waits for lines of a message that the MPE considers complete, forever"
	case m.state == wait4Req:
		return ""
	case m.state == recvStart && !m.midMessage && m.dequeuer.active:
		return fmt.Sprintf("a message was abandoned after %d of %d lines (the last of them empty); the next one "+
			"fills it up, is acknowledged, and is then short of as many lines", m.dequeuer.gotLines, m.dequeuer.wantLines)
	}
	if _, ok := m.NextEvent(); ok {
		return ""
	}
	return fmt.Sprintf("no timeout is left; waits for %s from rank %d, %s", m.expected.typ, m.expected.src,
		m.expected.call)
}
