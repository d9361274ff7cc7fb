//go:build unix

package privatedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	nonBlocking = unix.O_NONBLOCK
	// writable is the mask of the permission bits that let the group and others write to a file.
	writable = unix.S_IWGRP | unix.S_IWOTH
	// reachable is the mask of the permission bits that let the group and others search a directory.
	reachable = unix.S_IXGRP | unix.S_IXOTH
	// maxLinks limits how many symbolic links are followed on one path. The kernel has the same limit.
	maxLinks = 40
)

// openRoot walks to a directory at an absolute path and opens it.
func openRoot(path string, parents, last fs.FileMode) (*os.Root, error) {
	w, err := walk(path, parents, last)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.checkPrivate(); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(w.path())
	if err != nil {
		return nil, err
	}
	// From here on, only this user can have replaced the directory, because its parents have been checked.
	info, err := root.Stat(".")
	if err == nil && !w.isSame(info) {
		err = &UnsafeError{path, replacedProblem}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// checkParents walks to the directory of a file at an absolute path.
func checkParents(path string, mode fs.FileMode) error {
	w, err := walk(path[:strings.LastIndexByte(path, '/')], mode, mode)
	if err == nil {
		w.close()
	}
	return err
}

// ServiceOwner returns the owner of the directory of a file, if that is a directory in /run to which no other user may
// write. Service managers create such directories for a user, so no other user can have created the file.
func ServiceOwner(path string) (uid int, ok bool) {
	run, err := walk("/run", 0, 0)
	if err != nil {
		return 0, false
	}
	defer run.close()
	abs, err := absolute(path)
	if err != nil || run.stat.Uid != run.root {
		return 0, false
	}
	w := &walker{fd: -1, allowsForeign: true}
	defer func() { w.close() }()
	if err := w.walkTo(abs[:strings.LastIndexByte(abs, '/')], 0, 0); err != nil {
		return 0, false
	}
	ok = len(w.components) == 2 && w.components[0] == "run" && w.stat.Mode&writable == 0
	return int(w.stat.Uid), ok
}

// walker holds the current position on a path that is walked from the root of the file system.
type walker struct {
	fd         int
	components []string // path from the root, without symbolic links
	stat       unix.Stat_t
	root       uint32 // owner of /
	links      int
	// unreachable is true if users other than root and this one cannot reach the directory, because they may not search a
	// directory above it.
	unreachable bool
	// allowsForeign permits directories that belong to other users or that other users may write to. Symbolic links in
	// such directories are still rejected.
	allowsForeign bool
}

// walk opens the directories of an absolute path one after the other, and checks each. A symbolic link restarts the
// walk at the root. Missing directories are created with mode parents, and the last one with mode last, unless the mode
// is 0. The caller must close the walker.
func walk(path string, parents, last fs.FileMode) (*walker, error) {
	w := &walker{fd: -1}
	if err := w.walkTo(path, parents, last); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// walkTo is walk for a new walker.
func (w *walker) walkTo(path string, parents, last fs.FileMode) error {
	if err := w.restart(); err != nil {
		return err
	}
	rest := names(path)
	for len(rest) > 0 {
		name, mode := rest[0], parents
		if rest = rest[1:]; len(rest) == 0 {
			mode = last
		}
		var err error
		if name == ".." { // like the kernel, after links are resolved
			rest = slices.Concat(w.components[:max(len(w.components)-1, 0)], rest)
			err = w.restart()
		} else {
			var target string
			if target, err = w.enter(name, mode); err == nil && target != "" {
				above := w.components
				if filepath.IsAbs(target) {
					above = nil
				}
				rest = slices.Concat(above, names(target), rest)
				err = w.restart()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// names splits a path.
func names(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" || name == "." })
}

// restart moves the walker back to the root of the file system.
func (w *walker) restart() error {
	fd, err := unix.Open("/", searchOnly|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: "/", Err: err}
	}
	w.close()
	w.fd, w.components, w.unreachable = fd, nil, false
	if err := unix.Fstat(fd, &w.stat); err != nil {
		return &fs.PathError{Op: "stat", Path: "/", Err: err}
	}
	w.root = w.stat.Uid
	return w.check()
}

// enter moves to a subdirectory of the current directory, which it creates with the given mode unless mode is 0. If the
// name is a symbolic link, enter returns the target and does not move.
func (w *walker) enter(name string, mode fs.FileMode) (target string, err error) {
	path := filepath.Join(w.path(), name)
	fd, err := w.openDirectory(name)
	if errors.Is(err, unix.ENOENT) && mode != 0 {
		if err := unix.Mkdirat(w.fd, name, uint32(mode.Perm())); err != nil && !errors.Is(err, unix.EEXIST) {
			return "", &fs.PathError{Op: "mkdir", Path: path, Err: err}
		}
		fd, err = w.openDirectory(name)
	}
	if err != nil {
		if target, linked, linkErr := w.readlink(name); linked {
			return target, linkErr
		}
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	w.unreachable = w.unreachable || w.stat.Mode&reachable == 0
	w.close()
	w.fd, w.components = fd, append(w.components, name)
	if err := unix.Fstat(fd, &w.stat); err != nil {
		return "", &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return "", w.check()
}

// openDirectory opens a directory without following a symbolic link. It retries if a signal interrupts the call.
func (w *walker) openDirectory(name string) (int, error) {
	for {
		fd, err := unix.Openat(w.fd, name, searchOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// readlink returns the target of a symbolic link. It returns an error if another user could have made the link.
func (w *walker) readlink(name string) (target string, linked bool, err error) {
	var stat unix.Stat_t
	isLink := unix.Fstatat(w.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil && stat.Mode&unix.S_IFMT == unix.S_IFLNK
	if !isLink {
		return "", false, nil // opening it reports the error
	}
	path := filepath.Join(w.path(), name)
	if !w.isOurs() || !w.trusts(stat.Uid) {
		return "", true, &UnsafeError{path, fmt.Sprintf("is a symbolic link of user %d, where other users may write: "+
			"remove it, or name another directory", stat.Uid)}
	}
	if w.links++; w.links > maxLinks {
		return "", true, &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(w.fd, name, buf)
	if err != nil || n == 0 {
		return "", true, &fs.PathError{Op: "readlink", Path: path, Err: err}
	}
	return string(buf[:n]), true, nil
}

// trusts reports whether a directory on the path may belong to the given user.
func (w *walker) trusts(uid uint32) bool {
	return uid == 0 || uid == w.root || int(uid) == os.Geteuid()
}

// isOurs reports whether only root and this user can have created the files in the directory.
func (w *walker) isOurs() bool {
	return w.trusts(w.stat.Uid) && (w.stat.Mode&writable == 0 || w.unreachable)
}

// check returns an error if other users could replace the next directory or file on the path.
func (w *walker) check() error {
	switch {
	case w.allowsForeign:
	case !w.trusts(w.stat.Uid):
		return &UnsafeError{w.path(), fmt.Sprintf("belongs to user %d: name another directory, "+
			"or have that user remove this one", w.stat.Uid)}
	case w.stat.Mode&writable != 0 && w.stat.Mode&unix.S_ISVTX == 0 && !w.unreachable:
		return w.othersMayWrite()
	}
	return nil
}

// checkPrivate returns an error if the directory does not belong to this user, or if others may write to it.
func (w *walker) checkPrivate() error {
	switch {
	case int(w.stat.Uid) != os.Geteuid():
		return &UnsafeError{w.path(), fmt.Sprintf("belongs to user %d and not to this process's user, %d: "+
			"name another directory", w.stat.Uid, os.Geteuid())}
	case w.stat.Mode&writable != 0:
		return w.othersMayWrite()
	}
	return nil
}

func (w *walker) othersMayWrite() error {
	return &UnsafeError{w.path(), fmt.Sprintf("may be written to by other users (mode %04o): "+
		"run \"chmod go-w %[2]s\", or name another directory", w.stat.Mode&0o7777, w.path())}
}

func (w *walker) path() string { return "/" + strings.Join(w.components, "/") }

// isSame reports whether info describes the directory at the walker's current position.
func (w *walker) isSame(info fs.FileInfo) bool {
	of, ok := info.Sys().(*syscall.Stat_t)
	return ok && of.Dev == w.stat.Dev && of.Ino == w.stat.Ino
}

func (w *walker) close() {
	if w.fd >= 0 {
		unix.Close(w.fd)
	}
	w.fd = -1
}

// checkFile returns an error unless info describes a regular file of this process's user to which no other user may
// write.
func checkFile(path string, info fs.FileInfo) error {
	of, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return &UnsafeError{path, "is not a regular file: remove it"}
	case !ok || int(of.Uid) != os.Geteuid():
		return &UnsafeError{path, fmt.Sprintf("does not belong to this process's user, %d: remove it", os.Geteuid())}
	case info.Mode()&writable != 0:
		return &UnsafeError{path, fmt.Sprintf("may be written to by other users (mode %04o): remove it",
			info.Mode().Perm())}
	}
	return nil
}

// Lock locks the directory, and waits while another process holds the lock. The lock is released by unlock, and when
// the process exits.
func (d *Dir) Lock() (unlock func(), err error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, d.withPath(err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "flock", Path: d.path, Err: err}
	}
	return func() { f.Close() }, nil
}
