//go:build unix && !linux && !darwin && !freebsd

package privatedir

import "golang.org/x/sys/unix"

// searchOnly opens directories that this user may read; others cannot be opened here.
const searchOnly = unix.O_RDONLY
