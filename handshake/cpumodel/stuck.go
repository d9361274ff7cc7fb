package cpumodel

import "fmt"

// Stuck reports whether the process is in a call that it cannot leave by itself, and why. A process that is idle or
// waits for a SEND_REQUEST is not stuck; the wait for SEND_REQUEST has no timeout by design.
func (m *Model) Stuck() (string, bool) {
	why := m.stuckReason()
	if why == "" {
		return "", false
	}
	return fmt.Sprintf("rank %d: call with rank %d, %d words: %s: %s", m.cfg.Rank, m.peer, m.count, m.State(), why),
		true
}

// stuckReason returns why the process crashed, or why it cannot proceed without another datagram. It returns "" if a
// timeout is armed, and in the states that have none by design.
func (m *Model) stuckReason() string {
	if m.crashReason != "" {
		return m.crashReason
	}
	if _, ok := m.NextEvent(); ok || m.state == idle || m.state == waitRequest {
		return ""
	}
	why := fmt.Sprintf("%d timeouts have expired, and no other is armed", m.timeouts)
	if m.wait.packets > 0 {
		why += fmt.Sprintf("; %d of %d bytes were received, and the next datagram without a header counts as their "+
			"continuation", m.wait.received, m.wait.max)
	}
	return why
}
