package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// fakeBackend provides rank 0 of a cluster of 4 ranks. Rank 1 echoes messages.
type fakeBackend struct {
	// echo returns the echo of a message. If it is nil, the echo is equal to the message.
	echo func(data []byte) []byte
	cut  int
	sent chan []byte
	// refuses makes the backend refuse configurations and captures.
	refuses bool
	// denied is the answer to requests that do more than read the status. asked contains the callers of these
	// requests.
	denied error
	mu     sync.Mutex
	asked  []string
}

func (b *fakeBackend) Handle(_ context.Context, r query.Request) query.Response {
	switch r.Kind {
	case query.Status:
		return query.Response{Document: state.Status{Version: "test", PID: os.Getpid(),
			Cluster: []state.Member{{Rank: 0}, {Rank: 1}, {Rank: 2}, {Rank: 3}}}}
	case query.Reports:
		return query.Response{Document: state.Reports{Results: []state.AskResult{
			{Rank: 1, Report: &state.PublicRank{Rank: 1, Role: state.RoleHost}}, {Rank: 2, Reason: "it has not answered"}}}}
	case query.Support:
		return query.Response{Document: Support{Log: "the end\n"}}
	case query.Reset:
		if r.Peer == 3 {
			return query.Response{Err: mpe.ErrRank}
		}
		return query.Response{}
	case query.Reload:
		if b.refuses {
			e := Errorf(Refused, "refused")
			e.Restart = []string{"a: 1 -> 2"}
			return query.Response{Err: e}
		}
		return query.Response{Document: reloaded}
	}
	return query.Unknown(r)
}

var reloaded = ReloadResult{Config: "test.yaml",
	Changes: []Change{{Rank: new(3), Key: "address", From: "x", To: "y", Text: "rank 3: address: x -> y"}}}

func (b *fakeBackend) Host(rank int) (Port, error) {
	if rank > 0 {
		return nil, Errorf(Rank, "rank %d does not run here", rank)
	}
	if b.sent == nil {
		b.sent = make(chan []byte, 100)
	}
	return b, nil
}

// Authorize records the request and returns denied.
func (b *fakeBackend) Authorize(request string, caller wire.Credentials, unknown error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, fmt.Sprintf("%s uid %d %v", request, caller.UID, unknown))
	return b.denied
}

// Capture writes the request. With Follow, it then waits until the caller is gone.
func (b *fakeBackend) Capture(ctx context.Context, req CaptureRequest, open func(protocol.Profile) io.Writer) error {
	if b.refuses {
		return Errorf(Failed, "records nothing")
	}
	if _, err := fmt.Fprintf(open(protocol.V09), "last %v\n", req.MaxAge); err != nil {
		return err
	}
	if req.Follow {
		<-ctx.Done()
	}
	return nil
}

func (b *fakeBackend) Rank() int          { return 0 }
func (b *fakeBackend) Size() int          { return 4 }
func (b *fakeBackend) MaxWords() int      { return 1 << 20 }
func (b *fakeBackend) PieceWords(int) int { return b.cut }

// Send fails if the destination is rank 2.
func (b *fakeBackend) Send(_ context.Context, dst int, data []byte, _ mpe.Options) (mpe.Status, error) {
	if dst == 2 {
		return mpe.Status{}, handshake.ErrPartial
	}
	back := bytes.Clone(data)
	if b.echo != nil {
		back = b.echo(back)
	}
	for piece := b.cut * protocol.WordLen; piece > 0 && len(back) > piece; back = back[piece:] {
		b.sent <- back[:piece]
	}
	if back != nil {
		b.sent <- back
	}
	return mpe.Status{Peer: dst, Send: true, Words: uint32(len(data) / 4),
		Phases: handshake.Phases{Start: 1000, Request: 2000, Clear: 3000, Data: 5000, Ack: 9000}}, nil
}

func (b *fakeBackend) Recv(ctx context.Context, src int, buf []byte, _ mpe.Options) (mpe.Status, error) {
	select {
	case data := <-b.sent:
		st := mpe.Status{Peer: src, Words: uint32(len(data) / 4),
			Phases: handshake.Phases{Start: 1000, Request: 10000, Clear: 11000, Data: 21000, Ack: 21000}}
		if copy(buf, data) < len(data) {
			return st, &handshake.TruncatedError{Remote: uint32(src), Posted: uint32(len(buf) / 4), Sent: st.Words}
		}
		return st, nil
	case <-ctx.Done():
		return mpe.Status{}, fmt.Errorf("rank 0 waits for rank %d: %w", src, context.Cause(ctx))
	}
}

// serve serves a backend at path until the test ends.
func serve(t *testing.T, path string, b Backend) *Client {
	t.Helper()
	l, err := Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- NewServer(b, log.New(io.Discard, "", 0)).Serve(ctx, l) }()
	c := NewClient(path)
	t.Cleanup(func() {
		c.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

func fakeServer(t *testing.T, b *fakeBackend) *Client {
	return serve(t, filepath.Join(t.TempDir(), "c.sock"), b)
}

// TestAnswers checks the answers that a caller gets without using our client.
func TestAnswers(t *testing.T) {
	h := NewServer(new(fakeBackend), log.New(io.Discard, "", 0)).newHandler()
	for _, tt := range []struct {
		method, url, body string
		code              int
		kind              Kind
		text              string
	}{
		{"GET", "/v1/status", "", 200, "", ""},
		{"GET", "/", "", 400, Usage, "GET /: no such request"},
		{"GET", "/v2/status", "", 400, Usage, "use zrlctl and zrlmpid of the same version"},
		{"GET", "/v1/ping", "", 400, Usage, "GET /v1/ping: no such request"},
		{"POST", "/v1/ping", "{", 400, Usage, "/v1/ping: invalid request: "},
		{"POST", "/v1/ping", `{"to": 1, "wrods": 3}`, 400, Usage, "wrods"},
		{"POST", "/v1/ping", `{"to": 1} {}`, 400, Usage, "more than one JSON object"},
		{"POST", "/v1/ping", `{"to": 1, "pad": "` + strings.Repeat("x", maxRequest) + `"}`, 400, Usage, "too large"},
		{"POST", "/v1/ping", `{}`, 404, Rank, "rank -1: no such rank"},
		{"POST", "/v1/ping", `{"to": 4}`, 404, Rank, "rank 4: no such rank: the cluster has ranks 0 to 3"},
		{"POST", "/v1/ping", `{"to": 0}`, 404, Rank, "rank 0 cannot send to itself"},
		{"POST", "/v1/ping", `{"from": 1, "to": 0}`, 404, Rank, "rank 1 does not run here"},
		{"POST", "/v1/ping", `{"to": 1, "count": 0}`, 400, Usage, "count 0"},
		{"POST", "/v1/ping", `{"to": 1, "words": -1}`, 400, Usage, "-1 words"},
		{"POST", "/v1/ping", `{"to": 1, "words": 2000000}`, 413, TooLong, "2000000 words"},
		{"POST", "/v1/ping", `{"to": 1, "datatype": "double"}`, 400, Usage, "double"},
		{"POST", "/v1/ping", `{"to": 1, "timeout": "10"}`, 400, Usage, "give a time with its unit"},
		{"POST", "/v1/ping", `{"to": 1, "timeout": "-1s"}`, 400, Usage, "give a time with its unit"},
		{"POST", "/v1/ping", `{"to": 1}`, 200, "", ""},
		{"POST", "/v1/send?to=1", "abcd", 200, "", ""},
		{"POST", "/v1/send?to=x", "abcd", 400, Usage, `to "x"`},
		{"POST", "/v1/send?to=1&tag=1e3", "abcd", 400, Usage, `tag "1e3"`},
		{"POST", "/v1/send?to=1&datatype=x", "abcd", 400, Usage, "unknown datatype"},
		{"POST", "/v1/send?to=1&timeout=x", "abcd", 400, Usage, "timeout"},
		{"POST", "/v1/send?to=2", "abcd", 502, Partial, "not acknowledged"},
		{"POST", "/v1/send?to=1", strings.Repeat("x", 4<<20+1), 413, TooLong, "longer than 1048576 words"},
		{"POST", "/v1/recv?from=1&words=1048577", "", 413, TooLong, "1048577 words"},
		{"POST", "/v1/recv?from=1&words=99999999999999999999", "", 400, Usage, "give a whole number"},
		{"POST", "/v1/recv?from=3", "", 200, "", ""}, // the message that was sent above
		{"POST", "/v1/recv?from=3&timeout=1ms", "", 504, Timeout, "rank 0 waits for rank 3: timed out after 1 ms"},
		{"POST", "/v1/reset", `{"peer": 3}`, 404, Rank, "no such peer"},
		{"POST", "/v1/reset", `{"peer": 1}`, 200, "", ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.url, strings.NewReader(tt.body)))
		var e Error
		if tt.code != http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
				t.Errorf("%s: %v", tt.url, err)
			}
		}
		body := tt.body[:min(len(tt.body), 40)]
		if w.Code != tt.code || e.Kind != tt.kind || !strings.Contains(e.Message, tt.text) {
			t.Errorf("%s %s %q: %d %q %s", tt.method, tt.url, body, w.Code, e.Kind, e.Message)
		}
	}
	w := httptest.NewRecorder()
	unsized := io.MultiReader(strings.NewReader(strings.Repeat("x", 4<<20+1)))
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/send?to=1",
		unsized)); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of unknown length that is too long: %d", w.Code)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/send?to=1", iotest.ErrReader(io.ErrUnexpectedEOF)))
	if w.Code != http.StatusBadRequest {
		t.Errorf("a body that breaks off: %d", w.Code)
	}
}

func TestKindOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		kind Kind
	}{
		{&handshake.TimeoutError{}, Timeout}, {&handshake.PartialError{}, Partial},
		{&handshake.TruncatedError{}, Truncated},
		{&handshake.RemoteError{}, Remote}, {handshake.ErrEmpty, Empty}, {handshake.ErrTooLong, TooLong},
		{mpe.ErrClosed, Closed}, {mpe.ErrRank, Rank}, {mpe.ErrLength, Usage}, {mpe.ErrTag, Usage},
		{&timeoutError{time.Second}, Timeout}, {context.Canceled, Canceled}, {io.EOF, Failed},
		{Errorf(Mismatch, "x"), Mismatch},
	} {
		if got := KindOf(fmt.Errorf("wrapped: %w", tt.err)); got != tt.kind {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.kind)
		}
	}
}

// TestDaemonGone checks that, if a daemon exits during a request, the error does not say that no daemon was
// running.
func TestDaemonGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	l, err := Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := l.Accept()
		if err == nil {
			conn.Close()
		}
	}()
	c := NewClient(path)
	defer c.Close()
	defer l.Close()
	err = query.Do(within(t), c.Handle, query.Request{Kind: query.Reset})
	if KindOf(err) != Closed || !strings.Contains(err.Error(), "closed the connection before its answer was complete") {
		t.Errorf("%v", err)
	}
}

func FuzzRequests(f *testing.F) {
	f.Add("/v1/ping", `{"to": 1, "words": 10, "count": 2, "timeout": "1ms"}`)
	f.Add("/v1/send?to=1&tag=3&timeout=1ms", "abcd")
	f.Add("/v1/recv?from=1&words=5&timeout=1ms&datatype=any", "")
	f.Add("/v1/reset", `{"rank": 0, "peer": 1}`)
	f.Fuzz(func(t *testing.T, url, body string) {
		req, err := http.NewRequest(http.MethodPost, "http://x", strings.NewReader(body))
		if err != nil {
			return // not a request
		}
		if req.URL, err = req.URL.Parse(url); err != nil {
			return // not a request
		}
		// The caller closes the connection, no matter what and how often the request waits.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		w := httptest.NewRecorder()
		NewServer(new(fakeBackend), log.New(io.Discard, "", 0)).newHandler().ServeHTTP(w, req.WithContext(ctx))
		if w.Code >= 300 && w.Code < 400 { // a redirect from the router, for paths like //
			return
		}
		var e Error
		if w.Code != http.StatusOK && (json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Kind == "" || e.Message == "") {
			t.Errorf("%q %q: %d %s", url, body, w.Code, w.Body)
		}
	})
}

// TestAuthorize checks that every request except for the status is authorized before it has an effect, based on
// the credentials that the kernel reports for the caller.
func TestAuthorize(t *testing.T) {
	b := &fakeBackend{denied: Errorf(Permission, "user 7 may only read the status")}
	c := fakeServer(t, b)
	ctx := t.Context()
	if _, err := c.Status(ctx); err != nil {
		t.Error(err)
	}
	var want []string
	for name, request := range map[string]func() error{
		"ping":   func() error { return c.Ping(ctx, PingRequest{To: 1}, func(Trip) error { return nil }) },
		"send":   func() error { _, err := c.Send(ctx, SendRequest{To: 1}, strings.NewReader("abcd")); return err },
		"recv":   func() error { _, _, err := c.Recv(ctx, RecvRequest{From: 1, Words: 1}); return err },
		"reset":  func() error { return query.Do(ctx, c.Handle, query.Request{Kind: query.Reset, Peer: 1}) },
		"reload": func() error { _, err := c.Reload(ctx); return err },
	} {
		err := request()
		if e, ok := errors.AsType[*Error](err); !ok || e.Kind != Permission ||
			e.Message != "user 7 may only read the status" || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
		known := "<nil>"
		if runtime.GOOS != "linux" {
			known = wire.ErrNoCredentials.Error()
		}
		want = append(want, fmt.Sprintf("/v1/%s uid %d %s", name, os.Getuid(), known))
	}
	slices.Sort(want)
	slices.Sort(b.asked)
	if !slices.Equal(b.asked, want) {
		t.Errorf("asked for %q, want %q", b.asked, want)
	}
	if len(b.sent) != 0 {
		t.Error("a refused request sent a message")
	}
}

// TestAskReports checks that the tool receives the answers of other ranks, and learns which are missing.
func TestAskReports(t *testing.T) {
	answer, err := query.Get[state.Reports](t.Context(), fakeServer(t, &fakeBackend{}).Handle,
		query.Request{Kind: query.Reports})
	asked := answer.Results
	if err != nil || len(asked) != 2 || asked[0].Report == nil || asked[0].Report.Role != state.RoleHost ||
		asked[1].Reason != "it has not answered" {
		t.Errorf("%+v, %v", asked, err)
	}
}
