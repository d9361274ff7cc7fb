package check

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// network is a network namespace that has only loopback addresses, so the default ports of zrlmpid are free there.
// Functions passed to it run one at a time on a thread in the namespace. Processes that they start are in the
// namespace, too.
type network struct{ jobs chan func() }

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{jobs: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread exits with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			ready <- fmt.Errorf("create a network namespace: %w", err)
			return
		}
		ready <- loopbackUp()
		for job := range n.jobs {
			job()
		}
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(n.jobs) })
	return n
}

// do runs f in the network and waits until f returns.
func (n *network) do(f func()) {
	done := make(chan struct{})
	n.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(request)))
	if errno != 0 {
		return fmt.Errorf("the loopback interface: %w", errno)
	}
	return nil
}

// get requests a page from a server in the network.
func (n *network) get(ctx context.Context, addr, path string) (status int, body string, err error) {
	n.do(func() {
		var conn net.Conn
		if conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr); err != nil {
			return
		}
		defer conn.Close()
		if deadline, ok := ctx.Deadline(); ok {
			if err = conn.SetDeadline(deadline); err != nil {
				return
			}
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, addr)
		var resp *http.Response
		if resp, err = http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			return
		}
		defer resp.Body.Close()
		var text []byte
		text, err = io.ReadAll(resp.Body)
		status, body = resp.StatusCode, string(text)
	})
	return status, body, err
}
