//go:build unix

package control

import (
	"sync"
	"syscall"
)

// umask is held while that of the process is another one: two at a time would leave it so.
var umask sync.Mutex

// restrictUmask keeps the socket closed to all but its owner between its making
// and the change of its mode.
func restrictUmask() (restore func()) {
	umask.Lock()
	old := syscall.Umask(0o177)
	return func() {
		syscall.Umask(old)
		umask.Unlock()
	}
}
