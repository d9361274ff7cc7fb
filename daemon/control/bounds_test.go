package control

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// serveWithin serves with the given time limits until the test ends. It returns the path of the socket.
func serveWithin(t *testing.T, b Backend, limits timeLimits) (path string, c *Client) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "c.sock")
	l, err := Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(b, log.New(io.Discard, "", 0))
	s.times = limits
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	c = NewClient(path)
	t.Cleanup(func() {
		c.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return path, c
}

func connect(t *testing.T, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSlowCallers checks that a caller that does not complete a request, or sends no further request, gets an
// error or is disconnected.
func TestSlowCallers(t *testing.T) {
	const soon = 100 * time.Millisecond
	path, _ := serveWithin(t, new(fakeBackend),
		timeLimits{header: soon, body: soon, read: soon, answer: time.Minute, idle: soon})
	for _, tt := range []struct{ name, request, answer string }{
		{"nothing", "", ""},
		{"half a header", "POST /v1/reset HTTP/1.1\r\nHost: a\r\n", ""},
		{"half a request", "POST /v1/reset HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{", "400 Bad Request"},
		{"half a message", "POST /v1/send?to=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nabcd",
			"400 Bad Request"},
		{"the body of a request without one",
			"POST /v1/recv?from=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nabcd", "400 Bad Request"},
		{"no second request", "GET /v1/status HTTP/1.1\r\nHost: a\r\n\r\n", "200 OK"},
	} {
		c := connect(t, path)
		if _, err := io.WriteString(c, tt.request); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(c)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		first, _, _ := strings.Cut(string(all), "\r\n")
		if !strings.HasSuffix(first, tt.answer) || (tt.answer == "") != (first == "") {
			t.Errorf("%s: %q, want %q", tt.name, first, tt.answer)
		}
	}
}

// slowPort answers after a delay if the caller is still connected.
type slowPort struct {
	fakeBackend
	after time.Duration
}

func (p *slowPort) Host(int) (Port, error) { return p, nil }

func (p *slowPort) Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error) {
	if err := p.wait(ctx); err != nil {
		return mpe.Status{}, err
	}
	return p.fakeBackend.Send(ctx, dst, data, opts)
}

func (p *slowPort) Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error) {
	if err := p.wait(ctx); err != nil {
		return mpe.Status{}, err
	}
	return p.fakeBackend.Recv(ctx, src, buf, opts)
}

func (p *slowPort) wait(ctx context.Context) error {
	select {
	case <-time.After(p.after):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestLongRequests checks that a wait for a rank is not cut off even if it exceeds all time limits, and that a
// message may arrive in pieces.
func TestLongRequests(t *testing.T) {
	const soon = 400 * time.Millisecond
	port := &slowPort{after: 2 * soon}
	port.sent = make(chan []byte, 100)
	_, c := serveWithin(t, port, timeLimits{header: soon, body: soon, read: soon, answer: soon, idle: soon})
	trips := 0
	err := c.Ping(within(t), PingRequest{From: 0, To: 1, Words: 3, Count: 2, Datatype: "int", Timeout: "30s"},
		func(trip Trip) error {
			trips++
			if trip.Error != "" {
				return errors.New(trip.Error)
			}
			return nil
		})
	if err != nil || trips != 2 {
		t.Errorf("ping: %d trips, %v", trips, err)
	}
	r, w := io.Pipe()
	go func() {
		for range 6 {
			time.Sleep(soon / 4) // sending the whole message takes longer than the limits
			_, _ = w.Write([]byte("abcd"))
		}
		w.Close()
	}()
	if _, err := c.Send(within(t), SendRequest{From: 0, To: 1, Timeout: 30 * time.Second}, r); err != nil {
		t.Errorf("send: %v", err)
	}
	m, data, err := c.Recv(within(t), RecvRequest{From: 1, To: 0, Words: 100, Timeout: 30 * time.Second})
	if err != nil || string(data) != strings.Repeat("abcd", 6) {
		t.Errorf("recv: %+v %q %v", m, data, err)
	}
}

// TestConnections checks that a new connection is served even if there are many idle ones, and that the limit
// is observed.
func TestConnections(t *testing.T) {
	limits := defaultLimits
	limits.header = time.Hour
	path, client := serveWithin(t, new(fakeBackend), limits)
	var idle []net.Conn
	for range maxConnections + 10 {
		idle = append(idle, connect(t, path))
	}
	if _, err := client.Status(within(t)); err != nil {
		t.Fatal(err)
	}
	// The oldest connections are closed.
	for _, c := range idle[:10] {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("an idle connection beyond the limit: %v", err)
		}
	}
	// The most recent connection is still open.
	last := idle[len(idle)-1]
	if _, err := io.WriteString(last, "GET /v1/status HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(last), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestBusy checks the limits on the number of requests that wait for ranks and on the bytes of their messages.
// Further requests get an error, while the status is still served.
func TestBusy(t *testing.T) {
	s := NewServer(&fakeBackend{sent: make(chan []byte)}, log.New(io.Discard, "", 0))
	h := s.newHandler()
	busy := func(what, url, body string) {
		t.Helper()
		if code, text := ask(h, "POST", url, body); code != http.StatusServiceUnavailable ||
			!strings.Contains(text, `"kind":"busy"`) {
			t.Errorf("%s: %s: %d %s", what, url, code, text)
		}
	}
	for range maxWaiting {
		s.waitSlots <- struct{}{}
	}
	busy("requests", "/v1/ping", `{"to": 1}`)
	busy("requests", "/v1/send?to=1", "abcd")
	busy("requests", "/v1/recv?from=1", "")
	if code, text := ask(h, "GET", "/v1/status", ""); code != http.StatusOK {
		t.Errorf("status: %d %s", code, text)
	}
	<-s.waitSlots
	if err := s.payload.charge(maxPayload); err != nil {
		t.Fatal(err)
	}
	busy("bytes", "/v1/ping", `{"to": 1}`)
	busy("bytes", "/v1/send?to=1", "abcd")
	busy("bytes", "/v1/recv?from=1&timeout=1ms", "")
	s.payload.release(maxPayload)
	if code, text := ask(h, "POST", "/v1/recv?from=1&timeout=1ms", ""); code != http.StatusGatewayTimeout {
		t.Errorf("recv: %d %s", code, text)
	}
	if s.payload.used != 0 || len(s.waitSlots) != maxWaiting-1 {
		t.Errorf("%d bytes and %d requests are left", s.payload.used, len(s.waitSlots))
	}
}

// TestLongestMessage sends messages of up to the maximum length, and one message that is a byte too long.
func TestLongestMessage(t *testing.T) {
	b := &fakeBackend{sent: make(chan []byte, 2)}
	h := NewServer(b, log.New(io.Discard, "", 0)).newHandler()
	most := b.MaxWords() * protocol.WordLen
	for _, tt := range []struct{ n, code int }{{0, 200}, {payloadStep, 200}, {most, 200}, {most + 1, 413}} {
		// Do not announce the length of the message.
		body := io.MultiReader(strings.NewReader(strings.Repeat("x", tt.n)))
		if code, text := askFrom(h, "POST", "/v1/send?to=1", body); code != tt.code {
			t.Errorf("%d bytes: %d %s", tt.n, code, text)
		} else if code == 200 {
			if got := <-b.sent; string(got) != strings.Repeat("x", tt.n) {
				t.Errorf("%d bytes: others were sent", tt.n)
			}
		}
	}
}

func ask(h http.Handler, method, url, body string) (code int, text string) {
	return askFrom(h, method, url, strings.NewReader(body))
}

func askFrom(h http.Handler, method, url string, body io.Reader) (code int, text string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, url, body))
	return w.Code, w.Body.String()
}
