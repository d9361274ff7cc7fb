package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/asuser"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
)

// listenAs creates a socket on which a process of another user listens.
func listenAs(t *testing.T, path string) net.Listener {
	t.Helper()
	var l net.Listener
	var err error
	asuser.Do(t, asuser.Other, func() { l, err = net.Listen("unix", path) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// openPath returns a short path in a directory that every user can write to.
func openPath(t *testing.T) string {
	t.Helper()
	path := attachtest.SocketPath(t)
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestForeignServer checks that nothing is sent to a process of another user, unless the environment names that
// user or root has given that user the directory.
func TestForeignServer(t *testing.T) {
	path := openPath(t)
	l := listenAs(t, path)
	received := make(chan int)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(received)
				return
			}
			_ = conn.SetDeadline(time.Now().Add(attachtest.Deadline))
			n, _ := conn.Read(make([]byte, 100))
			conn.Close()
			received <- n
		}
	}()
	for owner, want := range map[string]string{
		"":                         "a process of user 54321 listens there, which is neither root nor user 0",
		"54322":                    "set ZRLMPI_SOCKET_OWNER=54321",
		"root":                     "a process of user 54321 listens there",
		"no-such-user":             `ZRLMPI_SOCKET_OWNER="no-such-user"`,
		strconv.Itoa(asuser.Other): "",
	} {
		t.Setenv(EnvOwner, owner)
		_, err := Dial(attachtest.TestContext(t), path, 0)
		n := <-received
		foreign, ok := errors.AsType[*ForeignError](err)
		switch {
		case want == "":
			if ok || n == 0 {
				t.Errorf("the user that is named: %v, and %d bytes", err, n)
			}
		case err == nil || !strings.Contains(err.Error(), want) || n != 0:
			t.Errorf("%q: %v, and %d bytes", owner, err, n)
		case ok && (foreign.UID != asuser.Other || !errors.Is(err, fs.ErrPermission)):
			t.Errorf("%+v", foreign)
		}
	}
}

// TestServiceOwner checks that the user to whom root has given a directory in /run is trusted there, but
// nowhere else.
func TestServiceOwner(t *testing.T) {
	asuser.Do(t, asuser.Other, func() {}) // skips the test unless run by root
	for _, tt := range []struct {
		name, dir string
		mode      fs.FileMode
		want      bool
	}{
		{"given", "/run/zrlmpid-test-%d", 0o750, true},
		{"others may write", "/run/zrlmpid-test-%d", 0o777, false},
		{"not in /run", filepath.Join(os.TempDir(), "zrlmpid-test-%d"), 0o750, false},
	} {
		dir := fmt.Sprintf(tt.dir, os.Getpid())
		err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, tt.mode), os.Chown(dir, asuser.Other, asuser.Other))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "s")
		l := listenAs(t, path)
		conn, err := net.Dial("unix", path)
		if err == nil {
			err = CheckServer(conn.(*net.UnixConn), path)
			conn.Close()
		}
		l.Close()
		if (err == nil) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

// TestSilentServer checks that an attempt to attach to a daemon that does not answer times out.
func TestSilentServer(t *testing.T) {
	path := attachtest.SocketPath(t)
	l, err := net.Listen("unix", path) // the kernel accepts connections to it
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), attachtest.Deadline/4)
	defer cancel()
	_, err = dial(ctx, path, 0, 0, 50*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "no answer for 50ms: the daemon is stopped or overloaded") {
		t.Error(err)
	}
}
