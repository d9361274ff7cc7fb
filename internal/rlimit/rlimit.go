// Package rlimit names the limit that a failed system call has reached, and a way to raise it.
//
// It must never name a limit that the call has not reached.
package rlimit

import (
	"errors"
	"fmt"
	"syscall"
)

// Resource identifies a resource that the system limits. Ranks that share memory send these values in their hello.
type Resource uint32

// Limited resources.
const (
	// AddressSpace is the address space of a process: ulimit -v, RLIMIT_AS.
	AddressSpace Resource = iota + 1
	// Descriptors are the file descriptors of a process: ulimit -n, RLIMIT_NOFILE.
	Descriptors
	// SystemDescriptors are the open files of the host: fs.file-max.
	SystemDescriptors
	numResources
)

// IsKnown reports whether r is one of the resources.
func (r Resource) IsKnown() bool { return r >= AddressSpace && r < numResources }

// Error is returned when a system call has failed because a limit was reached.
type Error struct {
	Resource Resource
	// Limit is the value of the limit, in bytes or descriptors, or 0 if it is unknown.
	Limit uint64
	// Err is the error of the system call, or nil if another process reported it.
	Err error
}

// Error names the limit and a way to raise it.
func (e *Error) Error() string {
	text := ""
	if e.Err != nil {
		text = e.Err.Error() + ": "
	}
	switch e.Resource {
	case AddressSpace:
		return text + fmt.Sprintf("the limit of the address space, %d KiB, is reached: raise it (ulimit -v)",
			e.Limit>>10)
	case Descriptors:
		return text + fmt.Sprintf("the limit of %d file descriptors is reached: raise it (ulimit -n)", e.Limit)
	}
	return text + "the host's limit of file descriptors is reached: raise it (sysctl fs.file-max)"
}

// Is reports whether err is an *Error.
func Is(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// Unwrap returns the error of the system call.
func (e *Error) Unwrap() error {
	if e.Err == nil {
		return e.errno()
	}
	return e.Err
}

// errno returns the error code with which a system call fails when the limit is reached.
func (e *Error) errno() syscall.Errno {
	switch e.Resource {
	case AddressSpace:
		return syscall.ENOMEM
	case Descriptors:
		return syscall.EMFILE
	}
	return syscall.ENFILE
}
