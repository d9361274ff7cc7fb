//go:build unix

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/internal/spool"
	"github.com/zrlmpi/zrlmpid/node/recorder"
)

// recordsDirectories returns the candidate directories for failure records of jobs, in order of preference. All jobs of
// a user on this host share one directory, so that its size is bounded. The list is empty if records are disabled. The
// second candidate is for the case that another user already owns the name in /tmp.
func recordsDirectories(s *config.Spool) []string {
	switch {
	case s.Size == 0, s.Directory != nil && *s.Directory == "":
		return nil
	case s.Directory != nil:
		return []string{*s.Directory}
	}
	list := []string{filepath.Join(os.TempDir(), fmt.Sprintf("zrlmpi-records-%d", os.Geteuid()))}
	if state, err := privatedir.StatePath(); err == nil {
		list = append(list, filepath.Join(state, "records"))
	}
	return list
}

// writeShared writes a record into the first directory that no other user can write to. The directory is a spool shared
// by the processes of several ranks and jobs. A lock ensures that they write one at a time.
func writeShared(directories []string, size int64, name string, data []byte) (path string, err error) {
	var errs []error
	for _, dir := range directories {
		path, err := writeToSpool(dir, size, name, data)
		if !errors.Is(err, privatedir.ErrUnsafe) {
			return path, err
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// writeToSpool writes a record into a directory, and deletes the oldest ones so that all together have at most size
// bytes.
func writeToSpool(dir string, size int64, name string, data []byte) (path string, err error) {
	d, err := privatedir.Make(dir)
	if err != nil {
		return "", err
	}
	unlock, err := d.Lock()
	if err != nil {
		return "", errors.Join(err, d.Close())
	}
	defer unlock()
	s, err := spool.OpenIn(d, spool.Kind{Suffix: recorder.Suffix, IsName: recorder.IsName}, size)
	if err != nil {
		return "", err
	}
	defer s.Close()
	return s.Path(name), s.Write(name, data)
}
