//go:build unix

package control

import (
	"sync"
	"syscall"
)

// umaskMu is held while the umask of the process is restricted. Without it, two concurrent changes could leave the
// umask restricted forever.
var umaskMu sync.Mutex

// restrictUmask sets the umask so that new files are accessible to their owner alone. It protects the socket from its
// creation until its mode is set.
func restrictUmask() (restore func()) {
	umaskMu.Lock()
	old := syscall.Umask(0o177)
	return func() {
		syscall.Umask(old)
		umaskMu.Unlock()
	}
}
