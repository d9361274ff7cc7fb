//go:build !linux

package progress

// yield does nothing: there is no poller on this system.
func yield() {}

// Processor returns -1: it is not known on which processor the caller runs.
func Processor() int { return -1 }

func leaveProcessor(int) {}
