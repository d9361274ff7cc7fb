// Package starve deprives a process of file descriptors.
package starve

import "golang.org/x/sys/unix"

// Descriptors makes every attempt of the process to open a descriptor fail, until the function restore is called or
// an open descriptor is closed.
func Descriptors() (restore func(), err error) {
	lowest, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	unix.Close(lowest)
	return limit(uint64(lowest))
}

// AllDescriptors is like Descriptors, but holds if another goroutine closes a descriptor. The process cannot poll more
// than three descriptors meanwhile.
func AllDescriptors() (restore func(), err error) {
	return limit(3) // standard input, output and error
}

func limit(descriptors uint64) (restore func(), err error) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		return nil, err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: descriptors, Max: before.Max}); err != nil {
		return nil, err
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) }, nil // restores an earlier limit
}
