package daemon

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const getHealthy = "GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\n"

// webClient opens a connection to the HTTP server and sends the given text. The connection stays open until the
// test ends.
func (r *running) webClient(t *testing.T, send string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.web.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHealthUnderConnectionFlood checks that health and metrics are served, and that followers of the events
// keep receiving them, while clients hold more connections than the limit.
func TestHealthUnderConnectionFlood(t *testing.T) {
	for _, tt := range []struct {
		name    string
		clients int
		send    string
		// answered makes each client wait until it receives the beginning of an answer.
		answered bool
	}{
		{"idle", 300, getHealthy, true},
		{"events", 150, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n", true},
		// Without the limit on connections, the header timeout would allow 128 new connections every 5 s. 700 clients
		// would keep the server busy for longer than the test waits.
		{"headers not complete", 700, strings.TrimSuffix(getHealthy, "\r\n"), false},
		{"silent", 700, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, newCluster(t).yaml(anyHTTP, echoes(1, "")...))
			viewer := bufio.NewReader(r.webClient(t, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n"))
			event := func() {
				t.Helper()
				for {
					line, err := viewer.ReadString('\n')
					if err != nil {
						t.Fatalf("who follows the events: %v", err)
					}
					if strings.HasPrefix(line, "data: ") {
						return
					}
				}
			}
			event()
			for i := range tt.clients {
				c := r.webClient(t, tt.send)
				if !tt.answered {
					continue
				}
				if _, err := c.Read(make([]byte, 1)); err != nil {
					t.Fatalf("client %d: %v", i, err)
				}
			}
			for _, path := range []string{"-/healthy", "-/ready", "metrics"} {
				if code, body := r.fetch(t, path); code != http.StatusOK {
					t.Errorf("/%s: %d: %.200s", path, code, body)
				}
			}
			event()
			r.ping(t, 1, 10, 1)
		})
	}
}
