package jobs

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// answerTime is how long a tool may take to read an answer.
	answerTime = 5 * time.Second
	// maxTools is how many tools may read at a time; further ones get no answer.
	maxTools = 8
	backlog  = 128
)

// listener is the socket of a rank. A thread waits in accept, and not the runtime's poller: while anything waits there, Go's
// scheduler asks it again and again, which delays ranks that poll for messages.
type listener struct {
	fd    int
	ended chan struct{}
}

// Serve answers the tools of this user, until it is closed: Ask gets what report returns, and AskOthers what others does, which may take
// a second. The socket's user is this one.
func Serve(job string, rank int, report, others func() []byte) (io.Closer, error) {
	return serve(Socket{os.Geteuid(), Name(job), rank}.String(), func(fd int, tool string) {
		if strings.HasPrefix(tool, asking) {
			answer(fd, others)
			return
		}
		answer(fd, report)
	})
}

// ServePackets writes the packets of a rank to the tools of this user, until it is closed: follow writes what there is, and what comes, until
// the tool disconnects or writing fails.
func ServePackets(job string, rank int, follow func(to io.Writer, gone <-chan struct{})) (io.Closer, error) {
	return serve(Socket{os.Geteuid(), Name(job), rank}.String()+packetsSuffix, func(fd int, _ string) { stream(fd, follow) })
}

func serve(name string, answer func(fd int, tool string)) (io.Closer, error) {
	l, err := listen(name)
	if err != nil {
		return nil, err
	}
	go l.serve(answer)
	return l, nil
}

func listen(name string) (*listener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &listener{fd, make(chan struct{})}, nil
}

// Close ends the answers.
func (l *listener) Close() error {
	err := unix.Shutdown(l.fd, unix.SHUT_RDWR) // it ends accept
	<-l.ended
	return err
}

// serve has connections of this user, and of root, answered, and closes them. tool is the name of the tool's socket, if it has one.
func (l *listener) serve(answer func(fd int, tool string)) {
	defer close(l.ended)
	defer unix.Close(l.fd)
	tools := make(chan struct{}, maxTools)
	for {
		fd, tool, err := unix.Accept4(l.fd, unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.EINTR, unix.ECONNABORTED:
			continue
		default:
			return
		}
		var name string
		if at, ok := tool.(*unix.SockaddrUnix); ok {
			name = at.Name
		}
		select {
		case tools <- struct{}{}:
			go func() { // a tool that does not read keeps no other waiting
				if accepted(fd) {
					answer(fd, name)
				}
				_ = unix.Close(fd)
				<-tools
			}()
		default:
			_ = unix.Close(fd)
		}
	}
}

// accepted reports whether the other end of a connection gets an answer, and bounds the time of each write.
func accepted(fd int) bool {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return false
	}
	timeout := unix.NsecToTimeval(int64(answerTime))
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout) == nil
}

// answer writes a document. A tool that does not read in time, or has gone, needs no answer.
func answer(fd int, report func() []byte) { _, _ = connection(fd).Write(report()) }

// stream writes until the tool has gone. What the tool sends is thrown away: its end is what is waited for.
func stream(fd int, follow func(io.Writer, <-chan struct{})) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		var b [64]byte
		for {
			if n, err := unix.Read(fd, b[:]); n <= 0 && err != unix.EINTR {
				return
			}
		}
	}()
	follow(connection(fd), gone)
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // it ends the read
	<-gone
}

// connection is a connection to a tool.
type connection int

// Write writes all of b, or fails.
func (c connection) Write(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := unix.SendmsgN(int(c), b[written:], nil, nil, unix.MSG_NOSIGNAL)
		if err != nil && err != unix.EINTR {
			return written, os.NewSyscallError("sendmsg", err)
		}
		written += max(n, 0)
	}
	return written, nil
}

// ownerOf returns the process at the other end.
func ownerOf(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var inner error
	if err := raw.Control(func(fd uintptr) { cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, err
	}
	if inner != nil {
		return nil, os.NewSyscallError("getsockopt", inner)
	}
	return cred, nil
}

// Find returns the sockets of this user's ranks on this host, and for root those of all users, sorted by user, job and rank.
func Find() ([]Socket, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := list(f)
	if self := os.Geteuid(); self != 0 {
		found = slices.DeleteFunc(found, func(s Socket) bool { return s.UID != self })
	}
	return found, err
}

// PID returns the process of the rank, which need not answer.
func (s Socket) PID() (int, error) {
	var d net.Dialer
	conn, err := d.Dial("unix", s.String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	cred, err := ownerOf(conn.(*net.UnixConn))
	if err != nil {
		return 0, err
	}
	if int(cred.Uid) != s.UID {
		return 0, ErrForeign
	}
	return int(cred.Pid), nil
}

// Ask returns what a rank answers.
func (s Socket) Ask(ctx context.Context) ([]byte, error) { return s.ask(ctx, net.Dialer{}) }

// AskOthers returns what a rank answers that other ranks have answered to it. A rank of an earlier version answers as to Ask.
func (s Socket) AskOthers(ctx context.Context) ([]byte, error) {
	name := fmt.Sprintf("%s%d/%s", asking, os.Getpid(), rand.Text())
	return s.ask(ctx, net.Dialer{LocalAddr: &net.UnixAddr{Net: "unix", Name: name}})
}

func (s Socket) ask(ctx context.Context, d net.Dialer) ([]byte, error) {
	conn, err := s.connect(ctx, d, s.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return io.ReadAll(io.LimitReader(conn, maxDocument))
}

// Packets returns the packets of a rank as they come. The caller closes it.
func (s Socket) Packets(ctx context.Context) (io.ReadCloser, error) {
	return s.connect(ctx, net.Dialer{}, s.String()+packetsSuffix)
}

// connect connects to a socket of the user that its name says.
func (s Socket) connect(ctx context.Context, d net.Dialer, name string) (*net.UnixConn, error) {
	c, err := d.DialContext(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	conn := c.(*net.UnixConn)
	if owner, err := ownerOf(conn); err != nil || int(owner.Uid) != s.UID {
		conn.Close()
		return nil, ErrForeign
	}
	return conn, nil
}
