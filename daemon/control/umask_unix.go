//go:build unix

package control

import (
	"sync"
	"syscall"
)

// umask is held while the umask of the process is changed: two changes at a time could leave it changed.
var umask sync.Mutex

// restrictUmask makes the umask exclude all but the owner, from the creation of the socket until its mode is
// set.
func restrictUmask() (restore func()) {
	umask.Lock()
	old := syscall.Umask(0o177)
	return func() {
		syscall.Umask(old)
		umask.Unlock()
	}
}
