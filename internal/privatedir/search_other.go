//go:build unix && !linux && !darwin && !freebsd

package privatedir

import "golang.org/x/sys/unix"

// searchOnly opens directories. Those that this user may not read cannot be opened here.
const searchOnly = unix.O_RDONLY
