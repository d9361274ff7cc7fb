package attach

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// Access says who has access beside root and the daemon's own user: users, and the members of
// groups, supplementary ones included.
type Access struct {
	UIDs, GIDs []int
}

// Allows reports whether a process with these credentials has access to a daemon that runs
// as user self.
func (a Access) Allows(c wire.Credentials, self int) bool {
	in := func(gid int) bool { return slices.Contains(a.GIDs, gid) }
	return c.UID == 0 || c.UID == self || slices.Contains(a.UIDs, c.UID) || in(c.GID) || slices.ContainsFunc(c.Groups, in)
}
