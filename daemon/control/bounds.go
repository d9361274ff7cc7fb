package control

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/anonmem"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// maxRequest is the maximum size of a request in bytes, excluding the message of a send.
	maxRequest = 64 << 10
	// maxHeader is the maximum size of a request's header in bytes.
	maxHeader = 64 << 10
	// maxConnections limits the number of open connections. At the limit, a new connection closes an older one,
	// preferably an idle one.
	maxConnections = 512
	// maxWaiting is the maximum number of concurrent requests that wait for other ranks.
	maxWaiting = 448
	// maxPayload is the maximum number of message bytes held for all requests together.
	maxPayload = 1 << 30
	// payloadStep is the maximum number of bytes that the server reads at a time from a message of unknown length.
	payloadStep = 1 << 20
	// answerStep is the number of bytes of an answer that are written before each new deadline.
	answerStep = 1 << 20
)

// timeLimits limits how long callers may take to send a request and to read the answer. The limits do not apply while a
// request waits for a rank.
type timeLimits struct {
	header time.Duration // to send a request's header
	body   time.Duration // to send the rest of a request, without the message of a send
	read   time.Duration // to send the next part of a send's message
	answer time.Duration // to read answerStep bytes of an answer
	idle   time.Duration // between two requests
}

// defaultLimits allows 2 minutes between parts of a message, because zrlctl may read them from a pipe or a terminal.
var defaultLimits = timeLimits{
	header: 10 * time.Second, body: 10 * time.Second, read: 2 * time.Minute, answer: 30 * time.Second,
	idle: 2 * time.Minute,
}

// withLimits reads each request in full before it calls the handler, except messages of sends. It limits the time and
// size of requests and the time to write answers.
func (s *Server) withLimits(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writer := &answerWriter{ResponseWriter: w, control: http.NewResponseController(w), stepTimeout: s.times.answer}
		// The server clears the read deadline after it has read a request's body. If the request has no body, the
		// server does not clear it, because it is already watching the connection, and would mistake the expired
		// deadline for the end of the connection.
		if r.ContentLength != 0 {
			_ = writer.control.SetReadDeadline(time.Now().Add(s.times.body))
		}
		if r.URL.Path != sendPath {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
			if err != nil {
				writeError(writer, Errorf(Usage, "%s: invalid request: %v", r.URL.Path, err))
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(writer, r)
	})
}

// answerWriter writes an answer in steps and sets a deadline for each step.
type answerWriter struct {
	http.ResponseWriter
	control     *http.ResponseController
	stepTimeout time.Duration
}

// Unwrap supports http.ResponseController.
func (a *answerWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write writes b.
func (a *answerWriter) Write(b []byte) (n int, err error) {
	for {
		_ = a.control.SetWriteDeadline(time.Now().Add(a.stepTimeout))
		step := min(len(b), answerStep)
		done, err := a.ResponseWriter.Write(b[:step])
		n += done
		if b = b[step:]; err != nil || len(b) == 0 {
			return n, err
		}
	}
}

// limitWaiting limits the number of requests that wait for other ranks. Because the limit is below maxConnections,
// connlimit never closes the connection of such a request.
func (s *Server) limitWaiting(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		select {
		case s.waitSlots <- struct{}{}:
		default:
			return Errorf(Busy, "the limit of %d requests waiting for other ranks is reached: try again later", maxWaiting)
		}
		defer func() { <-s.waitSlots }()
		return next(w, r)
	}
}

// payloadBudget counts the message bytes held by all requests.
type payloadBudget struct {
	mu   sync.Mutex
	used int64
}

// charge charges n bytes to the budget. It returns an error if the total would exceed maxPayload.
func (p *payloadBudget) charge(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used+int64(n) > maxPayload {
		return Errorf(Busy, "the limit of %d bytes for the messages of all requests is reached, %d are in use: try "+
			"again later", maxPayload, p.used)
	}
	p.used += int64(n)
	return nil
}

func (p *payloadBudget) release(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= int64(n)
}

// messageBuffer is a buffer for one message. The system allocates its pages only as data is written to them.
type messageBuffer struct {
	budget  *payloadBudget
	buf     []byte
	charged int
}

// newMessage returns a message buffer of n bytes, without charging them to the budget.
func (s *Server) newMessage(n int) (*messageBuffer, error) {
	buf, err := anonmem.Get(n)
	if err != nil {
		return nil, Errorf(Busy, "%v", err)
	}
	return &messageBuffer{budget: &s.payload, buf: buf}, nil
}

// charge charges n more bytes of the buffer to the budget, before data is written to them.
func (m *messageBuffer) charge(n int) error {
	err := m.budget.charge(n)
	if err == nil {
		m.charged += n
	}
	return err
}

func (m *messageBuffer) free() {
	m.budget.release(m.charged)
	anonmem.Put(m.buf)
}

// readMessage reads a message of at most maxWords words from the body of a request. The caller must free a non-nil
// buffer, even after an error.
func (s *Server) readMessage(w http.ResponseWriter, r *http.Request, maxWords int) (buffer *messageBuffer, data []byte,
	err error) {
	limit := maxWords * protocol.WordLen
	if r.ContentLength > int64(limit) {
		return nil, nil, tooLongError(maxWords)
	}
	if buffer, err = s.newMessage(limit); err != nil {
		return nil, nil, err
	}
	control := http.NewResponseController(w)
	body := http.MaxBytesReader(w, r.Body, int64(limit))
	for n := 0; ; {
		if n == buffer.charged && n < limit {
			if err := buffer.charge(min(limit-n, payloadStep)); err != nil {
				return buffer, nil, err
			}
		}
		_ = control.SetReadDeadline(time.Now().Add(s.times.read))
		var more int
		if n < limit {
			more, err = body.Read(buffer.buf[n:buffer.charged])
		} else { // only check for more data
			_, err = body.Read(make([]byte, 1))
		}
		n += more
		switch _, over := errors.AsType[*http.MaxBytesError](err); {
		case over:
			return buffer, nil, tooLongError(maxWords)
		case errors.Is(err, io.EOF):
			return buffer, buffer.buf[:n], nil
		case err != nil:
			return buffer, nil, Errorf(Usage, "reading the message: %v", err)
		}
	}
}

func tooLongError(maxWords int) error {
	return Errorf(TooLong, "the message is longer than %d words", maxWords)
}
