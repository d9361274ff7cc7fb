package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const testTimeout = 20 * time.Second

// serve runs a server on a free port until the test ends or stop is called.
func serve(t *testing.T, opts Options, mount func(*Server)) (s *Server, stop func() error) {
	t.Helper()
	opts.Listen = "127.0.0.1:0"
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Ready == nil {
		opts.Ready = func() error { return nil }
	}
	s, err := Listen(opts)
	if err != nil {
		t.Fatal(err)
	}
	if mount != nil {
		mount(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(testTimeout):
			return errors.New("the server does not end")
		}
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return s, stop
}

// newClient returns a client whose connections are closed when the test ends.
func newClient(t *testing.T, trust *x509.CertPool) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: testTimeout}
}

func get(t *testing.T, c *http.Client, url string) (code int, body string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestHealth(t *testing.T) {
	var mu sync.Mutex
	var why error = errors.New("it starts")
	s, _ := serve(t, Options{Ready: func() error {
		mu.Lock()
		defer mu.Unlock()
		return why
	}}, func(s *Server) {
		s.Handle("GET /metrics",
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "some") }))
	})
	c := newClient(t, nil)
	for _, tt := range []struct {
		path, want string
		code       int
		why        error
	}{
		{"-/healthy", "zrlmpid is healthy.\n", 200, why},
		{"-/ready", "zrlmpid is not ready: it starts.\n", 503, why},
		{"-/ready", "zrlmpid is ready.\n", 200, nil},
		{"metrics", "some", 200, nil},
		{"debug/pprof/", "404 page not found\n", 404, nil},
		{"elsewhere", "404 page not found\n", 404, nil},
	} {
		mu.Lock()
		why = tt.why
		mu.Unlock()
		if code, body := get(t, c, s.URL()+tt.path); code != tt.code || body != tt.want {
			t.Errorf("%s: %d %q, want %d %q", tt.path, code, body, tt.code, tt.want)
		}
	}
	resp, err := c.Post(s.URL()+"-/healthy", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", resp.Status)
	}
}

func TestProfilesOnRequest(t *testing.T) {
	s, _ := serve(t, Options{Pprof: true}, nil)
	if code, body := get(t, newClient(t, nil), s.URL()+"debug/pprof/goroutine?debug=1"); code != 200 ||
		!strings.Contains(body, "goroutine profile") {
		t.Errorf("%d: %.100s", code, body)
	}
}

func TestAddressTaken(t *testing.T) {
	s, _ := serve(t, Options{}, nil)
	address := s.Addr().String()
	_, err := Listen(Options{Listen: address})
	var taken *ListenError
	if !errors.As(err, &taken) || taken.Address != address {
		t.Fatal(err)
	}
	want := "http: " + address + " is in use by another program or another zrlmpid: set http.listen to another " +
		"address, or to \"\" to disable HTTP"
	if err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := Listen(Options{Listen: "192.0.2.1:9627"}); err == nil ||
		!strings.Contains(err.Error(), "192.0.2.1:9627 is not an address of this host") {
		t.Errorf("%v", err)
	}
}

// TestStreamsEndWithTheServer checks that an endless request does not delay the end of the server, and that
// Serve returns no error.
func TestStreamsEndWithTheServer(t *testing.T) {
	ended := make(chan struct{})
	s, stop := serve(t, Options{}, func(s *Server) {
		s.HandleStreams("GET /events", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			fmt.Fprint(w, "data: 1\n")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			<-r.Context().Done()
		}))
	})
	resp, err := newClient(t, nil).Get(s.URL() + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "data: 1\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	default:
		t.Error("the server exited before the stream")
	}
}

// TestStubbornRequestsAreCutOff checks the same for a request that ignores the end of its context.
func TestStubbornRequestsAreCutOff(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{})
	s, stop := serve(t, Options{}, func(s *Server) {
		s.Handle("GET /slow", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(began)
			<-release
		}))
	})
	defer close(release)
	c := newClient(t, nil)
	go func() {
		if resp, err := c.Get(s.URL() + "slow"); err == nil {
			resp.Body.Close()
		}
	}()
	<-began
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestClosedSocketIsAnError checks that Serve returns an error if the server ends unexpectedly.
func TestClosedSocketIsAnError(t *testing.T) {
	s, err := Listen(Options{Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(context.Background()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
