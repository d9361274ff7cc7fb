package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/rendezvous"
)

const (
	// requestTime bounds the time in which a tool must send its request.
	requestTime = time.Second
	// answerTime bounds the time in which a tool must read a part of an answer.
	answerTime = 5 * time.Second
	// acceptPause is the pause after an error of accept, which is mostly a lack of descriptors.
	acceptPause = 100 * time.Millisecond
	// maxTools is the number of tools served at a time; further ones are answered that it is busy.
	maxTools = 16
	// maxRequest is longer than any request, in bytes.
	maxRequest = 256
)

// listener is the socket of a rank. A thread waits in accept, and not the runtime's poller: while anything waits there,
// Go's scheduler asks it again and again, which delays ranks that poll for messages.
type listener struct {
	dir  *rendezvous.Dir
	name string
	fd   int
	// closing is closed before the socket, and ended when nothing uses it any more.
	closing, ended chan struct{}
}

// Serve answers the tools of this user and root until it is closed.
func Serve(directory string, rank int, h query.Handler) (io.Closer, error) {
	name := strconv.Itoa(rank)
	dir, fd, err := rendezvous.Listen(directory, name, unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	l := &listener{dir, name, fd, make(chan struct{}), make(chan struct{})}
	go l.serve(h)
	return l, nil
}

// Close removes the socket and ends the answers.
func (l *listener) Close() error {
	close(l.closing)
	err := l.dir.Remove(l.name)
	if shutdownErr := unix.Shutdown(l.fd, unix.SHUT_RDWR); err == nil { // it ends accept
		err = shutdownErr
	}
	<-l.ended
	return errors.Join(err, l.dir.Close())
}

// serve answers the connections of this user and of root, and closes them.
func (l *listener) serve(h query.Handler) {
	defer close(l.ended)
	defer unix.Close(l.fd)
	tools := make(chan struct{}, maxTools)
	for {
		fd, _, err := unix.Accept4(l.fd, unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.EINTR, unix.ECONNABORTED:
			continue
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			select {
			case <-time.After(acceptPause):
				continue
			case <-l.closing:
				return
			}
		default:
			return
		}
		select {
		case tools <- struct{}{}:
			go func() { // a tool that does not read keeps no other waiting
				if accepted(fd) {
					answer(fd, h)
				}
				_ = unix.Close(fd)
				<-tools
			}()
		default:
			_ = connection(fd).begin(head{Version: query.Version, Error: "the rank answers others: try again"})
			_ = unix.Close(fd)
		}
	}
}

// accepted reports whether the other end of a connection gets an answer, and bounds the time of its request and of each
// write.
func accepted(fd int) bool {
	peer, err := rendezvous.PeerOf(fd)
	if err != nil || peer.UID != 0 && peer.UID != os.Geteuid() {
		return false
	}
	in, out := unix.NsecToTimeval(int64(requestTime)), unix.NsecToTimeval(int64(answerTime))
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &in) == nil &&
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &out) == nil
}

// answer answers a request. A tool that does not read in time, or is gone, needs no answer.
func answer(fd int, h query.Handler) {
	to := connection(fd)
	first := head{Version: query.Version}
	var r query.Request
	if err := json.Unmarshal([]byte(request(fd)), &r); err != nil {
		first.Error = "no request"
		_ = to.begin(first)
		return
	}
	resp := h(context.Background(), r)
	var text []byte
	if resp.Err == nil && resp.Document != nil {
		text, resp.Err = json.Marshal(resp.Document)
	}
	if resp.Err != nil {
		first.Unknown, first.Error = errors.Is(resp.Err, query.ErrUnknown), clip(resp.Err.Error())
	}
	switch err := to.begin(first); {
	case err != nil || resp.Err != nil:
	case resp.Stream != nil:
		stream(fd, resp.Stream)
	default:
		_, _ = to.Write(text)
	}
}

// clip bounds the text of an error, so that a head has it.
func clip(text string) string { return text[:min(len(text), maxHead/8)] }

// begin writes the first line of an answer.
func (c connection) begin(h head) error {
	line, err := json.Marshal(h)
	if err == nil {
		_, err = c.Write(append(line, '\n'))
	}
	return err
}

// request returns the line of a tool, or "".
func request(fd int) string {
	var b [maxRequest]byte
	for n := 0; n < len(b); {
		got, err := unix.Read(fd, b[n:])
		if err == unix.EINTR {
			continue
		}
		if got <= 0 {
			break
		}
		n += got
		if line, _, whole := strings.Cut(string(b[:n]), "\n"); whole {
			return line
		}
	}
	return ""
}

// stream writes packets until the tool is gone. It discards further bytes from the tool: it waits for the end of the
// connection.
func stream(fd int, follow func(context.Context, io.Writer)) {
	if unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, new(unix.Timeval)) != nil {
		return
	}
	ctx, gone := context.WithCancel(context.Background())
	go func() {
		defer gone()
		var b [64]byte
		for {
			if n, err := unix.Read(fd, b[:]); n <= 0 && err != unix.EINTR {
				return
			}
		}
	}()
	follow(ctx, connection(fd))
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // it ends the read
	<-ctx.Done()
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
