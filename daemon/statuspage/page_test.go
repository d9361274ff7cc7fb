package statuspage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/daemon/statuspage"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// get requests a page without using a network.
func get(t *testing.T, p http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func expect(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not there", w)
		}
	}
}

func TestPage(t *testing.T) {
	m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(12, 4000, true)}
	daemontest.AddWait(&m.Value, 3, 133)
	m.Value.Ranks[0].Engine.Peers[6].Refuses = "it is wedged"
	p := statuspage.New(m.Status, statuspage.Options{
		Host: "node7", Recent: func() []statuspage.Entry {
			return []statuspage.Entry{{Level: "error", Text: "lost",
				Count: 3}}
		},
		Latency: func(_, peer int) (statuspage.Latency, bool) {
			return statuspage.Latency{P50: 12e-6, P99: 3e-3, Messages: 5}, peer == 4
		},
	})
	w := get(t, p, "/")
	body := w.Body.String()
	expect(t, body, "<h1>node7</h1>", "1 wait, longest 2 min 13 s", "rank 0 waits for SEND_REQUEST from rank 3",
		`data-key="0&gt;3/receive"`,
		"Rank 0 has waited 2 min 13 s to receive up to 0 bytes from rank 3, SEND_REQUEST is missing",
		`data-key="nothing_sent 3"`, "<b>Next: ",
		"rank 0 refuses to send to rank 7: it is wedged", "zrlctl reset 7 --from 0",
		"12 µs <span class=\"sep\">/</span> 3 ms", "10.12.0.13:2718", "lost <small>3 times</small>",
		"<title>(1) zrlmpid node7</title>", `<noscript><meta http-equiv="refresh"`)
	if w.Code != http.StatusOK || strings.Contains(body, "{{") || strings.Contains(body, "ZgotmplZ") {
		t.Errorf("%d: %s", w.Code, body)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if csp := w.Header().Get("Content-Security-Policy"); !regexp.MustCompile(
		`^default-src 'none'; script-src 'sha256-[^' ]+'; style-src 'sha256-[^' ]+'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$`).MatchString(csp) {
		t.Errorf("%s", csp)
	}
	if n := strings.Count(body, "<script"); n != 1 || strings.Contains(body, " style=") ||
		regexp.MustCompile(`\son[a-z]+=`).MatchString(body) {
		t.Errorf("%d scripts, or styles and handlers in elements", n)
	}
}

func TestStatusJSON(t *testing.T) {
	m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(3, 10, true)}
	w := get(t, statuspage.New(m.Status, statuspage.Options{}), "/status.json")
	var s state.Status
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.PID != 4711 || len(s.Ranks[0].Engine.Peers) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	m.Modify(func(s *state.Status) { daemontest.AddWait(s, 2, 12) })
	body := get(t, statuspage.New(m.Status, statuspage.Options{}), "/status.json").Body.String()
	expect(t, body, `"verdict":{"level":"bad","text":"1 wait, longest 12.0 s"`,
		`"waits":[{"rank":0,"peer":2,"direction":"receive","waits_for":"SEND_REQUEST","age_seconds":12,`,
		`"cycles":[]`, `"problems":[]`)
}

// TestManyRanks checks that, with many local ranks, idle ranks are only named, and that a pair of them is
// listed only once.
func TestManyRanks(t *testing.T) {
	m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(64, 10, false)}
	s := &m.Value
	for rank := 1; rank <= 63; rank++ {
		s.Ranks = append(s.Ranks, state.Rank{
			RankInfo: state.RankInfo{Rank: rank, Role: state.RoleHost},
			Engine:   state.Engine{Rank: rank, Peers: []state.Peer{{Rank: 0, Refuses: "wedged"}}},
		})
	}
	s.Ranks[7].Engine.Posted = 1
	p := statuspage.New(m.Status, statuspage.Options{})
	body := get(t, p, "/").Body.String()
	expect(t, body, "62 idle ranks not shown: 1–6, 8–63.", `data-key="0&gt;9"`, "Showing 60 of 63")
	if strings.Contains(body, `data-key="9&gt;0"`) {
		t.Error("a pair of local ranks is listed twice")
	}
	expect(t, get(t, p, "/?show=all").Body.String(), "Showing 32 of 64")
	expect(t, get(t, p, "/?q=9%3E0").Body.String(), `data-key="0&gt;9"`)
}

func TestOtherRequests(t *testing.T) {
	p := statuspage.New((&daemontest.StatusSource{Value: state.Status{}}).Status, statuspage.Options{})
	for path, want := range map[string]int{"/": 200, "/nothing": 404, "/index.html": 404, "/events/x": 404} {
		if got := get(t, p, path).Code; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestHostile checks that text from other sources never becomes markup.
func TestHostile(t *testing.T) {
	const evil = `"><img src=x onerror=alert(1)><script>alert(2)</script>'` + "\x1b[2J\u202e"
	m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(2, 10, true)}
	s := &m.Value
	s.Version, s.Config = evil, evil
	r := &s.Ranks[0]
	r.Role, r.Kernel, r.KernelState, r.KernelError, r.Address, r.Transports = evil, evil, state.KernelFailed, evil,
		evil, []state.Transport{evil}
	r.Engine.Peers[0] = state.Peer{
		Rank: 1, Kind: evil, Address: evil, Profile: evil, Transport: evil, Refuses: evil, NetworkError: evil,
		Dropped: state.DropCounts{state.DropStale: 3},
		Sending: &state.Wait{Seconds: 20, Text: evil},
	}
	p := statuspage.New(m.Status,
		statuspage.Options{Host: evil,
			Recent: func() []statuspage.Entry { return []statuspage.Entry{{Level: evil, Text: evil}} }})
	body := get(t, p, "/?q=&sort=%22%3E%3Cscript%3E&show=%3Cb%3E").Body.String()
	if strings.Contains(body, "<img") || strings.Count(body, "<script") != 1 || strings.Contains(body, `"><`+"img") {
		t.Error("text of a status becomes markup")
	}
	if n := strings.Count(body, "&lt;img"); n < 11 {
		t.Errorf("it is shown %d times only", n)
	}
	body = get(t, p, "/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E").Body.String()
	if strings.Count(body, "<script") != 1 || !strings.Contains(body, "&lt;script&gt;alert(1)") {
		t.Error("text of a filter becomes markup")
	}
}

// TestManyPeers checks that a page for a thousand peers is not much longer than a page for a hundred, and shows
// how many peers it omits.
func TestManyPeers(t *testing.T) {
	m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(1000, 4000, true)}
	for i := 1; i <= 1000; i++ {
		daemontest.AddWait(&m.Value, i, float64(i))
	}
	m.Value.Ranks[0].Engine.Peers[499].Refuses = strings.Repeat("it is wedged ", 1000)
	p := statuspage.New(m.Status, statuspage.Options{})
	body := get(t, p, "/").Body.String()
	if len(body) > 200_000 {
		t.Errorf("%d bytes", len(body))
	}
	expect(t, body, "1000 waits, longest 16 min 40 s", "Showing the 40 longest of 1\u202f000.",
		"Showing 60 of 1\u202f000: use the filter to see others.", `data-key="0&gt;500"`)
	body = get(t, p, "/?q=777").Body.String()
	expect(t, body, "1 of 1000 waits match the filter", "1 of 1000 peers match", `data-key="0&gt;777"`)
	t.Logf("a page of 1000 peers has %d bytes", len(body))
}

// TestSilentPeers checks that silent peers are listed only on request.
func TestSilentPeers(t *testing.T) {
	m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(20, 10, false)}
	daemontest.AddWait(&m.Value, 4, 2)
	p := statuspage.New(m.Status, statuspage.Options{})
	body := get(t, p, "/").Body.String()
	expect(t, body, `data-key="0&gt;4"`, "19 silent peers not shown.")
	if strings.Contains(body, `data-key="0&gt;5"`) {
		t.Error("a silent peer is listed")
	}
	expect(t, get(t, p, "/?show=all").Body.String(), `data-key="0&gt;5"`, ">silent<")
}

// follow requests events inside the test's bubble, without using a network.
func follow(t *testing.T, ctx context.Context, p http.Handler, path string) <-chan event {
	events := make(chan event, 1000)
	w := &eventWriter{header: http.Header{}, events: events}
	go func() {
		defer close(events)
		p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx))
	}()
	return events
}

// event is an event as sent.
type event struct {
	size int
	T    string            `json:"t"`
	P    map[string]string `json:"p"`
	L    map[string]struct {
		O *[]string         `json:"o"`
		I map[string]string `json:"i"`
	} `json:"l"`
}

type eventWriter struct {
	header http.Header
	status int
	events chan<- event
}

func (w *eventWriter) Header() http.Header              { return w.header }
func (w *eventWriter) WriteHeader(code int)             { w.status = code }
func (w *eventWriter) Flush()                           {}
func (w *eventWriter) SetWriteDeadline(time.Time) error { return nil }
func (w *eventWriter) Write(b []byte) (n int, err error) {
	e := event{size: len(b)}
	text, ok := strings.CutPrefix(string(b), "data: ")
	if !ok || strings.Count(text, "\n") != 2 || !strings.HasSuffix(text, "\n\n") {
		return 0, fmt.Errorf("%q is no event", b)
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return 0, err
	}
	w.events <- e
	return len(b), nil
}

// TestEvents checks that the first event contains everything, and that later events contain only changes.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(1000, 1000, true)}
		p := statuspage.New(m.Status, statuspage.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx)
		events := follow(t, ctx, p, "/events")
		first := <-events
		if len(first.L["peers"].I) != 60 || len(*first.L["peers"].O) != 60 || first.L["waits"].O == nil ||
			len(*first.L["waits"].O) != 0 || first.size > 200_000 {
			t.Errorf("%d bytes, %d peers", first.size, len(first.L["peers"].I))
		}
		<-events
		quiet := <-events // nothing has changed, and the rates were 0 before
		if quiet.size > 4000 || len(quiet.L) != 0 || quiet.T == first.T {
			t.Errorf("nothing has happened, and it takes %d bytes to say so: %+v", quiet.size, quiet)
		}
		m.Modify(func(s *state.Status) {
			*s = daemontest.ClusterStatus(1000, 1000, true)
			daemontest.AddWait(s, 700, 5)
		})
		e := <-events
		if w := e.L["waits"]; len(*w.O) != 1 ||
			!strings.Contains(w.I["0>700/receive"], "rank 0 waits for SEND_REQUEST from rank 700") {
			t.Errorf("%+v", w)
		}
		if ps := e.L["peers"]; (*ps.O)[0] != "0>700" || len(ps.I) != 1 {
			t.Errorf("%+v", ps)
		}
		expect(t, e.P["verdict"], "1 wait, longest 5.0 s")
		// Even if everything changes, the size of the event is limited.
		m.Modify(func(s *state.Status) { *s = daemontest.ClusterStatus(1000, 2000, true) })
		if e := <-events; e.size > 200_000 {
			t.Errorf("%d bytes", e.size)
		} else if *e.L["waits"].O == nil || len(*e.L["waits"].O) != 0 {
			t.Errorf("the wait is not over: %+v", e.L["waits"])
		}
	})
}

// TestSampling checks that the daemon is queried once a second while there are watchers, and every ten seconds
// otherwise.
func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(3, 10, true)}
		p := statuspage.New(m.Status, statuspage.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx)
		asked := func(d time.Duration) int {
			before := m.NumCalls()
			<-time.After(d)
			synctest.Wait()
			return m.NumCalls() - before
		}
		synctest.Wait()
		if n := asked(time.Minute); n != 6 {
			t.Errorf("%d times in a minute without watchers", n)
		}
		watching, disconnect := context.WithCancel(ctx)
		for range 10 {
			follow(t, watching, p, "/events")
		}
		if n := asked(time.Minute); n < 59 || n > 61 {
			t.Errorf("%d times in a minute with ten watchers", n)
		}
		disconnect()
		synctest.Wait()
		if n := asked(time.Minute); n < 5 || n > 7 {
			t.Errorf("%d times in a minute after they have disconnected", n)
		}
		for range 50 {
			get(t, p, "/")
			get(t, p, "/status.json")
		}
		if n := asked(0); n > 1 {
			t.Errorf("%d times for pages of the same moment", n)
		}
	})
}

// TestTooManyWatchers checks that excess watchers are rejected, and that another one can connect once a watcher
// has disconnected.
func TestTooManyWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := statuspage.New((&daemontest.StatusSource{Value: daemontest.ClusterStatus(3, 10, true)}).Status,
			statuspage.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		one, disconnect := context.WithCancel(ctx)
		follow(t, one, p, "/events")
		for range 31 {
			follow(t, ctx, p, "/events")
		}
		synctest.Wait()
		if w := get(t, p, "/events"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "5" ||
			!strings.HasPrefix(w.Body.String(), "the limit of 32 event clients is reached: try again in 5 s") {
			t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
		}
		disconnect()
		synctest.Wait()
		if e, ok := <-follow(t, ctx, p, "/events"); !ok || e.T == "" {
			t.Error("there is no space after one has disconnected")
		}
	})
}

// TestFailures checks that the page contains the most recent failures, escaped, and the command that explains
// each of them.
func TestFailures(t *testing.T) {
	s := state.Status{Version: "v1"}
	for i := range 30 {
		s.Failures = append(s.Failures, state.Failure{
			Peer: new(7), Operation: state.OperationSend, State: "WAIT_CLEAR", Reason: fmt.Sprintf("<b>reason %d", i),
			Count: 1, Record: "/spool/one.pcapng.gz",
		})
	}
	for n, want := range map[int][]string{
		0: {"No operation has failed."},
		30: {"send to rank 7, WAIT_CLEAR: &lt;b&gt;reason 19 ", "<code>zrlctl analyze /spool/one.pcapng.gz</code>",
			"Showing 20 of 30 kinds of failures."},
	} {
		shown := s
		shown.Failures = s.Failures[:n]
		w := get(t, statuspage.New(func() state.Status { return shown }, statuspage.Options{}), "/")
		for _, text := range want {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("with %d failures the page has no %q", n, text)
			}
		}
	}
}

// TestEqualFailures checks that equal failures are folded. The page shows their number, the last one and the
// first one; the others are shown on demand.
func TestEqualFailures(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	s := state.Status{Version: "v1"}
	for i := range 60 { // newest first; every third one differs
		f := state.Failure{Time: noon.Add(time.Duration(-i) * time.Minute), Rank: 2, Peer: new(7),
			Operation: state.OperationSend, Reason: "timed out", Count: 1}
		switch {
		case i%3 == 1:
			f.Reason = "refused"
		case i == 3:
			f.Count, f.Record = 5, "/spool/three.pcapng.gz"
		}
		s.Failures = append(s.Failures, f)
	}
	body := get(t, statuspage.New(func() state.Status { return s }, statuspage.Options{}), "/").Body.String()
	if n := strings.Count(body, `<li data-key=`); n != 2 {
		t.Errorf("%d rows of failures, want 2", n)
	}
	expect(t, body, "12:00:00</time>",
		"send to rank 7: timed out <small>44 times, the first at 4\u00a0May&nbsp;11:01:00</small>",
		"<details><summary>Earlier</summary>",
		"11:57:00</time> <small>5 times <code>zrlctl analyze /spool/three.pcapng.gz</code>",
		"and 19 more in", "send to rank 7: refused <small>20 times, the first at 4\u00a0May&nbsp;11:02:00</small>")
}
