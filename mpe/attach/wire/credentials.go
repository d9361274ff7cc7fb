package wire

import (
	"errors"
)

// Credentials identify the process at the other end of a socket, as the kernel reports.
type Credentials struct {
	PID, UID, GID int
	// Groups are the supplementary groups.
	Groups []int
}

// ErrNoCredentials: the system does not report the process at the other end of a Unix
// socket, so that no program may attach.
var ErrNoCredentials = errors.New("this system does not report the process at the other end of a Unix socket: programs can attach on Linux only")
