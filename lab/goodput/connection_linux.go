package goodput

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connection runs one end of a plain TCP flow.
func (j *job) connection(ctx context.Context, c *counter) error {
	if j.Rank == 0 {
		return j.sendTCP(ctx, c)
	}
	return j.receiveTCP(ctx, c)
}

// sendTCP sends until ctx is done or all bytes are sent. It retries to connect because the receiver may not be
// listening yet.
func (j *job) sendTCP(ctx context.Context, c *counter) error {
	conn, err := dial(ctx, j.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := checkCubic(conn); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for !c.isComplete() {
		n, err := conn.Write(c.stream.bytesAt(c.position, messageLen))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		c.position += int64(n)
	}
	return nil
}

func dial(ctx context.Context, address string) (*net.TCPConn, error) {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", address)
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		if !errors.Is(err, unix.ECONNREFUSED) {
			return nil, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// checkCubic returns an error unless a connection uses CUBIC for congestion control, which the emulated path should
// have configured.
func checkCubic(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var name string
	var failed error
	if err := raw.Control(func(fd uintptr) {
		name, failed = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	if name != "cubic" {
		return fmt.Errorf("the congestion control is %q instead of cubic: load the kernel module tcp_cubic", name)
	}
	return nil
}

// receiveTCP accepts a connection and reads from it until the deadline, or until all bytes are received. The connection
// stays open until the process exits.
func (j *job) receiveTCP(ctx context.Context, c *counter) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", j.Address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	conn, err := l.Accept()
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	c.conn = conn
	context.AfterFunc(ctx, func() { conn.Close() })
	if err := checkCubic(conn.(*net.TCPConn)); err != nil {
		return err
	}
	b := make([]byte, messageLen)
	for !c.isComplete() {
		n, err := conn.Read(b)
		now := time.Now()
		if c.startTime.IsZero() {
			c.start(now)
			if err := conn.SetReadDeadline(c.deadline()); err != nil {
				return err
			}
		}
		if err := c.addReceived(now, b[:n]); err != nil {
			return err
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return c.timeoutError()
		case err != nil && (!errors.Is(err, io.EOF) || !c.isComplete()):
			return err
		}
	}
	return nil
}
