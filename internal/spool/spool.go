// Package spool keeps files in a directory of bounded size: it deletes the oldest files to make space.
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

// Spool is a directory of files with a common suffix, to which only this process's user can write. It ignores entries
// with other names, entries that are not regular files, and files of other users. Its methods may be called
// concurrently. No other process may write to the directory.
type Spool struct {
	dir  *privatedir.Dir
	kind Kind
	size int64

	mu    sync.Mutex
	files []File // the oldest first
	total int64
}

// Kind specifies how the files of a spool are named.
type Kind struct {
	// Suffix is the suffix of all file names. It begins with a dot.
	Suffix string
	// IsName reports whether a name, without the suffix, may have been passed to Write.
	IsName func(name string) bool
}

// File is one file of a spool.
type File struct {
	Name  string
	Bytes int64
}

// Open returns the spool of a directory, which it creates if necessary (see privatedir.Make). If the files exceed size,
// it deletes the first ones in the order of names.
func Open(path string, kind Kind, size int64) (*Spool, error) {
	dir, err := privatedir.Make(path)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return OpenIn(dir, kind, size)
}

// OpenIn is Open for a directory that is already open. Close closes the directory, and so does OpenIn on failure.
func OpenIn(dir *privatedir.Dir, kind Kind, size int64) (*Spool, error) {
	spool := &Spool{dir: dir, kind: kind, size: size}
	err := spool.scan()
	if err == nil {
		err = spool.shrink(size)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return spool, nil
}

// scan finds the spool's files. It deletes files that are incomplete because the process that wrote them was killed.
func (s *Spool) scan() error {
	list, err := s.dir.Files()
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	for _, info := range list {
		name := info.Name()
		if of, ok := privatedir.PartialOf(name); ok && s.ownsName(of) {
			if err := s.dir.Remove(name); err != nil {
				return fmt.Errorf("spool: %w", err)
			}
		} else if s.ownsName(name) {
			s.files = append(s.files, File{name, info.Size()})
			s.total += info.Size()
		}
	}
	return nil
}

// ownsName reports whether the name is the name of a file of the spool.
func (s *Spool) ownsName(name string) bool {
	stem, ok := strings.CutSuffix(name, s.kind.Suffix)
	return ok && s.kind.IsName(stem)
}

// Close closes the directory.
func (s *Spool) Close() error { return s.dir.Close() }

// Path returns the path of the file with the given name, without suffix.
func (s *Spool) Path(name string) string { return s.dir.Join(name + s.kind.Suffix) }

// Directory returns the path of the directory.
func (s *Spool) Directory() string { return s.dir.Path() }

// Files returns the files, the oldest first.
func (s *Spool) Files() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.files)
}

// Size returns the maximum size of all files together, in bytes.
func (s *Spool) Size() int64 { return s.size }

// Has reports whether the spool contains a file with the given path.
func (s *Spool) Has(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.files, func(f File) bool { return s.dir.Join(f.Name) == path })
}

// ErrTooLarge is returned for a file that is larger than the whole spool.
var ErrTooLarge = errors.New("larger than the spool")

// Write writes a file. Its name, without suffix, must sort after the existing ones. Older files are deleted first, so
// that the spool never exceeds its size.
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

// shrink deletes the oldest files until all files together have at most the given size. It ignores files that no longer
// exist.
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
