package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// Conn is a connection to a launcher.
type Conn interface {
	io.ReadWriteCloser
	SetDeadline(time.Time) error
}

// Client represents a process of a job towards the launcher. Its methods may be called concurrently, and run one at a
// time.
type Client struct {
	rank, size int

	mu    sync.Mutex
	conn  Conn
	lines *bufio.Reader
	// spaceName is the name of the job's key-value space.
	spaceName string
}

// Error describes a request that the launcher rejected or did not answer.
type Error struct {
	// Command is the request, such as "get".
	Command string
	Err     error
}

// Error names the request and the cause.
func (e *Error) Error() string { return fmt.Sprintf("the launcher (PMI-1, %s): %v", e.Command, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errRefused is returned when the launcher has rejected a request without giving a reason.
var errRefused = errors.New("it has refused the request")

// NewClient returns a client for a connection to a launcher. The client owns the connection unless NewClient returns an
// error. rank and size come from the environment that the launcher has set.
func NewClient(ctx context.Context, conn Conn, rank, size int) (*Client, error) {
	if size < 1 || rank < 0 || rank >= size {
		return nil, fmt.Errorf("rank %d of a job of %d: ranks are 0 to its size minus 1", rank, size)
	}
	client := &Client{rank: rank, size: size, conn: conn, lines: bufio.NewReaderSize(conn, maxLine)}
	if _, err := client.request(ctx, "init", "response_to_init", "pmi_version", "1", "pmi_subversion", "1"); err != nil {
		return nil, err
	}
	m, err := client.request(ctx, "get_my_kvsname", "my_kvsname")
	if err != nil {
		return nil, err
	}
	if client.spaceName = m.get("kvsname"); !isPlain(client.spaceName, maxName) {
		return nil, &Error{"get_my_kvsname", fmt.Errorf("%w: the name of the space of keys is %q", ErrMessage,
			client.spaceName)}
	}
	return client, nil
}

// Rank returns the number of the process in the job.
func (c *Client) Rank() int { return c.rank }

// Size returns the number of processes of the job.
func (c *Client) Size() int { return c.size }

// Name returns the name of the job's key-value space, which identifies the job.
func (c *Client) Name() string { return c.spaceName }

// Put sets the value of a key. Other processes can get it after the next barrier.
func (c *Client) Put(ctx context.Context, key, value string) error {
	if !isPlain(key, maxKey) || !isPlain(value, maxValue) {
		return &Error{"put", fmt.Errorf("key %.80q, value %.80q: they are 1 to %d and 1 to %d printable characters "+
			"without spaces", key, value, maxKey, maxValue)}
	}
	_, err := c.request(ctx, "put", "put_result", "kvsname", c.spaceName, "key", key, "value", value)
	return err
}

// Get returns the value of a key.
func (c *Client) Get(ctx context.Context, key string) (string, error) {
	m, err := c.request(ctx, "get", "get_result", "kvsname", c.spaceName, "key", key)
	return m.get("value"), err
}

// Barrier waits until all processes of the job have called it.
func (c *Client) Barrier(ctx context.Context) error {
	_, err := c.request(ctx, "barrier_in", "barrier_out")
	return err
}

// Finalize notifies the launcher that the process will send no more requests, and closes the connection.
func (c *Client) Finalize(ctx context.Context) error {
	_, err := c.request(ctx, "finalize", "finalize_ack")
	c.conn.Close()
	return err
}

// Abort asks the launcher to end the job with an exit code.
func (c *Client) Abort(code int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := io.WriteString(c.conn, formatLine("abort", "exitcode", strconv.Itoa(code))); err != nil {
		return &Error{"abort", err}
	}
	return nil
}

// request sends a request to the launcher and returns the answer.
func (c *Client) request(ctx context.Context, command, answer string, pairs ...string) (message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) }) // best effort
	defer func() {
		if !end() { // do not interrupt later requests
			_ = c.conn.SetDeadline(time.Time{})
		}
	}()
	msg, err := c.exchange(formatLine(command, pairs...), answer)
	if err != nil && ctx.Err() != nil {
		err = ctxerr.Cause(ctx)
	}
	if err != nil {
		return message{}, &Error{command, err}
	}
	return msg, nil
}

// exchange sends a line and reads the answer, which must be the given command with rc=0. The caller holds mu.
func (c *Client) exchange(request, answer string) (message, error) {
	if _, err := io.WriteString(c.conn, request); err != nil {
		return message{}, err
	}
	text, err := c.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return message{}, fmt.Errorf("%w: an answer is longer than %d bytes", ErrMessage, maxLine)
	case errors.Is(err, io.EOF):
		return message{}, errors.New("it has closed the connection: the job is over")
	case err != nil:
		return message{}, err
	}
	msg, err := parse(string(text))
	if err != nil {
		return message{}, err
	}
	if msg.command != answer {
		return message{}, fmt.Errorf("%w: it answers with %s, not with %s", ErrMessage, msg.command, answer)
	}
	if rc, err := msg.intValue("rc"); err != nil {
		return message{}, err
	} else if rc != 0 {
		if text := msg.get("msg"); text != "" {
			return message{}, fmt.Errorf("%w: %s", errRefused, text)
		}
		return message{}, errRefused
	}
	return msg, nil
}
