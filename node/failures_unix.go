//go:build unix

package node

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/capture/recorder"
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/spool"
)

// recordsDirectory returns where records of failures of jobs are: one directory for all jobs of a user on this host, so that it has a bound. It is
// empty if none are written.
func recordsDirectory(s *config.Spool) string {
	switch {
	case s.Size == 0:
		return ""
	case s.Directory != nil:
		return *s.Directory
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("zrlmpi-records-%d", os.Geteuid()))
}

// writeShared writes a record into a spool to which the processes of several ranks and jobs write, one after the other.
func writeShared(dir string, size int64, name string, data []byte) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := ownDirectory(dir); err != nil {
		return "", err
	}
	lock, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer lock.Close() // which unlocks it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", os.NewSyscallError("flock", err)
	}
	s, err := spool.Open(dir, recorder.Suffix, size)
	if err != nil {
		return "", err
	}
	return s.Path(name), s.Write(name, data)
}

// ownDirectory refuses a directory of another user, and one to which others may write, as in /tmp: they could have files of this user
// overwritten.
func ownDirectory(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	const others = 0o022
	if of, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(of.Uid) != os.Geteuid() || info.Mode()&others != 0 {
		return &fs.PathError{Op: "write records into", Path: dir, Err: fmt.Errorf("it is not a directory that only this user may write to: remove it, or set record.spool.directory")}
	}
	return nil
}
