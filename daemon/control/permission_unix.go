//go:build unix

package control

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// whoMayConnect returns a hint, for an error message, about which users may connect to a socket and how to gain access.
func whoMayConnect(socket string) string {
	info, err := os.Stat(socket)
	if err != nil { // this user cannot search one of the parent directories
		return "this user may not search a directory of its path: run zrlctl as the daemon's user, or as root"
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&0o020 == 0 {
		return fmt.Sprintf("mode %v allows only its owner to use it: run zrlctl as that user or as root, or change "+
			"control.mode", info.Mode().Perm())
	}
	group := strconv.FormatUint(uint64(stat.Gid), 10)
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	name := "$USER"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return fmt.Sprintf("only its owner and the group %s may use it: \"sudo usermod -aG %s %s\" and log in again, or "+
		"change control.mode", group, group, name)
}
