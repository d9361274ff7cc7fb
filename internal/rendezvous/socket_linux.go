package rendezvous

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Errors of Connect and Listen.
var (
	// ErrNoProcess is returned when no process listens on the socket with the given name.
	ErrNoProcess = errors.New("no process listens here")
	// ErrForeign is returned when the listening process belongs to another user.
	ErrForeign = errors.New("it is another user's process")
)

// TakenError is returned when another process of this user already listens on the socket with the given name.
type TakenError struct {
	Path string
	// PID is the process, or 0 if it is not visible from here, for example in another container.
	PID int
}

// Error names the process.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%s: process %d listens on it", e.Path, e.PID)
}

// Is reports whether target is EADDRINUSE.
func (e *TakenError) Is(target error) bool { return target == unix.EADDRINUSE }

// Peer identifies the process at the other end of a connection, as reported by the kernel.
type Peer struct {
	// PID is 0 if the process is not visible from here, for example in another container.
	PID, UID int
}

// PeerOf returns the process at the other end of a connection: the process that connected, or that listened at the time
// of the connection.
func PeerOf(fd int) (Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, os.NewSyscallError("getsockopt", err)
	}
	return Peer{int(cred.Pid), int(cred.Uid)}, nil
}

// backlog is the maximum number of connections that may wait to be accepted. It equals the kernel's default limit.
const backlog = 4096

// maxListenTries limits how often Listen tries again because another process has removed the empty directory.
const maxListenTries = 100

// Listen creates the directory at path, and returns a listening socket in it, with the given name and kind, such as
// unix.SOCK_STREAM. It replaces a socket whose process has exited. The error is a *TakenError if another process
// listens on the name. The caller must remove the name before it closes the socket.
func Listen(path, name string, kind int) (dir *Dir, fd int, err error) {
	for range maxListenTries {
		if dir, err = Make(path); err == nil {
			if fd, err = dir.listen(name, kind); err == nil {
				return dir, fd, nil
			}
			dir.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, -1, err
}

// listen implements Listen for an open directory. A socket that refuses connections belongs to no process and is
// replaced; the lock prevents two processes from replacing it at the same time.
func (d *Dir) listen(name string, kind int) (fd int, err error) {
	unlock, err := d.lock()
	if err != nil {
		return -1, err
	}
	defer unlock()
	path := filepath.Join(d.path, name)
	if fd, err = listen(d.socketPath(name), kind); errors.Is(err, unix.EADDRINUSE) {
		var other int
		var peer Peer
		switch other, peer, err = d.connect(name, kind); {
		case err == nil:
			unix.Close(other)
			return -1, &TakenError{path, peer.PID}
		case !errors.Is(err, unix.ECONNREFUSED):
			return -1, err
		}
		if err = d.Remove(name); err == nil {
			fd, err = listen(d.socketPath(name), kind)
		}
	}
	if err != nil {
		return -1, &fs.PathError{Op: "listen", Path: path, Err: err}
	}
	return fd, nil
}

func listen(path string, kind int) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Connect connects to the process that listens on the name. It does not wait. The error matches ErrNoProcess if no
// process listens, and ErrForeign if the process does not belong to the directory's user.
func (d *Dir) Connect(name string, kind int) (*net.UnixConn, Peer, error) {
	fd, peer, err := d.connect(name, kind)
	if err != nil {
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrNoProcess, err)
		}
		return nil, Peer{}, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close() // FileConn duplicates the descriptor
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, Peer{}, err
	}
	return conn.(*net.UnixConn), peer, nil
}

// connect connects to a socket by an open descriptor of the socket's file, so that the file cannot be exchanged
// meanwhile, and then checks the peer's user.
func (d *Dir) connect(name string, kind int) (fd int, peer Peer, err error) {
	fail := func(op string, err error) (int, Peer, error) {
		return -1, Peer{}, &fs.PathError{Op: op, Path: filepath.Join(d.path, name), Err: err}
	}
	// Do not follow a symbolic link.
	file, err := unix.Openat(int(d.handle.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail("open", err)
	}
	defer unix.Close(file)
	if fd, err = unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return fail("socket", err)
	}
	op := "connect"
	if err = unix.Connect(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d", file)}); err == nil {
		op = "getsockopt"
		if peer, err = PeerOf(fd); err == nil && peer.UID != d.uid {
			err = ErrForeign
		}
	}
	if err != nil {
		unix.Close(fd)
		return fail(op, err)
	}
	return fd, peer, nil
}
