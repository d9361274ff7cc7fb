package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPlatforms(t *testing.T) {
	page := "`a/b`\n\n| platform | `x/y` |\n|---|---|\n| `linux/amd64` | in `c/d` |\n| `darwin/arm64`, " +
		"`windows/amd64` | |\n| x `e/f` | |\n"
	want := []platform{{"linux", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}
	if got := platforms(page); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRun checks that errors in files for one platform, including tests, are found only when that platform is checked.
func TestRun(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"README.md": "| `linux/riscv64` |\n| `windows/amd64` |\n",
		"go.mod":    "module example.org/m\n\ngo 1.26\n",
		"m.go": "package m\n\nimport \"os\"\n\nfunc Root() error { _, err := os.Open(\"/\"); " +
			"return err }\n",
		"m_windows.go":       "package m\n\nvar x int = \"windows\"\n",
		"m_test.go":          "package m\n\nfunc f() { Root() }\n",
		"m_windows_test.go":  "package m\n\nfunc g() int { return undefined }\n",
		"inner/inner.go":     "package inner\n\nconst Wide int = 1 << 40\n",
		"inner/m_ignored.go": "//go:build ignore\n\npackage inner\n\nvar x = undefined\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := run(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], "windows/amd64: m_windows.go:3:") ||
		!strings.HasPrefix(got[1], "windows/amd64: m_windows_test.go:3:") {
		t.Errorf("got %q", got)
	}
}

func TestRunWithoutPlatforms(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("no table"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(root); err == nil {
		t.Error("no error")
	}
}

// TestNeeds64Bits checks that, where int has 32 bits, the error names the file that explains why this is not supported.
func TestNeeds64Bits(t *testing.T) {
	folder, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := newChecker(folder).check(platform{"linux", "386"}, "./protocol")
	if err != nil || len(got) == 0 || !strings.HasPrefix(got[0], "linux/386: protocol/needs_64_bits.go:") {
		t.Errorf("%q, %v", got, err)
	}
}
