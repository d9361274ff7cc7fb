//go:build unix

package control

import "syscall"

// restrictUmask keeps the socket closed to all but its owner between its making
// and the change of its mode.
func restrictUmask() (restore func()) {
	old := syscall.Umask(0o177)
	return func() { syscall.Umask(old) }
}
