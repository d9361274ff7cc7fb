package jobs

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// answerTime is how long a tool may take to read an answer.
const answerTime = 5 * time.Second

// Serve answers the tools of this user, until it is closed: each gets what report returns. The socket's user is this one.
func Serve(job string, rank int, report func() []byte) (io.Closer, error) {
	l, err := listen(Socket{os.Geteuid(), Name(job), rank})
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answer(conn.(*net.UnixConn), report)
		}
	}()
	return l, nil
}

func listen(s Socket) (net.Listener, error) { return net.Listen("unix", s.String()) }

func answer(conn *net.UnixConn, report func() []byte) {
	defer conn.Close()
	uid, err := userOf(conn)
	if err != nil || uid != 0 && uid != os.Geteuid() {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(answerTime)) // a new connection has no deadline that could fail
	_, _ = conn.Write(report())                           // a tool that has gone needs no answer
}

// userOf returns the user of the process at the other end.
func userOf(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var inner error
	if err := raw.Control(func(fd uintptr) { cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if inner != nil {
		return 0, os.NewSyscallError("getsockopt", inner)
	}
	return int(cred.Uid), nil
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

// Ask returns what a rank answers.
func (s Socket) Ask(ctx context.Context) ([]byte, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", s.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if uid, err := userOf(conn.(*net.UnixConn)); err != nil || uid != s.UID {
		return nil, ErrForeign
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return io.ReadAll(io.LimitReader(conn, maxDocument))
}
