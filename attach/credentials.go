package attach

import (
	"errors"
	"fmt"
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

// Access says who may attach, beside root and the daemon's own user.
type Access struct {
	UIDs, GIDs []int
}

// check returns nil if a program with these credentials may attach to a daemon
// that runs as user self.
func (a Access) check(c Credentials, self int) error {
	switch {
	case c.UID == 0, c.UID == self, slices.Contains(a.UIDs, c.UID), slices.Contains(a.GIDs, c.GID):
		return nil
	case slices.ContainsFunc(c.Groups, func(g int) bool { return slices.Contains(a.GIDs, g) }):
		return nil
	}
	return fmt.Errorf("user %d (group %d) may not attach: the daemon runs as user %d; let the user or one of its groups in by the daemon's configuration", c.UID, c.GID, self)
}
