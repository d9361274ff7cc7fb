package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// names returns the entries of a directory and their total size in bytes.
func names(t *testing.T, dir string) (list []string, bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		list, bytes = append(list, e.Name()), bytes+info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, bytes
}

// kind has files with names that begin with r.
var kind = Kind{Suffix: ".gz", IsName: func(name string) bool { return strings.HasPrefix(name, "r") }}

func open(t *testing.T, dir string, size int64) *Spool {
	t.Helper()
	s, err := Open(dir, kind, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestOldestGoFirst: the newest files remain, also after a restart, and files that do not belong to the spool are kept.
func TestOldestGoFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, dir, 100)
	for i := range 5 {
		if err := s.Write(fmt.Sprint("r", i), make([]byte, 40)); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := names(t, dir); !slices.Equal(got, []string{"r3.gz", "r4.gz"}) || s.Has(s.Path("r2")) ||
		!s.Has(s.Path("r3")) {
		t.Errorf("there is %v", got)
	}
	for _, name := range []string{"mine", "mine.gz", "r5.gz.partial", "r5.gz.ABCDEFGHIJKLMNOPQRSTUVWXYZ.partial",
		"m.gz.ABCDEFGHIJKLMNOPQRSTUVWXYZ.partial"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s = open(t, dir, 79); !s.Has(s.Path("r4")) {
		t.Error("the newest is gone")
	}
	if got, _ := names(t, dir); !slices.Equal(got,
		[]string{"m.gz.ABCDEFGHIJKLMNOPQRSTUVWXYZ.partial", "mine", "mine.gz", "r4.gz", "r5.gz.partial"}) {
		t.Errorf("after a start with a smaller limit there is %v", got)
	}
}

// TestNeverMoreThanItsSize: the spool never exceeds its size, whatever is written and whichever files disappear.
func TestNeverMoreThanItsSize(t *testing.T) {
	dir := t.TempDir()
	const size = 1000
	s := open(t, dir, size)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		n := random.IntN(size + 100)
		err := s.Write(fmt.Sprintf("r%03d", i), make([]byte, n))
		if (err != nil) != (n > size) || err != nil && !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		list, bytes := names(t, dir)
		if bytes > size {
			t.Fatalf("after %d files there are %d bytes: %v", i, bytes, list)
		}
		if len(list) > 0 && random.IntN(4) == 0 {
			if err := os.Remove(filepath.Join(dir, list[random.IntN(len(list))])); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestUnwritable: an error names the file or directory that could not be created.
func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "spool"), kind, 100); err == nil {
		t.Error("a directory in a file was made")
	}
}
