// Package configmap imitates how Kubernetes updates the files of a ConfigMap in a volume.
package configmap

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Volume is a directory of files. Each is a symbolic link to ..data/NAME, and ..data is one to the directory of the
// present version, which an update replaces by renaming another link over it.
type Volume struct {
	t       testing.TB
	dir     string
	version string
	updates int
}

// New makes a volume with the given files in an existing directory.
func New(t testing.TB, dir string, files map[string]string) *Volume {
	t.Helper()
	v := &Volume{t: t, dir: dir}
	v.Update(files)
	for name := range files {
		v.must(os.Symlink(filepath.Join("..data", name), v.Path(name)))
	}
	return v
}

// Path returns the path of a file.
func (v *Volume) Path(name string) string { return filepath.Join(v.dir, name) }

// Update replaces the contents of all files at once and removes the previous version.
func (v *Volume) Update(files map[string]string) {
	v.t.Helper()
	previous := v.version
	v.updates++
	v.version = fmt.Sprintf("..2026_01_01_00_00_%02d", v.updates)
	v.must(os.Mkdir(v.Path(v.version), 0o755))
	v.must(os.Chmod(v.Path(v.version), 0o755)) // whatever the umask
	for name, text := range files {
		path := filepath.Join(v.Path(v.version), name)
		v.must(os.WriteFile(path, []byte(text), 0o644))
		v.must(os.Chmod(path, 0o644))
	}
	v.must(os.Symlink(v.version, v.Path("..data_tmp")))
	v.must(os.Rename(v.Path("..data_tmp"), v.Path("..data")))
	if previous != "" {
		v.must(os.RemoveAll(v.Path(previous)))
	}
}

func (v *Volume) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}
