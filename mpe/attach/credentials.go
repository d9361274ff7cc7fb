package attach

import (
	"errors"
	"slices"
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

// Access says who has access beside root and the daemon's own user: users, and the members of
// groups, supplementary ones included.
type Access struct {
	UIDs, GIDs []int
}

// Allows reports whether a process with these credentials has access to a daemon that runs
// as user self.
func (a Access) Allows(c Credentials, self int) bool {
	in := func(gid int) bool { return slices.Contains(a.GIDs, gid) }
	return c.UID == 0 || c.UID == self || slices.Contains(a.UIDs, c.UID) || in(c.GID) || slices.ContainsFunc(c.Groups, in)
}
