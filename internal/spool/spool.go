// Package spool keeps files in a directory of a bounded size: the oldest are deleted to make room.
package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/zrlmpi/zrlmpid/internal/privatedir"
)

// Spool is a directory of files with one suffix, which only this process's user can write to. Everything in it that is
// not named as a file of the spool, is not a regular file, or belongs to another user is neither counted nor deleted.
// Its methods may be called concurrently; no other process writes to the directory meanwhile.
type Spool struct {
	dir  *privatedir.Dir
	kind Kind
	size int64

	mu    sync.Mutex
	files []File // the oldest first
	total int64
}

// Kind describes the names of a spool's files.
type Kind struct {
	// Suffix ends the names. It begins with a dot.
	Suffix string
	// IsName reports whether a name without the suffix is one that was given to Write.
	IsName func(name string) bool
}

// File is one file of a spool.
type File struct {
	Name  string
	Bytes int64
}

// Open returns the spool of a directory, which is made if it does not exist: see privatedir.Make. The oldest files by
// name are deleted until the rest fits.
func Open(path string, kind Kind, size int64) (*Spool, error) {
	dir, err := privatedir.Make(path)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return In(dir, kind, size)
}

// In is Open of a directory that is open. Close closes it; In does if it fails.
func In(dir *privatedir.Dir, kind Kind, size int64) (*Spool, error) {
	s := &Spool{dir: dir, kind: kind, size: size}
	err := s.scan()
	if err == nil {
		err = s.shrink(size)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return s, nil
}

// scan finds the files, and deletes those that a killed process has not completed.
func (s *Spool) scan() error {
	list, err := s.dir.Files()
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	for _, info := range list {
		name := info.Name()
		if of, ok := privatedir.PartialOf(name); ok && s.owns(of) {
			if err := s.dir.Remove(name); err != nil {
				return fmt.Errorf("spool: %w", err)
			}
		} else if s.owns(name) {
			s.files = append(s.files, File{name, info.Size()})
			s.total += info.Size()
		}
	}
	return nil
}

// owns reports whether a file is of the spool, by its name.
func (s *Spool) owns(name string) bool {
	stem, ok := strings.CutSuffix(name, s.kind.Suffix)
	return ok && s.kind.IsName(stem)
}

// Close closes the directory.
func (s *Spool) Close() error { return s.dir.Close() }

// Path returns the path that a file of the given name, without suffix, has.
func (s *Spool) Path(name string) string { return s.dir.Join(name + s.kind.Suffix) }

// Directory returns the path of the directory.
func (s *Spool) Directory() string { return s.dir.Path() }

// Files returns the files, the oldest first.
func (s *Spool) Files() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.files)
}

// Size returns the most bytes of all files together.
func (s *Spool) Size() int64 { return s.size }

// Has reports whether there is a file of a path.
func (s *Spool) Has(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.files, func(f File) bool { return s.dir.Join(f.Name) == path })
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
	if err := s.dir.WriteFile(name+s.kind.Suffix, data); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.files = append(s.files, File{name + s.kind.Suffix, n})
	s.total += n
	return nil
}

// shrink deletes the oldest files until all have at most so many bytes. A file that somebody has deleted meanwhile is no error.
func (s *Spool) shrink(most int64) error {
	for s.total > most && len(s.files) > 0 {
		oldest := s.files[0]
		if err := s.dir.Remove(oldest.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("spool: %w", err)
		}
		s.files = s.files[1:]
		s.total -= oldest.Bytes
	}
	return nil
}
