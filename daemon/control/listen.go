package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
)

// ErrInUse is returned if another process already listens on the socket.
var ErrInUse = errors.New("another process is using the control socket")

// Listen creates the control socket with the given permission bits, and any missing directories. It rejects a path that
// another user could redirect (see privatedir.Parent). It replaces a stale socket, returns ErrInUse if a process is
// listening on the socket, and fails if path is any other kind of file. Closing the listener removes the socket.
func Listen(path string, mode fs.FileMode) (net.Listener, error) {
	err := privatedir.MakeParents(path, 0o755)
	switch {
	case errors.Is(err, privatedir.ErrUnsafe):
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf(
			"control socket: %w: create the directory, or set control.socket to a writable path", err)
	}
	if err := clearPath(path); err != nil {
		return nil, err
	}
	restore := restrictUmask()
	l, err := net.Listen("unix", path)
	restore()
	if err != nil {
		return nil, fmt.Errorf("control socket: %w: set control.socket to a writable path", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	s := &socket{Listener: l, path: path}
	// No other user can have replaced the socket, because MakeParents has checked the directory.
	if err = os.Chmod(path, mode); err == nil {
		s.created, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), s.Close())
	}
	return s, nil
}

// clearPath removes a stale socket from path.
func clearPath(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("control socket: %w", err)
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("control socket: %s exists and is not a socket: remove it, or set control.socket to "+
			"another path", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		err := attach.CheckServer(conn.(*net.UnixConn), path)
		conn.Close()
		if foreign, ok := errors.AsType[*attach.ForeignError](err); ok {
			return fmt.Errorf("control socket %s: %w: a process of user %d listens there: set another path with "+
				"--control or control.socket", path, ErrInUse, foreign.UID)
		}
		return fmt.Errorf("%s: %w: stop it, or set another path with --control or control.socket", path, ErrInUse)
	case errors.Is(err, fs.ErrNotExist):
		return nil // its owner just removed it
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("control socket: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stale control socket: %w", err)
	}
	return nil
}

// socket is a listener that removes its socket file on Close, unless the file has been replaced.
type socket struct {
	net.Listener
	path    string
	created fs.FileInfo
	once    sync.Once
	err     error
}

// Close closes the listener and removes the socket file.
func (s *socket) Close() error {
	s.once.Do(func() {
		if now, err := os.Lstat(s.path); err == nil && (s.created == nil || os.SameFile(s.created, now)) {
			s.err = os.Remove(s.path)
		}
		s.err = errors.Join(s.err, s.Listener.Close())
	})
	return s.err
}
