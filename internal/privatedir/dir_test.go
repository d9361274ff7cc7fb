package privatedir

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// make1 makes a private directory that is closed at the end of the test.
func make1(t *testing.T) *Dir {
	t.Helper()
	d, err := Make(filepath.Join(t.TempDir(), "a", "private"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestFiles: a file appears under its name only when it is complete.
func TestFiles(t *testing.T) {
	d := make1(t)
	names := func() (all string) {
		files, err := d.Files()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			all += f.Name() + " "
		}
		return all
	}
	f, err := d.Create("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("one"); err != nil {
		t.Fatal(err)
	}
	got := strings.TrimSpace(names())
	if of, ok := PartialOf(got); !ok || of != "x" || len(got) < len("x..partial")+26 {
		t.Errorf("before Commit there is %q", got)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile("x", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if data, err := d.ReadFile("x", 3); err != nil || !bytes.Equal(data, []byte("two")) {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := d.ReadFile("x", 2); err == nil {
		t.Error("a file of 3 bytes was read as one of 2")
	}
	if f, err = d.Create("y"); err != nil {
		t.Fatal(err)
	}
	if err := f.Discard(); err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "x " {
		t.Errorf("there is %q", got)
	}
	if err := d.Remove("x"); err != nil || names() != "" {
		t.Errorf("%v, and there is %q", err, names())
	}
	if _, err := d.Open("x"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), d.Join("x")) {
		t.Errorf("%v", err)
	}
}

// TestPartialOf: only names of incomplete files have a final name.
func TestPartialOf(t *testing.T) {
	for _, name := range []string{"", "x", "x.partial", ".partial", "x.y.partial",
		"." + strings.Repeat("A", 26) + ".partial", "x." + strings.Repeat("A", 26)} {
		if of, ok := PartialOf(name); ok {
			t.Errorf("%q: %q", name, of)
		}
	}
}

// TestNames: no name leads out of the directory.
func TestNames(t *testing.T) {
	d := make1(t)
	for _, name := range []string{"", ".", "..", "../x", "/x", "a/b", `a\b`} {
		if err := d.WriteFile(name, nil); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("write %q: %v", name, err)
		}
		if _, err := d.Open(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("open %q: %v", name, err)
		}
		if err := d.Remove(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("remove %q: %v", name, err)
		}
	}
}

// TestMissing: a directory is created only by the functions that may create it.
func TestMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	if _, err := Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := MakeIn(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := MakeParents(path, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := MakeIn(path)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
