package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/waitreport"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Client is a client of a daemon. Its errors are *UnreachableError if no daemon answers,
// *Error if the daemon answered with one, and the context's cause if that ended first.
type Client struct {
	socket string
	http   http.Client
}

// NewClient returns a client of the daemon at the given socket. It connects with the first
// request.
func NewClient(socket string) *Client {
	c := &Client{socket: socket}
	c.http.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "unix", socket)
			if err != nil && ctx.Err() == nil {
				if op, ok := errors.AsType[*net.OpError](err); ok {
					err = op.Err // without the path, which the error has
				}
				return nil, &UnreachableError{Socket: socket, Err: err}
			}
			return conn, err
		},
	}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status returns the state of the daemon.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.call(ctx, http.MethodGet, "status", nil, nil, &s)
}

// AskReports returns what the ranks that are not the daemon's own have answered it over the links to them.
func (c *Client) AskReports(ctx context.Context) ([]waitreport.Asked, error) {
	var asked node.AskedReports
	return asked.Asked, c.call(ctx, http.MethodGet, "reports", nil, nil, &asked)
}

// WaitReady queries the status until a daemon answers. If ctx ends first, the error is the
// *UnreachableError of the last try.
func (c *Client) WaitReady(ctx context.Context) (Status, error) {
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	last := &UnreachableError{Socket: c.socket, Err: errors.New("connection accepted, but no answer")}
	for {
		s, err := c.Status(ctx)
		if e, unreachable := errors.AsType[*UnreachableError](err); unreachable {
			last = e
		} else if err == nil || ctx.Err() == nil {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, last
		case <-retry.C:
		}
	}
}

// Ping makes round trips, and calls each for every one that ends. It returns the error of
// the request, not of a trip, or the error of each.
func (c *Client) Ping(ctx context.Context, req PingRequest, each func(Trip) error) error {
	resp, err := c.do(ctx, http.MethodPost, "ping", nil, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for n := 0; ; n++ {
		var t Trip
		switch err := dec.Decode(&t); {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case err != nil:
			return c.broken(ctx, err)
		}
		if err := each(t); err != nil {
			return err
		}
	}
}

// Send sends a message of whole words. If ctx ends, the error is the daemon's: it says what
// was left open at the peer.
func (c *Client) Send(ctx context.Context, req SendRequest, data io.Reader) (Message, error) {
	q := url.Values{
		"from": {strconv.Itoa(req.From)}, "to": {strconv.Itoa(req.To)}, "datatype": {req.Datatype.String()},
		"tag": {strconv.Itoa(req.Tag)}, "timeout": {req.Timeout.String()},
	}
	var m Message
	operation := c.cancellable(ctx)
	defer operation.end()
	err := c.call(operation, http.MethodPost, "send", q, data, &m)
	return m, operation.cause(err)
}

// Recv receives a message. It ends with ctx as Send does. If it is longer than requested, Message.Truncated says so and
// the bytes are its beginning.
func (c *Client) Recv(ctx context.Context, req RecvRequest) (Message, []byte, error) {
	datatype := req.Datatype.String()
	if req.AnyDatatype {
		datatype = anyDatatype
	}
	q := url.Values{
		"from": {strconv.Itoa(req.From)}, "to": {strconv.Itoa(req.To)}, "datatype": {datatype},
		"words": {strconv.Itoa(req.Words)}, "timeout": {req.Timeout.String()},
	}
	var m Message
	operation := c.cancellable(ctx)
	defer operation.end()
	resp, err := c.do(operation, http.MethodPost, "recv", q, nil)
	if err != nil {
		return m, nil, operation.cause(err)
	}
	defer resp.Body.Close()
	if err := json.Unmarshal([]byte(resp.Header.Get(MessageHeader)), &m); err != nil {
		return m, nil, fmt.Errorf("invalid %s header in the daemon's answer: %w", MessageHeader, err)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(req.Words)*protocol.WordLen))
	if err != nil {
		return m, nil, operation.cause(c.broken(operation, err))
	}
	return m, data, nil
}

// Reset discards a local rank's state of a peer that was restarted.
func (c *Client) Reset(ctx context.Context, req ResetRequest) error {
	return c.call(ctx, http.MethodPost, "reset", nil, req, nil)
}

// call makes a request whose answer is one JSON value.
func (c *Client) call(ctx context.Context, method, path string, q url.Values, body, into any) error {
	resp, err := c.do(ctx, method, path, q, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	} else {
		err = json.NewDecoder(resp.Body).Decode(into)
	}
	if err != nil {
		return c.broken(ctx, err)
	}
	return nil
}

// do makes a request, whose body is a reader or a value to be sent as JSON, and returns the
// answer unless it is an error.
func (c *Client) do(ctx context.Context, method, path string, q url.Values, body any) (*http.Response, error) {
	reader, raw := body.(io.Reader)
	if body != nil && !raw {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	u := url.URL{Scheme: "http", Host: "zrlmpid", Path: "/v1/" + path, RawQuery: q.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "zrlctl "+Version())
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	answer := new(Error)
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxRequest)).Decode(answer); err != nil || answer.Message == "" {
		return nil, Errorf(Failed, "the daemon answered %q", resp.Status)
	}
	return nil, answer
}

// broken returns the error of an incomplete answer.
func (c *Client) broken(ctx context.Context, err error) error {
	if unreachable, ok := errors.AsType[*UnreachableError](err); ok {
		return unreachable
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return Errorf(Closed, "%s: the daemon closed the connection before its answer was complete: %v", c.socket, err)
}
