//go:build !linux

package progress

// yield does nothing: there is no poller on this system.
func yield() {}
