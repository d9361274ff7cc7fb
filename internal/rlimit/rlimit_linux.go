package rlimit

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mapping returns err as an *Error if the address space limit does not allow n more bytes, and err otherwise.
func Mapping(err error, n int) error {
	if !errors.Is(err, unix.ENOMEM) {
		return err
	}
	if left, limited := AddressSpaceLeft(); limited && uint64(n) > left {
		return &Error{AddressSpace, softLimit(unix.RLIMIT_AS), err}
	}
	return err
}

// Descriptor returns err as an *Error if no file descriptor is available to the process or on the host, and err
// otherwise.
func Descriptor(err error) error {
	if Is(err) {
		return err
	}
	switch {
	case errors.Is(err, unix.EMFILE):
		return &Error{Descriptors, softLimit(unix.RLIMIT_NOFILE), err}
	case errors.Is(err, unix.ENFILE):
		return &Error{Resource: SystemDescriptors, Err: err}
	}
	return err
}

// CheckDescriptor returns an *Error if the process cannot open another file descriptor, and nil otherwise.
func CheckDescriptor() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return Descriptor(err)
}

var errLost = errors.New("descriptors in a message were lost: this process or the host may have too many of them open")

// ReceiveError returns the error of a message whose descriptors were not all received (MSG_CTRUNC). It is an *Error if
// no file descriptor is available to the process or on the host.
func ReceiveError() error {
	if err := CheckDescriptor(); err != nil {
		return err
	}
	return errLost
}

// AddressSpaceLeft returns the number of bytes that the process can still map, and whether there is a limit.
func AddressSpaceLeft() (left uint64, limited bool) {
	limit := softLimit(unix.RLIMIT_AS)
	if limit == unix.RLIM_INFINITY {
		return 0, false
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return limit, true
	}
	pages, _, _ := strings.Cut(string(text), " ")
	used, err := strconv.ParseUint(pages, 10, 64)
	if err != nil {
		return limit, true
	}
	return limit - min(limit, used*uint64(os.Getpagesize())), true
}

// softLimit returns the soft limit.
func softLimit(resource int) uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(resource, &limit) != nil {
		return unix.RLIM_INFINITY
	}
	return limit.Cur
}
