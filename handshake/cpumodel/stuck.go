package cpumodel

import "fmt"

// Stuck reports whether the process is in a call that it cannot leave by itself, and the reason. A process that is idle
// or waiting for a SEND_REQUEST is not stuck; the latter wait has no time-out by design.
func (m *Model) Stuck() (string, bool) {
	why := m.whyStuck()
	if why == "" {
		return "", false
	}
	return fmt.Sprintf("rank %d: call with rank %d, %d words: %s: %s", m.cfg.Rank, m.peer, m.count, m.State(), why),
		true
}

func (m *Model) whyStuck() string {
	if m.crash != "" {
		return m.crash
	}
	if _, ok := m.Next(); ok || m.state == idle || m.state == waitRequest {
		return ""
	}
	why := fmt.Sprintf("%d time-outs have expired, and no other is armed", m.inc)
	if m.w.packets > 0 {
		why += fmt.Sprintf("; %d of %d bytes have arrived, and the next datagram without a header counts as their "+
			"continuation", m.w.received, m.w.max)
	}
	return why
}
