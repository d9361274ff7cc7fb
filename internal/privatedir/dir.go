package privatedir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrUnsafe is returned for a path that another user could redirect, and for a file that another user could replace.
var ErrUnsafe = errors.New("not safe from other users")

// UnsafeError names the directory or the file because of which a path is unsafe. It matches ErrUnsafe.
type UnsafeError struct {
	// Path is the unsafe directory or file, which may be a parent of the one requested.
	Path string
	// Problem describes the problem and a remedy.
	Problem string
}

// Error names the path.
func (e *UnsafeError) Error() string { return e.Path + " " + e.Problem }

// Is reports whether target is ErrUnsafe or fs.ErrPermission.
func (e *UnsafeError) Is(target error) bool { return target == ErrUnsafe || target == fs.ErrPermission }

// replacedProblem describes a file that this user or root replaced while it was being opened.
const replacedProblem = "was replaced while it was opened: try again"

// Dir is a directory to which only root and this process's user can write. Its methods may be called concurrently. All
// names are names of files directly in it.
type Dir struct {
	root *os.Root
	path string
}

// Make opens the directory at path. It creates the directory and its missing parents with mode 0700.
func Make(path string) (*Dir, error) { return open(path, 0o700, 0o700) }

// MakeIn is like Make, but the parent of path must exist.
func MakeIn(path string) (*Dir, error) { return open(path, 0, 0o700) }

// Open opens an existing directory.
func Open(path string) (*Dir, error) { return open(path, 0, 0) }

// MakeParents creates the missing directories above path with the given mode, and checks that no other user can
// redirect path. The directory may belong to root, or have the sticky bit. In that case another user may create path
// before this process does, but cannot replace files that this process has created.
func MakeParents(path string, mode fs.FileMode) error {
	abs, err := absolute(path)
	if err == nil {
		err = checkParents(abs, mode)
	}
	return err
}

// absolute returns an absolute path. It keeps "..", which may follow a symbolic link.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd()
	return dir + string(filepath.Separator) + path, err
}

// open opens a directory. It creates missing parents with mode parents, and the directory with mode last, unless the
// mode is 0.
func open(path string, parents, last fs.FileMode) (*Dir, error) {
	abs, err := absolute(path)
	if err != nil {
		return nil, err
	}
	root, err := openRoot(abs, parents, last)
	if err != nil {
		return nil, err
	}
	return &Dir{root, path}, nil
}

// Path returns the path with which the directory was opened.
func (d *Dir) Path() string { return d.path }

// Join returns the path of a file.
func (d *Dir) Join(name string) string { return filepath.Join(d.path, name) }

// Close closes the directory. Open files are not affected.
func (d *Dir) Close() error { return d.root.Close() }

// partialSuffix is the suffix of incomplete files.
const partialSuffix = ".partial"

// PartialOf returns the final name of a file, given its name before Commit. It returns false for the name of any other
// file.
func PartialOf(name string) (of string, ok bool) {
	stem, ok := strings.CutSuffix(name, partialSuffix)
	dot := strings.LastIndexByte(stem, '.')
	if !ok || dot <= 0 || len(stem)-dot-1 != len(rand.Text()) {
		return "", false
	}
	return stem[:dot], true
}

// File is a new file. Until Commit gives it its final name, it has an unpredictable one.
type File struct {
	*os.File
	dir            *Dir
	name, tempName string
}

// Create creates a file for reading and writing, mode 0600. The caller must call Commit or Discard.
func (d *Dir) Create(name string) (*File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	temp := name + "." + rand.Text() + partialSuffix
	f, err := d.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // O_EXCL does not follow a link
	if err != nil {
		return nil, d.withPath(err)
	}
	return &File{f, d, name, temp}, nil
}

// Commit closes the file and renames it to its final name, replacing an existing file. On failure it removes the file.
func (f *File) Commit() error {
	err := f.File.Close()
	if err == nil {
		err = f.dir.root.Rename(f.tempName, f.name)
	}
	if err != nil {
		_ = f.dir.root.Remove(f.tempName) // the first error is returned
		return f.dir.withPath(err)
	}
	return nil
}

// Discard closes and removes the file.
func (f *File) Discard() error {
	return errors.Join(f.File.Close(), f.dir.Remove(f.tempName))
}

// WriteFile writes a file, which appears under its name only when complete.
func (d *Dir) WriteFile(name string, data []byte) error {
	file, err := d.Create(name)
	if err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return errors.Join(err, file.Discard())
	}
	return file.Commit()
}

// Open opens a file for reading. The file must be a regular file, not a link. It must belong to this process's user,
// and no other user may have write permission.
func (d *Dir) Open(name string) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, d.withPath(err)
	}
	if err := checkFile(d.Join(name), before); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, d.withPath(err)
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(before, opened) {
		return nil, errors.Join(err, f.Close(), &UnsafeError{d.Join(name), replacedProblem})
	}
	return f, nil
}

// ReadFile opens a file with Open and returns its content. Files longer than most bytes cause an error.
func (d *Dir) ReadFile(name string, most int64) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", d.Join(name), most)
	}
	return data, err
}

// Remove removes a file. If the file is a link, it removes the link and not its target.
func (d *Dir) Remove(name string) error {
	err := checkName(name)
	if err == nil {
		err = d.withPath(d.root.Remove(name))
	}
	return err
}

// Files returns the regular files of this process's user, sorted by name. It ignores everything else in the directory.
func (d *Dir) Files() ([]fs.FileInfo, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, d.withPath(err)
	}
	var files []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && checkFile(e.Name(), info) == nil {
			files = append(files, info)
		}
	}
	return files, nil
}

// checkName rejects every name that does not denote a file directly in the directory.
func checkName(name string) error {
	if name == "" || name == "." || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
		return fmt.Errorf("%q is not the name of a file: %w", name, fs.ErrInvalid)
	}
	return nil
}

// withPath adds the directory's path to an error about a file.
func (d *Dir) withPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && !filepath.IsAbs(e.Path) {
		return &fs.PathError{Op: strings.TrimSuffix(e.Op, "at"), Path: d.Join(e.Path), Err: e.Err}
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return &os.LinkError{Op: strings.TrimSuffix(e.Op, "at"), Old: d.Join(e.Old), New: d.Join(e.New), Err: e.Err}
	}
	return err
}
