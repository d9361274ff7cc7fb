//go:build unix && !linux && !darwin && !freebsd

package privatedir

import "golang.org/x/sys/unix"

// searchOnly is the flag for opening directories. On this system, only directories that this user may read can be
// opened.
const searchOnly = unix.O_RDONLY
