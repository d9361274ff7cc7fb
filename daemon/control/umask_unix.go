//go:build unix

package control

import (
	"sync"
	"syscall"
)

// umaskMu is held while the umask of the process is changed. Two concurrent changes could leave it changed for
// good.
var umaskMu sync.Mutex

// restrictUmask sets the umask so that files are created for their owner alone. It is in effect from the
// creation of the socket until the socket's mode is set.
func restrictUmask() (restore func()) {
	umaskMu.Lock()
	old := syscall.Umask(0o177)
	return func() {
		syscall.Umask(old)
		umaskMu.Unlock()
	}
}
