package connlimit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"
)

// timeout is the maximum time that a test waits for an event.
const timeout = 20 * time.Second

// stub is a connection that records whether it has been closed.
type stub struct {
	net.Conn
	closed bool
}

func (s *stub) Close() error {
	s.closed = true
	return nil
}

// TestOldestIsClosed checks the order in which connections are closed. Idle connections and connections with incomplete
// headers come first, in the order in which they entered that state. Connections with a request are closed only if
// there are no others.
func TestOldestIsClosed(t *testing.T) {
	l := New(3)
	conns := make([]*stub, 10)
	for i := range conns {
		conns[i] = new(stub)
	}
	state := func(i int, s http.ConnState) { l.ConnState(conns[i], s) }
	closed := func(want ...int) {
		t.Helper()
		got := make(map[int]bool)
		for i, c := range conns {
			if c.closed {
				got[i] = true
			}
			c.closed = false
		}
		if len(got) != len(want) {
			t.Errorf("closed %v, want %v", got, want)
		}
		for _, i := range want {
			if !got[i] {
				t.Errorf("closed %v, want %v", got, want)
			}
		}
	}
	for i := range 3 {
		state(i, http.StateNew)
	}
	state(0, http.StateActive)
	state(0, http.StateIdle) // later than 1 and 2
	closed()
	state(3, http.StateNew)
	closed(1)
	state(1, http.StateActive) // a connection that has been closed does not come back
	state(1, http.StateClosed)
	state(2, http.StateActive)
	state(3, http.StateActive)
	state(4, http.StateNew)
	closed(0)
	state(4, http.StateActive)
	state(5, http.StateNew) // all others have a request: close the one whose request began first
	closed(2)
	state(6, http.StateNew)
	closed(5)
	state(3, http.StateClosed)
	state(7, http.StateNew)
	closed()
	state(4, http.StateHijacked) // the server no longer owns it
	state(8, http.StateNew)
	closed()
	if len(l.conns) != 3 {
		t.Errorf("%d connections are noted, want 3", len(l.conns))
	}
}

// TestNewConnectionsAreAnswered checks, on TCP and on a Unix socket, that each of many clients that keep their
// connections open gets an answer, and that the number of open connections never exceeds the limit.
func TestNewConnectionsAreAnswered(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "s")
			}
			listener, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			const most = 4
			limit := New(most)
			peak := 0 // guarded by the lock of the limit
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
				_ *http.Request) {
				fmt.Fprint(w, "ok")
			}))
			server.Listener.Close()
			server.Listener = listener
			server.Config.ConnState = func(c net.Conn, s http.ConnState) {
				limit.ConnState(c, s)
				limit.mu.Lock()
				defer limit.mu.Unlock()
				peak = max(peak, len(limit.conns))
			}
			server.Start()
			defer server.Close()
			for i := range 10 * most {
				c, err := net.Dial(network, listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatalf("client %d: %v", i, err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			limit.mu.Lock()
			defer limit.mu.Unlock()
			if peak > most {
				t.Errorf("%d connections at once, want at most %d", peak, most)
			}
		})
	}
}
