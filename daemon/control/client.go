package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Client is a client of a daemon. Its methods return an *UnreachableError if no daemon answers, an *Error if the daemon
// reports one, and the cause of the context if the context is done first.
type Client struct {
	socket string
	http   http.Client
	// replyTimeout is the client's copy of the constant replyTimeout, so that tests can shorten it.
	replyTimeout time.Duration
}

// NewClient returns a client for the daemon at the given socket. The client connects on its first request.
func NewClient(socket string) *Client { return newClient(socket, replyTimeout) }

func newClient(socket string, reply time.Duration) *Client {
	c := &Client{socket: socket, replyTimeout: reply}
	c.http.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
	}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Handle is a query.Handler that passes requests of kinds Status, Reports, Reset, Reload and Support to the daemon.
func (c *Client) Handle(ctx context.Context, request query.Request) query.Response {
	method, limit := http.MethodGet, c.replyTimeout
	var body any
	switch request.Kind {
	case query.Reset:
		method, body = http.MethodPost, request
	case query.Reload: // the daemon may have to resolve host names
		method, limit = http.MethodPost, 3*c.replyTimeout
	}
	var text json.RawMessage
	if err := c.callWithin(ctx, limit, method, string(request.Kind), nil, body, &text); err != nil {
		return query.Response{Err: err}
	}
	if request.Kind != query.Status {
		return query.Response{Document: text}
	}
	var s state.Status
	if err := json.Unmarshal(text, &s); err != nil {
		return query.Response{Err: c.requestError(ctx, err)}
	}
	return query.Response{Document: s, Err: validateStatus(&s, c.socket)}
}

// Status returns the state of the daemon.
func (c *Client) Status(ctx context.Context) (state.Status, error) {
	return query.Get[state.Status](ctx, c.Handle, query.Request{Kind: query.Status})
}

// Reload makes the daemon reload its configuration.
func (c *Client) Reload(ctx context.Context) (ReloadResult, error) {
	r, err := query.Get[ReloadResult](ctx, c.Handle, query.Request{Kind: query.Reload})
	if err == nil && r.Config == "" {
		err = c.mismatchError("a reload without a configuration")
	}
	return r, err
}

// errSilent is the cause reported by WaitReady if a daemon accepts connections but has not answered any request yet.
var errSilent = errors.New("connection accepted, but no answer")

// WaitReady queries the status until a daemon answers. If ctx is done first, WaitReady returns the *UnreachableError of
// the last attempt.
func (c *Client) WaitReady(ctx context.Context) (state.Status, error) {
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	last := &UnreachableError{Socket: c.socket, Err: errSilent}
	for {
		status, err := c.Status(ctx)
		if e, unreachable := errors.AsType[*UnreachableError](err); unreachable {
			last = e
		} else if KindOf(err) == Timeout && ctx.Err() == nil {
			last = &UnreachableError{Socket: c.socket, Err: errSilent}
		} else if err == nil || ctx.Err() == nil {
			return status, err
		}
		select {
		case <-ctx.Done():
			return status, last
		case <-retry.C:
		}
	}
}

// Ping makes round trips and invokes the callback each for every completed one. It returns an error if the request
// fails or the callback returns an error. The error of a single round trip is part of its Trip.
func (c *Client) Ping(ctx context.Context, req PingRequest, each func(Trip) error) error {
	limit := unlimited
	if timeout, err := time.ParseDuration(req.Timeout); err == nil && timeout > 0 {
		limit = timeout + PingLinger + c.replyTimeout
	}
	resp, err := c.do(ctx, limit, http.MethodPost, "ping", nil, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(io.LimitReader(resp.Body, maxRequest*int64(max(req.Count, 1))))
	failed := false
	for n := 0; ; n++ {
		var trip Trip
		switch err := dec.Decode(&trip); {
		case errors.Is(err, io.EOF) && (n == req.Count || failed):
			return nil
		case err != nil:
			return c.requestError(ctx, err)
		case trip.To != req.To || trip.Words != req.Words:
			return c.mismatchError("a round trip of %d words to rank %d, where %d words to rank %d were requested",
				trip.Words, trip.To, req.Words, req.To)
		}
		failed = trip.Error != ""
		if err := each(trip); err != nil {
			return err
		}
	}
}

// mismatchError returns the error for an answer that does not match its request.
func (c *Client) mismatchError(format string, args ...any) error {
	return Errorf(Failed, "%s: the answer is of "+format, append([]any{c.socket}, args...)...)
}

// answerLimit returns how long to wait for the answer to an operation with the given timeout. A timeout of 0 selects
// the constant unlimited.
func (c *Client) answerLimit(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return unlimited
	}
	return timeout + c.replyTimeout
}

// Send sends a message of whole words. If ctx is done first, Send returns the daemon's error, which describes how far
// the message has got at the peer.
func (c *Client) Send(ctx context.Context, req SendRequest, data io.Reader) (Message, error) {
	q := url.Values{
		"from": {strconv.Itoa(req.From)}, "to": {strconv.Itoa(req.To)}, "datatype": {req.Datatype.String()},
		"tag": {strconv.Itoa(req.Tag)}, "timeout": {req.Timeout.String()},
	}
	sized, ok := data.(interface {
		io.Reader
		Len() int
	})
	bytes := new(countingReader)
	if ok {
		bytes.n.Store(int64(sized.Len()))
	} else {
		bytes.Reader, data = data, bytes
	}
	var message Message
	operation := c.newOperation(ctx)
	defer operation.end()
	err := operation.cause(c.callWithin(operation, c.answerLimit(req.Timeout), http.MethodPost, "send", q, data, &message))
	if n := bytes.n.Load(); err == nil && (message.To != req.To || int64(message.Words)*protocol.WordLen != n) {
		err = c.mismatchError("a message of %d words to rank %d, in answer to a send of %d bytes to rank %d",
			message.Words, message.To, n, req.To)
	}
	if err != nil {
		return Message{}, err
	}
	return message, nil
}

// countingReader counts the bytes read from a reader.
type countingReader struct {
	io.Reader
	n atomic.Int64
}

// Read implements io.Reader.
func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// Recv receives a message. If ctx is done first, Recv returns the daemon's error, like Send. If the message is longer
// than req.Words, Recv sets Message.Truncated and returns the beginning of the message.
func (c *Client) Recv(ctx context.Context, req RecvRequest) (Message, []byte, error) {
	datatype := req.Datatype.String()
	if req.AnyDatatype {
		datatype = anyDatatype
	}
	q := url.Values{
		"from": {strconv.Itoa(req.From)}, "to": {strconv.Itoa(req.To)}, "datatype": {datatype},
		"words": {strconv.Itoa(req.Words)}, "timeout": {req.Timeout.String()},
	}
	var message Message
	operation := c.newOperation(ctx)
	defer operation.end()
	resp, err := c.do(operation, c.answerLimit(req.Timeout), http.MethodPost, "recv", q, nil)
	if err != nil {
		return message, nil, operation.cause(err)
	}
	defer resp.Body.Close()
	if err := json.Unmarshal([]byte(resp.Header.Get(MessageHeader)), &message); err != nil {
		return message, nil, fmt.Errorf("invalid %s header in the daemon's answer: %w", MessageHeader, err)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(req.Words)*protocol.WordLen))
	if err != nil {
		return message, nil, operation.cause(c.requestError(operation, err))
	}
	if message.From != req.From || len(data) != min(int(message.Words), req.Words)*protocol.WordLen {
		return Message{}, nil, c.mismatchError("%d bytes of a message of %d words from rank %d, in answer to a receive "+
			"from rank %d",
			len(data), message.Words, message.From, req.From)
	}
	return message, data, nil
}
