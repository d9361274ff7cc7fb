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
	// requestTime limits how long a tool may take to send its request.
	requestTime = time.Second
	// answerTime limits how long a tool may take to read each part of an answer.
	answerTime = 5 * time.Second
	// acceptPause is the pause after a failed accept, usually due to a lack of descriptors.
	acceptPause = 100 * time.Millisecond
	// maxTools is the maximum number of tools served at the same time. Further tools receive an error.
	maxTools = 16
	// maxRequest is a bound in bytes that every request stays below.
	maxRequest = 256
)

// listener is the socket of a rank. A thread blocks in accept instead of the runtime's poller: while the poller has a
// waiter, Go's scheduler polls it repeatedly, which delays ranks that poll for messages.
type listener struct {
	dir  *rendezvous.Dir
	name string
	fd   int
	// Close closes closing to interrupt a pause of serve. serve closes ended after it has closed the socket.
	closing, ended chan struct{}
}

// Serve answers requests of tools of this user and of root until the Closer is closed.
func Serve(directory string, rank int, handler query.Handler) (io.Closer, error) {
	name := strconv.Itoa(rank)
	dir, fd, err := rendezvous.Listen(directory, name, unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	l := &listener{dir, name, fd, make(chan struct{}), make(chan struct{})}
	go l.serve(handler)
	return l, nil
}

// Close removes the socket and stops serving.
func (l *listener) Close() error {
	close(l.closing)
	err := l.dir.Remove(l.name)
	if shutdownErr := unix.Shutdown(l.fd, unix.SHUT_RDWR); err == nil { // unblocks accept
		err = shutdownErr
	}
	<-l.ended
	return errors.Join(err, l.dir.Close())
}

// serve answers connections of this user and of root, and closes them.
func (l *listener) serve(handler query.Handler) {
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
			go func() { // a tool that does not read must not block other tools
				if authorize(fd) {
					answerRequest(fd, handler)
				}
				_ = unix.Close(fd)
				<-tools
			}()
		default:
			_ = connection(fd).writeHead(answerHead{Version: query.Version, Error: "the rank answers others: try again"})
			_ = unix.Close(fd)
		}
	}
}

// authorize reports whether the peer of a connection is this user or root. It also sets time limits for reading the
// request and for each write.
func authorize(fd int) bool {
	peer, err := rendezvous.PeerOf(fd)
	if err != nil || peer.UID != 0 && peer.UID != os.Geteuid() {
		return false
	}
	in, out := unix.NsecToTimeval(int64(requestTime)), unix.NsecToTimeval(int64(answerTime))
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &in) == nil &&
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &out) == nil
}

// answerRequest answers a request. Write errors are ignored: the tool has disconnected or does not read.
func answerRequest(fd int, handler query.Handler) {
	to := connection(fd)
	first := answerHead{Version: query.Version}
	var request query.Request
	if err := json.Unmarshal([]byte(readRequest(fd)), &request); err != nil {
		first.Error = "no request"
		_ = to.writeHead(first)
		return
	}
	resp := handler(context.Background(), request)
	var text []byte
	if resp.Err == nil && resp.Document != nil {
		text, resp.Err = json.Marshal(resp.Document)
	}
	if resp.Err != nil {
		first.Unknown, first.Error = errors.Is(resp.Err, query.ErrUnknown), clip(resp.Err.Error())
	}
	switch err := to.writeHead(first); {
	case err != nil || resp.Err != nil:
	case resp.Stream != nil:
		streamPackets(fd, resp.Stream)
	default:
		_, _ = to.Write(text)
	}
}

// clip shortens the text of an error so that it fits into the first line of an answer.
func clip(text string) string { return text[:min(len(text), maxHead/8)] }

// writeHead writes the first line of an answer.
func (c connection) writeHead(h answerHead) error {
	line, err := json.Marshal(h)
	if err == nil {
		_, err = c.Write(append(line, '\n'))
	}
	return err
}

// readRequest returns the line that a tool sent as its request, or "".
func readRequest(fd int) string {
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

// streamPackets writes packets until the tool disconnects. It discards further input, and reads only to detect the end
// of the connection.
func streamPackets(fd int, follow func(context.Context, io.Writer)) {
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
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // unblocks the read
	<-ctx.Done()
}

// connection is a connection to a tool.
type connection int

// Write writes all of b or returns an error.
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
