package rendezvous

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/privatedir"
)

const (
	// maxNames limits how many directory entries are read.
	maxNames = 1 << 16
	// staleAge is the minimum age at which Sweep removes a socket without a listening process. A younger socket may
	// have been bound by a process that does not listen yet.
	staleAge = time.Minute
	// lockTime limits how long a process waits for another one that is about to listen. Starting to listen takes only
	// microseconds.
	lockTime = time.Second
)

// Dir is an open directory that contains sockets. It belongs to this process's user, unless it was opened with OpenOf.
type Dir struct {
	handle *os.File
	path   string
	uid    int
}

// Make opens the directory at path. It creates the directory and its missing parents with mode 0700. The error matches
// privatedir.ErrUnsafe if another user could redirect the path or write to the directory.
func Make(path string) (*Dir, error) { return fromPrivate(privatedir.Make(path)) }

// Open opens an existing directory.
func Open(path string) (*Dir, error) { return fromPrivate(privatedir.Open(path)) }

func fromPrivate(dir *privatedir.Dir, err error) (*Dir, error) {
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	handle, err := dir.Descriptor()
	if err != nil {
		return nil, err
	}
	return &Dir{handle, dir.Path(), os.Geteuid()}, nil
}

// OpenOf opens a directory of any user. That user may have redirected the path, but Connect reaches only processes of
// that user.
func OpenOf(path string, uid int) (*Dir, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &stat); err == nil && int(stat.Uid) != uid {
		err = fmt.Errorf("it belongs to user %d and not to user %d: %w", stat.Uid, uid, privatedir.ErrUnsafe)
	}
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: path, Err: err}, f.Close())
	}
	return &Dir{f, path, uid}, nil
}

// Close closes the directory. Sockets in it are not affected.
func (d *Dir) Close() error { return d.handle.Close() }

// Path returns the path with which the directory was opened.
func (d *Dir) Path() string { return d.path }

// socketPath returns a path to a file in the directory. The path is short enough for a socket address, and valid until
// Close.
func (d *Dir) socketPath(name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.handle.Fd(), name)
}

// Names returns the names of all entries of the given type (fs.ModeSocket, fs.ModeDir) in ascending order.
func (d *Dir) Names(of fs.FileMode) ([]string, error) {
	fd, err := unix.Openat(int(d.handle.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer f.Close()
	entries, err := f.ReadDir(maxNames)
	if err == nil && len(entries) == maxNames {
		err = &fs.PathError{Op: "read", Path: d.path,
			Err: fmt.Errorf("it has %d entries or more: remove those that nobody needs", maxNames)}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type() == of {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove removes a socket.
func (d *Dir) Remove(name string) error {
	if err := unix.Unlinkat(int(d.handle.Fd()), name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: filepath.Join(d.path, name), Err: err}
	}
	return nil
}

// Sweep removes sockets of processes that have exited. It reports whether the directory is unused, that is, at least
// staleAge old and without sockets. In a younger one, a process may be about to listen.
func (d *Dir) Sweep() (unused bool) {
	unused = d.age(".") >= staleAge
	names, err := d.Names(fs.ModeSocket)
	if err != nil {
		return false
	}
	for _, name := range names {
		if d.age(name) < staleAge || !d.isStale(name, unix.SOCK_STREAM) || d.Remove(name) != nil {
			unused = false
		}
	}
	return unused
}

// age returns the time since a file was modified, or 0 if it does not exist.
func (d *Dir) age(name string) time.Duration {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(d.handle.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0
	}
	return time.Since(time.Unix(stat.Mtim.Unix()))
}

// isStale reports whether no process listens on a socket of any kind.
func (d *Dir) isStale(name string, kind int) bool {
	fd, _, err := d.connect(name, kind)
	if err == nil {
		unix.Close(fd)
	}
	return errors.Is(err, unix.ECONNREFUSED) // EPROTOTYPE would mean that a socket of another kind listens
}

// lock waits until no other process is about to listen in this directory, and then locks it.
func (d *Dir) lock() (unlock func(), err error) {
	fd, begin := int(d.handle.Fd()), time.Now()
	for {
		switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return func() { _ = unix.Flock(fd, unix.LOCK_UN) }, nil
		case err != unix.EINTR && (err != unix.EWOULDBLOCK || time.Since(begin) > lockTime):
			return nil, &fs.PathError{Op: "flock", Path: d.path, Err: err}
		}
		time.Sleep(time.Millisecond)
	}
}

// UID returns the user of the directory.
func (d *Dir) UID() int { return d.uid }

// Listens reports whether a process of the directory's user listens on the named socket, and which one.
func (d *Dir) Listens(name string, kind int) (p Peer, listens bool) {
	fd, p, err := d.connect(name, kind)
	if err == nil {
		unix.Close(fd)
	}
	return p, err == nil || errors.Is(err, unix.EAGAIN) // EAGAIN: its backlog is full
}
