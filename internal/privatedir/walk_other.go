//go:build !unix

package privatedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const nonBlocking = 0

func openRoot(path string, parents, last fs.FileMode) (*os.Root, error) {
	if err := checkParents(path, parents); err != nil {
		return nil, err
	}
	if last != 0 {
		if err := os.Mkdir(path, last); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return os.OpenRoot(path)
}

func checkParents(path string, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	if mode == 0 {
		_, err := os.Stat(dir)
		return err
	}
	return os.MkdirAll(dir, mode)
}

func checkFile(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return &UnsafeError{path, "is not a regular file: remove it"}
	}
	return nil
}

// ServiceOwner returns false.
func ServiceOwner(string) (uid int, ok bool) { return 0, false }

// Lock returns errors.ErrUnsupported.
func (d *Dir) Lock() (unlock func(), err error) { return nil, errors.ErrUnsupported }
