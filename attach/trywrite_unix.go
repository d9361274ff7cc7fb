//go:build unix && !linux

package attach

import (
	"io"
	"syscall"
)

// trier returns a function that writes as much to w as it takes without
// waiting. It is not to be called by two at once.
func trier(w io.Writer) func(b []byte) int {
	conn, ok := w.(syscall.Conn)
	if !ok {
		return tryNothing
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return tryNothing
	}
	var pending []byte
	var n int
	once := func(fd uintptr) bool { // made once, so that it costs no allocation
		n, err = syscall.Write(int(fd), pending)
		return true
	}
	return func(b []byte) int {
		if len(b) == 0 {
			return 0
		}
		pending, n = b, 0
		// An error is found again by who waits.
		_ = raw.Write(once)
		pending = nil
		return max(n, 0)
	}
}

func tryNothing([]byte) int { return 0 }
