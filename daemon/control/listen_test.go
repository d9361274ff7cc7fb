package control

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deeper", "c.sock")
	for _, mode := range []fs.FileMode{0o660, 0o600, 0o666} {
		l, err := Listen(path, mode)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|mode {
			t.Errorf("%v, %v, want a socket of mode %v", info.Mode(), err, mode)
		}
		if _, err := Listen(path, mode); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), path) {
			t.Errorf("a second one: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("closed, and still there: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	}
}

// TestListenWhereOthersWrite checks that no socket is created in a place where another user could replace or
// redirect it.
func TestListenWhereOthersWrite(t *testing.T) {
	dir := t.TempDir()
	for path, mode := range map[string]fs.FileMode{
		filepath.Dir(dir):                0o755,
		dir:                              0o755,
		filepath.Join(dir, "open"):       0o777,
		filepath.Join(dir, "sticky"):     0o777 | fs.ModeSticky,
		filepath.Join(dir, "group"):      0o770,
		filepath.Join(dir, "open", "in"): 0o700,
	} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "sticky", "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"open/c.sock":        "may be written to by other users (mode 0777)",
		"open/in/c.sock":     "may be written to by other users (mode 0777)",
		"group/c.sock":       "may be written to by other users (mode 0770)",
		"sticky/link/c.sock": "is a symbolic link",
		"sticky/c.sock":      "",
		"sticky/new/c.sock":  "",
	} {
		l, err := Listen(filepath.Join(dir, path), 0o600)
		if err == nil {
			l.Close()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// leaveBehind creates a socket that has no listener, as a killed process does.
func leaveBehind(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
}

func TestListenStale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	leaveBehind(t, path)
	l, err := Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	// If the socket has been replaced, the new file must not be removed.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	leaveBehind(t, path)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("another process's socket was removed: %v", err)
	}
}

func TestListenErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, path, want string }{
		{"a file", file, "exists and is not a socket"},
		{"a directory", dir, "exists and is not a socket"},
		{"below a file", filepath.Join(file, "c.sock"), "not a directory"},
		{"too long", filepath.Join(dir, strings.Repeat("x", 120)), "set control.socket to a writable path"},
	} {
		if _, err := Listen(tt.path, 0o600); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	leaveBehind(t, stale)
	for path, cause := range map[string]error{
		filepath.Join(dir, "none.sock"): syscall.ENOENT,
		stale:                           syscall.ECONNREFUSED,
	} {
		c := NewClient(path)
		defer c.Close()
		_, err := c.Status(within(t))
		e, ok := errors.AsType[*UnreachableError](err)
		if !ok || !errors.Is(err, cause) || e.Socket != path || !strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), "zrlmpid --config") {
			t.Errorf("%s: %v", path, err)
		}
	}
	denied := &UnreachableError{Socket: "/x", Err: os.NewSyscallError("connect", syscall.EACCES)}
	if !strings.Contains(denied.Error(), "may not search a directory of its path") {
		t.Error(denied)
	}
	denied.Socket = stale
	for mode, want := range map[os.FileMode]string{0o600: "mode -rw------- allows only its owner to use it",
		0o660: "sudo usermod -aG "} {
		if err := os.Chmod(stale, mode); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(denied.Error(), want) {
			t.Errorf("%v: %v", mode, denied)
		}
	}
}

func TestWaitReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	c := NewClient(path)
	defer c.Close()
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.WaitReady(short); err == nil || !strings.Contains(err.Error(), "no zrlmpid answers") {
		t.Errorf("no peer: %v", err)
	}
	ready := make(chan error, 1)
	go func() {
		_, err := c.WaitReady(within(t))
		ready <- err
	}()
	serve(t, path, new(fakeBackend))
	if err := <-ready; err != nil {
		t.Error(err)
	}
}
