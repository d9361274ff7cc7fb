// Package starve deprives a process of file descriptors.
package starve

import "golang.org/x/sys/unix"

// Descriptors makes every attempt of the process to open a file descriptor fail until the function restore is called.
func Descriptors() (restore func(), err error) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		return nil, err
	}
	lowest, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	unix.Close(lowest)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(lowest), Max: before.Max}); err != nil {
		return nil, err
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) }, nil // restores an earlier limit
}
