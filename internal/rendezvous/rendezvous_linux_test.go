package rendezvous

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/internal/testkit/asuser"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// listenAt listens on a name in a directory until the test ends.
func listenAt(t *testing.T, path, name string) *Dir {
	t.Helper()
	d, fd, err := Listen(path, name, unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Close(fd)
		d.Close()
	})
	return d
}

// TestListen: a process is found by its name, whatever the length of the path. A second process is rejected, and the
// socket of an ended one is replaced.
func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("long", 50))
	d := listenAt(t, path, "name")
	conn, peer, err := d.Connect("name", unix.SOCK_STREAM)
	if err != nil || peer != (Peer{os.Getpid(), os.Geteuid()}) {
		t.Fatalf("%+v, %v", peer, err)
	}
	conn.Close()
	var taken *TakenError
	if _, _, err := Listen(path, "name", unix.SOCK_STREAM); !errors.As(err, &taken) || taken.PID != os.Getpid() ||
		!errors.Is(err, unix.EADDRINUSE) ||
		!strings.HasPrefix(err.Error(), path+"/name: process ") {
		t.Errorf("a second process: %v", err)
	}
	if err := d.Remove("name"); err != nil {
		t.Error(err)
	}
	for range 2 { // each leaves its socket behind
		other, fd, err := Listen(path, "gone", unix.SOCK_SEQPACKET)
		if err != nil {
			t.Fatal(err)
		}
		if p, listens := other.Listens("gone", unix.SOCK_SEQPACKET); !listens || p.PID != os.Getpid() {
			t.Errorf("a process that listens: %+v, %v", p, listens)
		}
		unix.Close(fd)
		_, _, err = other.Connect("gone", unix.SOCK_SEQPACKET)
		if _, listens := other.Listens("gone", unix.SOCK_SEQPACKET); listens || !errors.Is(err, ErrNoProcess) {
			t.Errorf("a process that is gone: %v", err)
		}
		other.Close()
	}
	if _, _, err := d.Connect("none", unix.SOCK_STREAM); !errors.Is(err, ErrNoProcess) ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a name that nobody has: %v", err)
	}
}

// TestListenAtOnce: of several processes that request the name of an ended process at the same time, exactly one gets
// it.
func TestListenAtOnce(t *testing.T) {
	path := t.TempDir()
	for range 200 {
		d, fd, err := Listen(path, "x", unix.SOCK_STREAM)
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		unix.Close(fd)
		var all sync.WaitGroup
		fds := make([]int, 8)
		for i := range fds {
			all.Go(func() {
				d, fd, err := Listen(path, "x", unix.SOCK_STREAM)
				if fds[i] = fd; err == nil {
					d.Close()
				}
			})
		}
		all.Wait()
		fds = slices.DeleteFunc(fds, func(fd int) bool { return fd < 0 })
		for _, fd := range fds {
			unix.Close(fd)
		}
		if len(fds) != 1 {
			t.Fatalf("%d processes have got it", len(fds))
		}
	}
}

// TestRemoved: an empty directory removed by another process is created again.
func TestRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job")
	end, removed := make(chan struct{}), make(chan struct{})
	var left atomic.Int32 // removals until the next call of Listen
	go func() {
		defer close(removed)
		for {
			select {
			case <-end:
				return
			default:
				if left.Load() > 0 && unix.Rmdir(path) == nil {
					left.Add(-1)
				}
			}
		}
	}()
	for range 200 {
		left.Store(maxListenTries - 1)
		d, fd, err := Listen(path, "x", unix.SOCK_STREAM)
		if err != nil {
			t.Error(err)
			break
		}
		unix.Close(fd)
		_ = d.Remove("x")
		d.Close()
	}
	close(end)
	<-removed
}

// TestSweep: only old sockets without a listening process are removed.
func TestSweep(t *testing.T) {
	path, old := t.TempDir(), time.Now().Add(-2*staleAge)
	alive := listenAt(t, path, "alive")
	for _, name := range []string{"stale", "young"} {
		d, fd, err := Listen(path, name, unix.SOCK_SEQPACKET)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		d.Close()
	}
	file := filepath.Join(path, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alive", "stale", "file", "."} {
		if err := os.Chtimes(filepath.Join(path, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if alive.Sweep() {
		t.Error("a directory with a socket that is listened on is unused")
	}
	if got, err := alive.Names(fs.ModeSocket); err != nil || !slices.Equal(got, []string{"alive", "young"}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestForeign: nothing is sent to a process of another user, wherever its socket is. A directory of another user is
// opened only by that user's ID, and a link is not followed.
func TestForeign(t *testing.T) {
	needs.Root(t, "sockets of other users", "can be another user")
	path, err := os.MkdirTemp("", "r")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(path)
	d := listenAt(t, path+"/own", "mine")
	theirs := path + "/theirs"
	if err := errors.Join(os.Chmod(path, 0o755), os.Mkdir(theirs, 0o755),
		os.Chown(theirs, asuser.Other, asuser.Other)); err != nil {
		t.Fatal(err)
	}
	var ln net.Listener
	asuser.Do(t, asuser.Other, func() { ln, err = net.Listen("unix", theirs+"/socket") })
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := errors.Join(os.Link(theirs+"/socket", path+"/own/theirs"), os.Symlink(theirs+"/socket", theirs+"/link"),
		os.Link(path+"/own/mine", theirs+"/mine")); err != nil {
		t.Fatal(err)
	}
	_, _, err = d.Connect("theirs", unix.SOCK_STREAM)
	if _, listens := d.Listens("theirs", unix.SOCK_STREAM); listens || !errors.Is(err, ErrForeign) {
		t.Errorf("another user's process in our directory: %v", err)
	}
	if _, err := Open(theirs); !errors.Is(err, privatedir.ErrUnsafe) {
		t.Errorf("another user's directory: %v", err)
	}
	if _, err := OpenOf(theirs, asuser.Other+1); !errors.Is(err, privatedir.ErrUnsafe) {
		t.Errorf("another user's directory as that of a third one: %v", err)
	}
	other, err := OpenOf(theirs, asuser.Other)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, peer, err := other.Connect("socket", unix.SOCK_STREAM)
	if err != nil || peer.UID != asuser.Other {
		t.Fatalf("%+v, %v", peer, err)
	}
	conn.Close()
	if _, _, err := other.Connect("mine", unix.SOCK_STREAM); !errors.Is(err, ErrForeign) {
		t.Errorf("our process in another user's directory: %v", err)
	}
	if _, _, err := other.Connect("link", unix.SOCK_STREAM); err == nil {
		t.Error("a link was followed")
	}
}
