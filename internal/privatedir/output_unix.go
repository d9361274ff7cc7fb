//go:build unix

package privatedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Output creates a file named by the user, or truncates an existing one, and opens it for writing. In a directory that
// other users may write to, such as /tmp, it does not follow links that another user may have made, and rejects files
// of other users and files with several links. The kernel does the same if fs.protected_symlinks, protected_regular and
// protected_hardlinks are set.
func Output(path string, mode fs.FileMode) (*os.File, error) {
	abs, err := absolute(path)
	if err != nil {
		return nil, err
	}
	slash := strings.LastIndexByte(abs, '/')
	w, name := &walker{fd: -1, allowsForeign: true}, abs[slash+1:]
	defer func() { w.close() }()
	if err := w.walkTo(abs[:slash], 0, 0); err != nil {
		if of, ok := errors.AsType[*fs.PathError](err); ok {
			err = &fs.PathError{Op: "open", Path: path, Err: of.Err}
		}
		return nil, err
	}
	if w.isOurs() || name == "" || name == ".." {
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	}
	fd, err := w.openNew(name, path, mode)
	if errors.Is(err, unix.EEXIST) {
		fd, err = w.openOwn(name, path)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openNew creates a file in the current directory.
func (w *walker) openNew(name, path string, mode fs.FileMode) (int, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(w.fd, name, flags, uint32(mode.Perm()))
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// openOwn opens an existing file in the current directory. It rejects files that another user may have created.
func (w *walker) openOwn(name, path string) (int, error) {
	fd, err := unix.Openat(w.fd, name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK): // EMLINK on FreeBSD
		return -1, &UnsafeError{path,
			"is a symbolic link, where other users may write: remove it, or name another file"}
	case err != nil:
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var stat unix.Stat_t
	if err = unix.Fstat(fd, &stat); err != nil {
		err = &fs.PathError{Op: "stat", Path: path, Err: err}
	} else if int(stat.Uid) != os.Geteuid() || stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink != 1 {
		err = &UnsafeError{path, fmt.Sprintf("exists where other users may write, and is not a plain file of user %d: "+
			"remove it, or name another file", os.Geteuid())}
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
