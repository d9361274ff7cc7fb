package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// livenessInterval is the time between two checks whether the peer's host has answered.
	livenessInterval = 20 * time.Millisecond
	// livenessResolution is the resolution of the kernel's time of the last segment.
	livenessResolution = 10 * time.Millisecond
	// tcpEstablished is the state in which neither side has closed.
	tcpEstablished = 1
)

// connState is what the system knows of a connection.
type connState struct {
	// open: neither side has closed it.
	open bool
	// silent is how long nothing has come from the peer's host, not even an
	// acknowledgement.
	silent time.Duration
}

// verdict is what is known of a connection that was probed.
type verdict int

const (
	undecided verdict = iota
	alive
	dead
)

// judge decides on a connection that was first, and is now, elapsed later, as seen. The
// probe goes when nothing has come for a second; the answer may take another.
func judge(first, now connState, elapsed time.Duration) verdict {
	switch {
	case !now.open:
		return dead
	case now.silent+livenessResolution < elapsed:
		return alive
	case elapsed >= max(answerTime-first.silent, 0)+answerTime:
		return dead
	}
	return undecided
}

// answers probes a connection, and reports whether the peer's host still knows it.
func (c *Conn) answers(l *link) bool {
	begun := time.Now()
	clock := func() time.Duration { return time.Since(begun) }
	l.probe(true)
	defer l.probe(false)
	first, elapsed, ok := observe(clock, l.state)
	for now := first; ok; now, elapsed, ok = observe(clock, l.state) {
		switch judge(first, now, elapsed) {
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
			return true // what comes now is too late
		}
	}
	return false
}

// observe returns the state of a connection, and a time before which it was not asked
// for. So a connection that has been silent for longer than that has been silent since,
// however long the answer took.
func observe(clock func() time.Duration, state func() (connState, bool)) (s connState, at time.Duration, ok bool) {
	at = clock()
	s, ok = state()
	return s, at, ok
}

// withFD calls f with a link's descriptor, if it is open.
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

// probe has the kernel probe a connection by which nothing has come for a second, once a
// second, or as keepAlive says. One with data in transit needs none:
// it is retransmitted until it is acknowledged.
func (l *link) probe(on bool) {
	idle, interval := keepAliveIdle, keepAliveInterval
	if on {
		idle, interval = answerTime, answerTime
	}
	l.withFD(func(fd int) {
		// They fail if the connection has ended, which state reports.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(interval/time.Second))
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(idle/time.Second))
	})
}

// state returns what the kernel knows of a connection, or false if that is closed.
func (l *link) state() (s connState, ok bool) {
	l.withFD(func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		ok = true
		s.open = info.State == tcpEstablished
		s.silent = time.Duration(min(info.Last_ack_recv, info.Last_data_recv)) * time.Millisecond
	})
	return s, ok
}
