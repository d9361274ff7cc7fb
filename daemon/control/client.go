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

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Client talks to a daemon. Errors are *UnreachableError if there is none,
// *Error if it answered with one, and the context's if that ended first.
type Client struct {
	socket string
	http   http.Client
}

// NewClient returns a client of the daemon at the given socket. It connects at
// the first request.
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

// Status asks what the daemon is doing.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.call(ctx, http.MethodGet, "status", nil, nil, &s)
}

// WaitReady asks for the status until a daemon answers. When ctx ends first the
// error is the *UnreachableError of the last try.
func (c *Client) WaitReady(ctx context.Context) (Status, error) {
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	last := &UnreachableError{Socket: c.socket, Err: errors.New("it accepts connections, but does not answer")}
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

// Ping makes round trips, and calls each with every one as it ends. It returns
// the error of the request, not of a trip, or the error of each.
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

// Send sends a message of whole words.
func (c *Client) Send(ctx context.Context, req SendRequest, data io.Reader) (Message, error) {
	q := url.Values{
		"from": {strconv.Itoa(req.From)}, "to": {strconv.Itoa(req.To)}, "datatype": {req.Datatype.String()},
		"tag": {strconv.Itoa(req.Tag)}, "timeout": {req.Timeout.String()},
	}
	var m Message
	return m, c.call(ctx, http.MethodPost, "send", q, data, &m)
}

// Recv receives a message. If it was longer than asked for, Message.Truncated
// says so and the bytes are its beginning.
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
	resp, err := c.do(ctx, http.MethodPost, "recv", q, nil)
	if err != nil {
		return m, nil, err
	}
	defer resp.Body.Close()
	if err := json.Unmarshal([]byte(resp.Header.Get(MessageHeader)), &m); err != nil {
		return m, nil, fmt.Errorf("the daemon's answer has no sound %s header: %w", MessageHeader, err)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(req.Words)*protocol.WordLen))
	if err != nil {
		return m, nil, c.broken(ctx, err)
	}
	return m, data, nil
}

// Reset makes a local rank forget what it knows of a peer that was restarted.
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

// do makes a request, whose body is a reader or a value to be sent as JSON, and
// returns an answer that is no error.
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

// broken explains why no whole answer came.
func (c *Client) broken(ctx context.Context, err error) error {
	if unreachable, ok := errors.AsType[*UnreachableError](err); ok {
		return unreachable
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return Errorf(Closed, "the zrlmpid on %s went away before it had answered: %v", c.socket, err)
}
