package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// livenessInterval is the interval at which answers checks whether the peer's host has answered.
	livenessInterval = 20 * time.Millisecond
	// livenessResolution is the resolution of the kernel's timestamp of the last segment.
	livenessResolution = 10 * time.Millisecond
	// tcpEstablished is the state TCP_ESTABLISHED: neither side has closed.
	tcpEstablished = 1
)

// connState is the state of a connection, as reported by the kernel.
type connState struct {
	// isOpen is set if neither side has closed the connection.
	isOpen bool
	// silence is the time since the last segment from the peer's host arrived. Acknowledgements count as
	// segments.
	silence time.Duration
}

// verdict is the conclusion drawn from probing a connection.
type verdict int

const (
	undecided verdict = iota
	alive
	dead
)

// classifyLiveness decides whether a probed connection is alive. first is its state at the start of the probe, and now
// is its state after the elapsed time. The kernel sends the probe after a second of silence, and the answer may take
// another second.
func classifyLiveness(first, now connState, elapsed time.Duration) verdict {
	switch {
	case !now.isOpen:
		return dead
	case now.silence+livenessResolution < elapsed:
		return alive
	case elapsed >= max(answerTime-first.silence, 0)+answerTime:
		return dead
	}
	return undecided
}

// answers probes a connection, and reports whether it still exists at the peer's host.
func (c *Conn) answers(l *link) bool {
	begun := time.Now()
	clock := func() time.Duration { return time.Since(begun) }
	l.setProbing(true)
	defer l.setProbing(false)
	first, elapsed, ok := observe(clock, l.kernelState)
	for now := first; ok; now, elapsed, ok = observe(clock, l.kernelState) {
		switch classifyLiveness(first, now, elapsed) {
		case alive:
			return true
		case dead:
			return false
		}
		select {
		case <-time.After(livenessInterval):
		case <-l.closing:
			return false
		case <-c.ctx.Done():
			return true // closed: the result does not matter
		}
	}
	return false
}

// observe returns the state of a connection, and a time taken just before the state was read. The time is taken first
// so that a slow read is harmless: if the reported silence is longer than the time since then, the connection was
// silent throughout.
func observe(clock func() time.Duration, state func() (connState, bool)) (s connState, at time.Duration, ok bool) {
	at = clock()
	s, ok = state()
	return s, at, ok
}

// withFD calls f with the descriptor of a link, if the link is open.
func (l *link) withFD(f func(fd int)) {
	if w := l.wire; w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.fd >= 0 {
			f(w.fd)
		}
		return
	}
	if raw, err := l.conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // it fails if the link is closed: f is not called
	}
}

// setProbing(true) makes the kernel probe a connection after a second of silence and then once a second;
// setProbing(false) restores the settings of keepAlive. A connection with data in flight needs no probe, because the
// data is retransmitted until it is acknowledged.
func (l *link) setProbing(on bool) {
	idle, interval := keepAliveIdle, keepAliveInterval
	if on {
		idle, interval = answerTime, answerTime
	}
	l.withFD(func(fd int) {
		// If these calls fail, the connection is closed, which kernelState then reports.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(interval/time.Second))
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(idle/time.Second))
	})
}

// kernelState returns the kernel's state of a connection, or false if the connection is closed.
func (l *link) kernelState() (state connState, ok bool) {
	l.withFD(func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		ok = true
		state.isOpen = info.State == tcpEstablished
		state.silence = time.Duration(min(info.Last_ack_recv, info.Last_data_recv)) * time.Millisecond
	})
	return state, ok
}
