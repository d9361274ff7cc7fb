package control

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// squat answers every request at a path with the same answer, as a process other than a zrlmpid might.
func squat(t *testing.T, header map[string]string, body string) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for name, value := range header {
			w.Header().Set(name, value)
		}
		fmt.Fprint(w, body)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	c := NewClient(path)
	t.Cleanup(c.Close)
	return c
}

// requests contains all requests that a client can make.
var requests = map[string]func(ctx context.Context, c *Client) error{
	"status": func(ctx context.Context, c *Client) error { _, err := c.Status(ctx); return err },
	"reports": func(ctx context.Context, c *Client) error {
		_, err := query.Get[state.Reports](ctx, c.Handle, query.Request{Kind: query.Reports})
		return err
	},
	"ping": func(ctx context.Context, c *Client) error {
		return c.Ping(ctx, PingRequest{To: 1, Words: 1, Count: 1}, func(Trip) error { return nil })
	},
	"send": func(ctx context.Context, c *Client) error {
		_, err := c.Send(ctx, SendRequest{To: 1}, strings.NewReader("abcd"))
		return err
	},
	"send of a stream": func(ctx context.Context, c *Client) error {
		_, err := c.Send(ctx, SendRequest{To: 1}, io.MultiReader(strings.NewReader("abcd")))
		return err
	},
	"recv": func(ctx context.Context, c *Client) error {
		_, _, err := c.Recv(ctx, RecvRequest{From: 1, Words: 1})
		return err
	},
	"reset": func(ctx context.Context, c *Client) error {
		return query.Do(ctx, c.Handle, query.Request{Kind: query.Reset, Peer: 1})
	},
	"reload": func(ctx context.Context, c *Client) error { _, err := c.Reload(ctx); return err },
	"follow": following,
	"capture": func(ctx context.Context, c *Client) error {
		body, _, err := c.Capture(ctx, CaptureRequest{})
		if err == nil {
			body.Close()
		}
		return err
	},
}

// following requests packets and follows them.
func following(ctx context.Context, c *Client) error {
	body, _, err := c.Capture(ctx, CaptureRequest{Follow: true})
	if err == nil {
		body.Close()
	}
	return err
}

// TestNoZrlmpid checks, for all requests, that the client rejects answers that no zrlmpid would give.
func TestNoZrlmpid(t *testing.T) {
	for _, body := range []string{"", "{}", "null", "[]", "garbage"} {
		c := squat(t, map[string]string{MessageHeader: "{}", ProfileHeader: protocol.CloudFPGA.String()}, body)
		for name, request := range requests {
			if err := request(within(t), c); err == nil || !strings.Contains(err.Error(), "no zrlmpid listens there") {
				t.Errorf("%s answered with %q: %v", name, body, err)
			}
		}
	}
}

// TestAnswerOfAnotherRequest checks that an answer that does not match its request is rejected, even if it
// comes from a zrlmpid.
func TestAnswerOfAnotherRequest(t *testing.T) {
	for _, tt := range []struct{ request, body, want string }{
		{"status", `{}`, "no version, process or ranks"},
		{"status", `{"version": "v1", "cluster": [{"rank": 0}]}`, "no version, process or ranks"},
		{"status", `{"version": "v1", "pid": 7}`, "no version, process or ranks"},
		{"status", `{"pid": 7, "cluster": [{"rank": 0}]}`, "no version, process or ranks"},
		{"status", `{"version": "v1", "pid": 7, "cluster": [{"rank": 1}]}`, "names ranks outside its cluster"},
		{"status", `{"version": "v1", "pid": 7, "cluster": [{"rank": 0}], "ranks": [{"rank": 1}]}`,
			"names ranks outside its cluster"},
		{"status", `{"version": "v1", "pid": 7, "cluster": [{"rank": 0}], ` +
			`"ranks": [{"rank": 0, "engine": {"Peers": [{"Rank": -1}]}}]}`, "names ranks outside its cluster"},
		{"ping", ``, "before its answer was complete"},
		{"ping", `{"dst": 2, "words": 1}`, "a round trip of 1 words to rank 2"},
		{"send", `{}`, "a message of 0 words to rank 0, in answer to a send of 4 bytes to rank 1"},
		{"send", `{"dst": 1, "words": 2}`, "a message of 2 words to rank 1"},
		{"send of a stream", `{"dst": 1, "words": 2}`, "a message of 2 words to rank 1"},
		{"recv", ``, "0 bytes of a message of 1 words from rank 1"},
		{"recv", `abcdefgh`, ""},
		{"reload", `{}`, "a reload without a configuration"},
	} {
		c := squat(t, map[string]string{VersionHeader: "v1", MessageHeader: `{"src": 1, "words": 1}`}, tt.body)
		err := requests[tt.request](within(t), c)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s answered with %q: %v, want %q", tt.request, tt.body, err, tt.want)
		}
	}
}

// TestSilentDaemon checks that no request waits forever for a daemon that does not answer or does not read.
func TestSilentDaemon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	l, err := net.Listen("unix", path) // the kernel accepts connections
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newClient(path, 100*time.Millisecond)
	defer c.Close()
	long := strings.NewReader(strings.Repeat("x", 64<<20))
	all := map[string]func(ctx context.Context, c *Client) error{
		"long send": func(ctx context.Context, c *Client) error {
			_, err := c.Send(ctx, SendRequest{}, long)
			return err
		},
	}
	for name, request := range requests {
		switch name {
		case "ping", "send", "send of a stream", "recv": // without a timeout, which they have there
			continue
		}
		all[name] = request
	}
	all["send"] = func(ctx context.Context, c *Client) error {
		_, err := c.Send(ctx, SendRequest{Timeout: time.Millisecond}, strings.NewReader("abcd"))
		return err
	}
	all["recv"] = func(ctx context.Context, c *Client) error {
		_, _, err := c.Recv(ctx, RecvRequest{Timeout: time.Millisecond})
		return err
	}
	for name, request := range all {
		if err := request(within(t), c); KindOf(err) != Timeout ||
			!strings.Contains(err.Error(), "it is stopped or overloaded") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
