package attach

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"

	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// EnvOwner is the environment variable that specifies the daemon's user, by name or number. It is needed if the
// daemon's user is not root, not this process's user, and not the user to whom root has given the socket's
// directory in /run.
const EnvOwner = "ZRLMPI_SOCKET_OWNER"

// ForeignError reports that the process that listens on a socket runs as a user who is not trusted.
type ForeignError struct {
	Socket string
	UID    int
}

// Error names the user who runs the process, and explains how to trust that user.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s: a process of user %d listens there, which is neither root nor user %d: nothing was "+
		"sent to it; if that is the daemon's user, set %s=%d", e.Socket, e.UID, os.Geteuid(), EnvOwner, e.UID)
}

// Is reports whether target is fs.ErrPermission.
func (e *ForeignError) Is(target error) bool { return target == fs.ErrPermission }

// CheckServer returns an error unless the process that listens at the other end of conn is trusted. It is
// trusted if it runs as root, as this process's user, as the user specified by EnvOwner, or as the user to whom
// root has given the socket's directory in /run, as a service manager does. If it runs as another user, the
// error is a *ForeignError.
func CheckServer(conn *net.UnixConn, socket string) error {
	uid, err := wire.OwnerOf(conn)
	if err != nil {
		return fmt.Errorf("%s: the user of the process that listens there is unknown: %w", socket, err)
	}
	if uid == 0 || uid == os.Geteuid() {
		return nil
	}
	if name := os.Getenv(EnvOwner); name != "" {
		switch owner, err := userID(name); {
		case err != nil:
			return fmt.Errorf("%s=%q: %w", EnvOwner, name, err)
		case uid == owner:
			return nil
		}
	}
	if owner, ok := privatedir.ServiceOwner(socket); ok && uid == owner {
		return nil
	}
	return &ForeignError{socket, uid}
}

// userID returns the numeric id of a user who is given by name or number.
func userID(name string) (int, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return int(id), nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("%w: give the number of a user that only a directory service knows", err)
	}
	return strconv.Atoi(u.Uid)
}
