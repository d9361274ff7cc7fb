//go:build unix

package control

import (
	"sync"
	"syscall"
)

// umask is held while the umask of the process is changed. Two concurrent changes could leave it changed for
// good.
var umask sync.Mutex

// restrictUmask sets the umask so that files are created for their owner alone. It is in effect from the
// creation of the socket until the socket's mode is set.
func restrictUmask() (restore func()) {
	umask.Lock()
	old := syscall.Umask(0o177)
	return func() {
		syscall.Umask(old)
		umask.Unlock()
	}
}
