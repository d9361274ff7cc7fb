package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

const (
	// replyTimeout limits the wait for an answer and for each further part of it, in addition to the time that the
	// request itself waits for ranks.
	replyTimeout = 10 * time.Second
	// unlimited is the time limit of requests that wait for ranks without a timeout.
	unlimited = time.Duration(0)
	// writeStep is the number of bytes of a request that are written before each new deadline.
	writeStep = 1 << 20
)

// dial connects to the socket. It fails if CheckServer does not trust the process that listens on it.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.replyTimeout, silentError(c.socket, c.replyTimeout))
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // omit the path, which UnreachableError includes
		}
		return nil, &UnreachableError{Socket: c.socket, Err: err}
	}
	unix := conn.(*net.UnixConn)
	if err := attach.CheckServer(unix, c.socket); err != nil {
		conn.Close()
		return nil, err
	}
	return &boundedConn{UnixConn: unix, socket: c.socket, stepTimeout: c.replyTimeout}, nil
}

// boundedConn is a connection that sets a deadline for each write. Its reads fail if the other side is the daemon's
// attach socket for programs.
type boundedConn struct {
	*net.UnixConn
	socket      string
	stepTimeout time.Duration // for writeStep bytes
	answered    bool          // at least one byte has been read
}

// Read reads into b.
func (c *boundedConn) Read(b []byte) (n int, err error) {
	n, err = c.UnixConn.Read(b)
	if !c.answered && wire.IsRefusal(b[:n]) {
		return 0, Errorf(Usage, "%s: programs attach to ranks through this socket (attach.socket of the daemon's "+
			"configuration), which is not its control socket: give --socket the path of control.socket", c.socket)
	}
	c.answered = c.answered || n > 0
	return n, err
}

// Write writes b in steps and sets a deadline for each step.
func (c *boundedConn) Write(b []byte) (n int, err error) {
	for {
		_ = c.SetWriteDeadline(time.Now().Add(c.stepTimeout))
		step := min(len(b), writeStep)
		done, err := c.UnixConn.Write(b[:step])
		n += done
		if b = b[step:]; err != nil || len(b) == 0 {
			return n, err
		}
	}
}

func silentError(socket string, limit time.Duration) *Error {
	return Errorf(Timeout, "%s: no answer from the daemon for %v: it is stopped or overloaded", socket, limit)
}

// callWithin makes a request within a time limit and decodes the answer, a single JSON value of at most maxStatus
// bytes.
func (c *Client) callWithin(
	ctx context.Context, limit time.Duration, method, path string, q url.Values, body, into any,
) error {
	resp, err := c.do(ctx, limit, method, path, q, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRequest))
	} else {
		err = json.NewDecoder(io.LimitReader(resp.Body, maxStatus)).Decode(into)
	}
	if err != nil {
		return c.requestError(ctx, err)
	}
	return nil
}

// do makes a request and returns the answer, or the error in the answer. body is a reader, or a value to send as JSON.
// limit applies to the wait for the answer once the request has been written, and to the wait for each part of the
// answer's body.
func (c *Client) do(
	ctx context.Context, limit time.Duration, method, path string, q url.Values, body any,
) (*http.Response, error) {
	reader, raw := body.(io.Reader)
	if body != nil && !raw {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	u := url.URL{Scheme: "http", Host: "zrlmpid", Path: "/v1/" + path, RawQuery: q.Encode()}
	wait := newAnswerWait(ctx, c.socket, limit)
	req, err := http.NewRequestWithContext(wait.ctx, method, u.String(), reader)
	if err != nil {
		wait.end()
		return nil, err
	}
	req.Header.Set("User-Agent", "zrlctl "+version.String())
	resp, err := c.http.Do(req)
	if err != nil {
		err = c.requestError(ctx, wait.cause(err))
		wait.end()
		return nil, err
	}
	wait.answered.Store(true)
	wait.stop()
	resp.Body = &boundedBody{resp.Body, wait}
	if err := c.check(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// check returns the error in an answer. If the answer does not come from a zrlmpid, the returned error reports that.
func (c *Client) check(resp *http.Response) error {
	if resp.Header.Get(VersionHeader) == "" {
		return Errorf(Failed, "%s: the answer has no header %s: no zrlmpid listens there, or one of an older version "+
			"than zrlctl", c.socket, VersionHeader)
	}
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	answer := new(Error)
	err := json.NewDecoder(io.LimitReader(resp.Body, maxRequest)).Decode(answer)
	if err != nil || answer.Message == "" {
		return Errorf(Failed, "the daemon answered %q", resp.Status)
	}
	return answer
}

// requestError returns the error for an incomplete answer.
func (c *Client) requestError(ctx context.Context, err error) error {
	if unreachable, ok := errors.AsType[*UnreachableError](err); ok {
		return unreachable
	}
	if foreign, ok := errors.AsType[*attach.ForeignError](err); ok {
		return foreign
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return Errorf(Timeout, "%s: the daemon has not read the request for %v: it is stopped or overloaded",
			c.socket, c.replyTimeout)
	}
	return Errorf(Closed, "%s: the daemon closed the connection before its answer was complete: %v", c.socket, err)
}

// answerWait cancels a request if the answer, or its next part, does not arrive in time.
type answerWait struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  time.Duration
	err    *Error
	timer  atomic.Pointer[time.Timer]
	// answered is set when the first bytes of the answer arrive, possibly before the whole request has been written.
	answered atomic.Bool
}

// newAnswerWait creates an answerWait and the context of the request. The caller must call end.
func newAnswerWait(ctx context.Context, socket string, limit time.Duration) *answerWait {
	wait := &answerWait{limit: limit, err: silentError(socket, limit)}
	wait.ctx, wait.cancel = context.WithCancelCause(ctx)
	wait.ctx = httptrace.WithClientTrace(wait.ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		if !wait.answered.Load() {
			wait.start()
		}
	}})
	return wait
}

// start starts or restarts the timer.
func (w *answerWait) start() {
	if w.limit == unlimited {
		return
	}
	if before := w.timer.Swap(time.AfterFunc(w.limit, func() { w.cancel(w.err) })); before != nil {
		before.Stop()
	}
}

// stop stops the timer.
func (w *answerWait) stop() {
	if t := w.timer.Load(); t != nil {
		t.Stop()
	}
}

// cause returns the error to report for a failed request: the timeout error if the time limit expired, and err
// otherwise.
func (w *answerWait) cause(err error) error {
	if errors.Is(context.Cause(w.ctx), w.err) {
		return w.err
	}
	return err
}

func (w *answerWait) end() {
	w.stop()
	w.cancel(nil)
}

// boundedBody is the body of an answer, with a time limit for each read.
type boundedBody struct {
	io.ReadCloser
	wait *answerWait
}

// Read reads from the body. It fails if no data arrives within the time limit.
func (b *boundedBody) Read(buf []byte) (int, error) {
	b.wait.start()
	n, err := b.ReadCloser.Read(buf)
	b.wait.stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.wait.cause(err)
	}
	return n, err
}

// Close ends the request.
func (b *boundedBody) Close() error {
	err := b.ReadCloser.Close()
	b.wait.end()
	return err
}
