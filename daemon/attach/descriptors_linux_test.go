package attach

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/internal/testkit/starve"
	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// TestDaemonWithoutDescriptors checks that a program is informed of the reason if the daemon has no descriptor
// left for it, and that another program can attach later.
func TestDaemonWithoutDescriptors(t *testing.T) {
	var failed []error
	failures := make(chan error, 1000)
	h := serve(t, newWorld(2, 0), Options{Log: func(e Event) {
		if e.Kind == EventFailed {
			failures <- e.Err
		}
	}})
	first, err := net.Dial("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	attachtest.WaitUntil(t, "the first program is greeted", func() bool { return len(h.server.greetSlots) == 2 })
	// accept has one descriptor in reserve, which one of the silent programs gets. The other one is refused.
	var programs [2]unix.PollFd
	for i := range programs {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		programs[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	restore, err := starve.Descriptors()
	if err != nil {
		t.Fatal(err)
	}
	defer restore()
	for _, p := range programs {
		if err := unix.Connect(int(p.Fd), &unix.SockaddrUnix{Name: h.socket}); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n == 0; {
		if n, err = unix.Poll(programs[:], int(attachtest.Deadline.Milliseconds())); err != nil && err != unix.EINTR ||
			err == nil && n == 0 {
			t.Fatalf("no program is answered: %v", err)
		}
	}
	refused := programs[0]
	if refused.Revents == 0 {
		refused = programs[1]
	}
	b := make([]byte, 1000)
	n, err := unix.Read(int(refused.Fd), b)
	const text = "file descriptors is reached: raise it (ulimit -n)"
	if said := string(b[:max(n, 0)]); err != nil || !strings.Contains(said, text) {
		t.Errorf("the program reads %q, %v", said, err)
	}
	restore()
	for len(failures) > 0 {
		failed = append(failed, <-failures)
	}
	if len(failed) == 0 || !rlimit.Is(failed[0]) {
		t.Errorf("the daemon logs %v", failed)
	}
	c, err := client.Dial(attachtest.TestContext(t), h.socket, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(attachtest.TestContext(t)); err != nil {
		t.Error(err)
	}
}

// TestProgramWithoutDescriptors checks that attaching fails, and that the error names the limit, both if no
// socket can be created and if there is no descriptor for the memory.
func TestProgramWithoutDescriptors(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	restore, err := starve.AllDescriptors()
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Dial(attachtest.TestContext(t), h.socket, 0)
	restore()
	if !rlimit.Is(err) || strings.Contains(err.Error(), "no zrlmpid") {
		t.Error(err)
	}

	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	file := os.NewFile(uintptr(pair[1]), "program")
	conn, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(attachtest.Deadline))
	if err := unix.Sendmsg(pair[0], []byte("WELCOME"), unix.UnixRights(pair[0]), nil, 0); err != nil {
		t.Fatal(err)
	}
	if restore, err = starve.AllDescriptors(); err != nil {
		t.Fatal(err)
	}
	_, err = wire.NewGreeting(conn.(*net.UnixConn)).Read(make([]byte, 100))
	restore()
	if !rlimit.Is(err) {
		t.Error(err)
	}
}
