//go:build !linux

package drive

// yield does nothing: there is no poller on this system.
func yield() {}
