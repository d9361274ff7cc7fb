package web

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// TestAnswersNotRead checks that clients are served while other clients, which request large answers without
// reading them, hold more connections than the limit, each with a request in progress.
func TestAnswersNotRead(t *testing.T) {
	much := make([]byte, 32<<20) // more than the buffers of a socket can hold
	began := make(chan struct{}, maxConnections+20)
	s, _ := serve(t, Options{}, func(s *Server) {
		s.Handle("GET /much", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			began <- struct{}{}
			_, _ = w.Write(much) // fails when the connection is closed
		}))
	})
	for range cap(began) {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET /much HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-began:
		case <-time.After(testTimeout):
			t.Fatal("a request is not answered")
		}
	}
	if code, body := get(t, newClient(t, nil), s.URL()+"-/healthy"); code != http.StatusOK {
		t.Errorf("%d %q", code, body)
	}
}

// TestIdleTLSConnections checks that the limit also applies to HTTP/2 connections, which are idle between
// requests.
func TestIdleTLSConnections(t *testing.T) {
	dir := t.TempDir()
	pool := certify(t, dir)
	path := filepath.Join(dir, "web.yml")
	write(t, path, "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n")
	held := make(chan struct{}) // closed when all connections have been made
	s, _ := serve(t, Options{Config: path}, func(s *Server) {
		s.HandleStreams("GET /events", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-held:
				_, _ = io.WriteString(w, "on")
			case <-r.Context().Done():
			}
		}))
	})
	stream, err := newClient(t, pool).Get(s.URL() + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	for i := range maxConnections + 20 {
		resp, err := newClient(t, pool).Get(s.URL() + "-/healthy") // each has a connection, which stays open
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		if resp.ProtoMajor != 2 {
			t.Fatalf("client %d speaks %s", i, resp.Proto)
		}
		resp.Body.Close()
	}
	close(held)
	if rest, err := io.ReadAll(stream.Body); string(rest) != "on" {
		t.Errorf("the stream: %q, %v", rest, err)
	}
}
