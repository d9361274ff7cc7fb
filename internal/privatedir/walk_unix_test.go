//go:build unix

package privatedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// other is a user that owns nothing.
const other = 54321

// TestWalk: a path is rejected if another user could redirect it, and followed otherwise. Only root can give files to
// another user.
func TestWalk(t *testing.T) {
	for _, tt := range []struct {
		name string
		root bool // the case needs root
		// set prepares an empty directory.
		set  func(dir string) error
		path string
		want string // in the error, or ""
	}{
		{"mine", false, func(dir string) error { return os.Mkdir(dir+"/d", 0o755) }, "d", ""},
		{"new", false, nil, "d/e/f", ""},
		{"dots", false, func(dir string) error { return os.Mkdir(dir+"/d", 0o700) }, "./d/../d//e", ""},
		{"group may write", false, mode("d", 0o770), "d",
			`may be written to by other users (mode 0770): run "chmod go-w `},
		{"others may write", false, mode("d", 0o707), "d", "may be written to by other users"},
		{"sticky itself", false, mode("d", 0o777|fs.ModeSticky), "d", "may be written to by other users (mode 1777)"},
		{"below writable", false, mode("d", 0o777), "d/e", "/d may be written to by other users"},
		{"below sticky", false, mode("d", 0o777|fs.ModeSticky), "d/e", ""},
		{"below writable that is hidden", false, then(mode("h", 0o700),
			func(dir string) error { return mode("d", 0o777)(dir + "/h") }), "h/d/e", ""},
		{"writable that is hidden", false, then(mode("h", 0o700),
			func(dir string) error { return mode("d", 0o777)(dir + "/h") }), "h/d", "may be written to"},
		{"link of mine", false, then(mode("d", 0o700), link("d", "l")), "l/e", ""},
		{"link up", false, then(mode("d", 0o700), mode("d/e", 0o700), link("../e", "d/e/l")), "d/e/l/../e/l/f", ""},
		{"link and up", false, then(mode("d", 0o700), mode("d/e", 0o700), link("d/e", "l")), "l/../x", ""},
		{"link to itself", false, link("l", "l"), "l", "too many levels"},
		{"link where others write", false, then(mode("d", 0o777|fs.ModeSticky), mode("x", 0o700), link("../x", "d/l")),
			"d/l", "is a symbolic link of user"},
		{"file", false, func(dir string) error { return os.WriteFile(dir+"/d", nil, 0o600) }, "d", "not a directory"},
		{"another's", true, then(mode("d", 0o700), give("d")), "d", "belongs to user 54321: name another directory"},
		{"below another's", true, then(mode("d", 0o755), give("d")), "d/e", "belongs to user 54321"},
		{"another's link", true, then(mode("d", 0o700), link("d", "l"), give("l")), "l",
			"is a symbolic link of user 54321"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root {
				needs.Root(t, "directories of other users", "can give files to another user")
			}
			// The test's directory is hidden, but the rules are for directories that are not.
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err == nil {
				err = errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
			}
			if err == nil && tt.set != nil {
				err = tt.set(dir)
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := Make(dir + "/" + tt.path)
			switch {
			case err == nil:
				defer d.Close()
				if err := d.WriteFile("x", nil); err != nil {
					t.Error(err)
				}
				if tt.want != "" {
					t.Errorf("opened, want %q", tt.want)
				}
			case tt.want == "" || !strings.Contains(err.Error(), tt.want):
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// mode returns a function that makes a directory with the given mode, regardless of the umask.
func mode(name string, m fs.FileMode) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, m))
	}
}

func link(target, name string) func(string) error {
	return func(dir string) error { return os.Symlink(target, filepath.Join(dir, name)) }
}

// give returns a function that gives a file to another user.
func give(name string) func(string) error {
	return func(dir string) error { return os.Lchown(filepath.Join(dir, name), other, other) }
}

func then(all ...func(string) error) func(string) error {
	return func(dir string) (err error) {
		for _, f := range all {
			err = errors.Join(err, f(dir))
		}
		return err
	}
}

// TestPlanted: a file that another user put into a directory before it was private is not read, followed or listed.
func TestPlanted(t *testing.T) {
	d := make1(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := map[string]func() error{
		"link": func() error { return os.Symlink(outside, d.Join("link")) },
		"fifo": func() error { return syscall.Mkfifo(d.Join("fifo"), 0o600) },
		"open": func() error {
			return errors.Join(os.WriteFile(d.Join("open"), nil, 0o600), os.Chmod(d.Join("open"), 0o666))
		},
		"dir": func() error { return os.Mkdir(d.Join("dir"), 0o700) },
	}
	if os.Getuid() == 0 {
		set["another's"] = func() error {
			return errors.Join(os.WriteFile(d.Join("another's"), nil, 0o600),
				os.Chown(d.Join("another's"), other, other))
		}
	}
	for name, f := range set {
		if err := f(); err != nil {
			t.Fatal(err)
		}
		if f, err := d.Open(name); !errors.Is(err, ErrUnsafe) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if files, err := d.Files(); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
	if err := d.WriteFile("link", []byte("mine")); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "secret" {
		t.Errorf("the target of a link is %q, %v", data, err)
	}
}

// TestReplaced: an open directory that is renamed remains in use.
func TestReplaced(t *testing.T) {
	d := make1(t)
	if err := os.Rename(d.Path(), d.Path()+"-old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.Path(), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile("x", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path() + "-old/x"); err != nil {
		t.Error(err)
	}
}

// TestLock: only one process at a time holds the lock.
func TestLock(t *testing.T) {
	d := make1(t)
	unlock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan struct{})
	go func() {
		if unlock, err := d.Lock(); err == nil {
			unlock()
		}
		close(second)
	}()
	select {
	case <-second:
		t.Error("locked twice")
	default:
	}
	unlock()
	<-second
}

// TestRuntime: a place taken by another user is skipped, and the next one is used.
func TestRuntime(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("XDG_STATE_HOME", home)
	d, err := Runtime()
	if err != nil || d.Path() != filepath.Join(dir, "zrlmpi") || RuntimePaths()[0] != d.Path() {
		t.Fatalf("%v, %v", d, err)
	}
	d.Close()
	if err := errors.Join(os.Remove(d.Path()), os.Symlink(home, d.Path()),
		os.Chmod(dir, 0o777|fs.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if d, err = Runtime(); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Path() == filepath.Join(dir, "zrlmpi") {
		t.Error("a planted link was followed")
	}
	state, err := StatePath()
	if places := RuntimePaths(); err != nil || !strings.HasPrefix(places[len(places)-1], state) ||
		state != filepath.Join(home, "zrlmpi") {
		t.Errorf("%q, %q, %v", places, state, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/x")
	if state, err := StatePath(); err != nil || state != "/home/x/.local/state/zrlmpi" {
		t.Errorf("%q, %v", state, err)
	}
}

// TestOutput: a file named by the user is written only where no other user can have created it.
func TestOutput(t *testing.T) {
	const secret = "secret"
	open := then(mode("d", 0o777|fs.ModeSticky), func(dir string) error {
		return os.WriteFile(dir+"/secret", []byte(secret), 0o600)
	})
	for _, tt := range []struct {
		name string
		root bool
		set  func(dir string) error
		path string
		want string
	}{
		{"new", false, open, "d/x", ""},
		{"again", false, then(open, func(dir string) error { return os.WriteFile(dir+"/d/x", []byte("old"), 0o600) }),
			"d/x", ""},
		{"mine", false, then(open, func(dir string) error { return os.WriteFile(dir+"/x", []byte("old"), 0o600) }),
			"x", ""},
		{"my link", false, then(open, link("new", "l")), "l", ""},
		{"device", false, open, "/dev/null", ""},
		{"link", false, then(open, link("../secret", "d/l")), "d/l", "is a symbolic link, where other users may write"},
		{"link of a directory", false, then(open, link("..", "d/l")), "d/l/secret", "is a symbolic link of user"},
		{"hard link", false, then(open, func(dir string) error { return os.Link(dir+"/secret", dir+"/d/l") }), "d/l",
			"is not a plain file of user"},
		{"fifo", false, then(open, func(dir string) error { return syscall.Mkfifo(dir+"/d/l", 0o600) }), "d/l", ""},
		{"another's file", true, then(open, func(dir string) error { return os.WriteFile(dir+"/d/x", nil, 0o666) },
			give("d/x")), "d/x", "is not a plain file of user"},
		{"another's directory", true, then(open, give("d"), link("../secret", "d/l"), give("d/l")), "d/l",
			"is a symbolic link"},
		{"in another's directory", true, then(open, give("d")), "d/x", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root {
				needs.Root(t, "directories of other users", "can give files to another user")
			}
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err = errors.Join(err, os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755),
				tt.set(dir)); err != nil {
				t.Fatal(err)
			}
			path := tt.path
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			f, err := Output(path, 0o600)
			if err == nil {
				_, err = f.WriteString("new")
				f.Close()
				if info, statErr := os.Stat(path); err != nil || statErr != nil ||
					info.Mode().IsRegular() && info.Size() != 3 {
					t.Errorf("%v, %v, %v", err, info, statErr)
				}
			}
			switch {
			case tt.name == "fifo":
				if !errors.Is(err, syscall.ENXIO) { // the FIFO has no reader
					t.Error(err)
				}
			case (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want):
				t.Errorf("%v, want %q", err, tt.want)
			}
			if data, err := os.ReadFile(dir + "/secret"); err != nil || string(data) != secret {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}
