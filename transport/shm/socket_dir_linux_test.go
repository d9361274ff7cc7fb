package shm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// entries returns the names in a directory.
func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestMeeting checks that ranks of a job meet in the job's directory, however long its path is, and that other
// ranks meet by their addresses, even if their environments differ. No rank meets a rank of another job, and no
// files are left.
func TestMeeting(t *testing.T) {
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	long := filepath.Join(t.TempDir(), strings.Repeat("a", 100), strings.Repeat("b", 100))
	m := transporttest.Map(t, 2)
	for _, dir := range []string{long, filepath.Join(runtime, "job"), ""} {
		ends := map[int]*transporttest.End{}
		for rank := range 2 {
			ends[rank] = transporttest.Start(t, listen(t, Config{Rank: rank, Map: m, Directory: dir}))
		}
		ends[0].WaitConnected(t, 1)
		ends[1].WaitConnected(t, 0)
		if dir != "" {
			if got := entries(t, dir); len(got) != 2 {
				t.Errorf("%s has %q", dir, got)
			}
		}
		for _, e := range ends {
			e.Close()
		}
		if dir == "" {
			dir = filepath.Join(runtime, "zrlmpi", ranksFolder)
		}
		if got := entries(t, dir); len(got) != 0 {
			t.Errorf("%q is left in %s", got, dir)
		}
	}
	first := listen(t, Config{Rank: 0, Map: m, Directory: filepath.Join(runtime, "one")})
	listen(t, Config{Rank: 1, Map: m, Directory: filepath.Join(runtime, "other")})
	if err := first.requestCall(first.peers[1]); !errors.Is(err, errNoProcess) ||
		!strings.Contains(err.Error(), "no process listens in "+filepath.Join(runtime, "one")) {
		t.Errorf("got %v", err)
	}
}

// TestMeetingElsewhere checks that the socket of a rank with a different environment is found, and that the
// rank counts as taken.
func TestMeetingElsewhere(t *testing.T) {
	other := privatedir.RuntimePaths()[1] // without XDG_RUNTIME_DIR
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(t.TempDir(), "none"))
	m := transporttest.Map(t, 2)
	a := listen(t, Config{Rank: 0, Map: m})
	if strings.HasPrefix(a.sockets.dir.Path(), os.Getenv("XDG_RUNTIME_DIR")) {
		t.Fatalf("it meets in %s, and not as in %s", a.sockets.dir.Path(), other)
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	b := transporttest.Start(t, listen(t, Config{Rank: 1, Map: m}))
	var taken *ListenError
	if _, err := Listen(Config{Rank: 0, Map: m}); !errors.As(err, &taken) || taken.PID != os.Getpid() {
		t.Errorf("a second rank 0: %v", err)
	}
	transporttest.Start(t, a).WaitConnected(t, 1)
	b.WaitConnected(t, 0)
}

// TestMeetingUnsafe checks that a directory writable by others is rejected, with an error that names the
// alternative.
func TestMeetingUnsafe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "job")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var le *ListenError
	_, err := Listen(Config{Map: transporttest.Map(t, 2), Directory: dir})
	if !errors.As(err, &le) || le.Taken || !errors.Is(err, privatedir.ErrUnsafe) ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}

// strangerAddr names the variable with the socket to which the test binary connects as another user.
const strangerAddr = "ZRLMPI_TEST_STRANGER"

// stranger says hello as rank 0 to rank 1, in a version that gets an answer, and prints the length of the
// answer.
func stranger(addr string) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: addr})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, _ = conn.Write(otherVersion()) // the connection may be closed already
	n, _ := conn.Read(make([]byte, 100))
	fmt.Println(n)
	os.Exit(0)
}

// TestOtherUser checks that another user's process gets no memory of ours, even if a directory and a socket let
// it connect.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change its user")
	}
	dir, err := os.MkdirTemp("", "zrlmpi-shm-open-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	m := transporttest.Map(t, 2)
	c := listen(t, Config{Rank: 1, Map: m, Directory: dir})
	socket := filepath.Join(dir, c.sockets.name)
	if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), strangerAddr+"="+socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if string(out) != "0\n" {
		t.Errorf("another user's process: %q, %v", out, err)
	}
	if linked, _ := c.Link(0); linked {
		t.Error("there is a link")
	}
}
