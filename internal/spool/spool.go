// Package spool keeps files in a directory of a bounded size: the oldest are deleted to make room.
package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Spool is a directory of files with one suffix. Others in the directory are left alone, and not counted. Its methods may be called
// concurrently; no other process writes to the directory meanwhile.
type Spool struct {
	dir, suffix string
	size        int64

	mu    sync.Mutex
	files []file // the oldest first
	total int64
}

type file struct {
	name  string
	bytes int64
}

// partial ends the name of a file that is not complete.
const partial = ".partial"

// Open returns the spool of a directory, which is made if there is none, for its user alone. Files of which the oldest are by name
// are deleted until the rest fits. suffix begins with a dot.
func Open(dir, suffix string, size int64) (*Spool, error) {
	s := &Spool{dir: dir, suffix: suffix, size: size}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for _, e := range entries {
		switch info, err := e.Info(); {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasSuffix(e.Name(), suffix+partial): // of a process that was killed
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("spool: %w", err)
			}
		case strings.HasSuffix(e.Name(), suffix):
			s.files = append(s.files, file{e.Name(), info.Size()})
			s.total += info.Size()
		}
	}
	return s, s.shrink(size)
}

// Path returns the path that a file of the given name, without suffix, has.
func (s *Spool) Path(name string) string { return filepath.Join(s.dir, name+s.suffix) }

// Size returns the most bytes of all files together.
func (s *Spool) Size() int64 { return s.size }

// Has reports whether there is a file of a path.
func (s *Spool) Has(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.files, func(f file) bool { return filepath.Join(s.dir, f.name) == path })
}

// ErrTooLarge: a file is larger than the spool.
var ErrTooLarge = errors.New("larger than the spool")

// Write writes a file of a name, without suffix, that sorts behind those that are there. Older ones are deleted before, so that at no
// time there is more than the spool's size.
func (s *Spool) Write(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(len(data))
	if n > s.size {
		return fmt.Errorf("spool: %s has %d bytes: %w of %d bytes", name, n, ErrTooLarge, s.size)
	}
	if err := s.shrink(s.size - n); err != nil {
		return err
	}
	path := s.Path(name)
	err := os.WriteFile(path+partial, data, 0o600)
	if err == nil {
		err = os.Rename(path+partial, path)
	}
	if err != nil {
		_ = os.Remove(path + partial) // which may not be there
		return fmt.Errorf("spool: %w", err)
	}
	s.files = append(s.files, file{name + s.suffix, n})
	s.total += n
	return nil
}

// shrink deletes the oldest files until all have at most so many bytes. A file that somebody has deleted meanwhile is no error.
func (s *Spool) shrink(most int64) error {
	for s.total > most && len(s.files) > 0 {
		oldest := s.files[0]
		if err := os.Remove(filepath.Join(s.dir, oldest.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("spool: %w", err)
		}
		s.files = s.files[1:]
		s.total -= oldest.bytes
	}
	return nil
}
