package statuspage_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/chromedp/chromedp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/daemon/statuspage"
	"github.com/zrlmpi/zrlmpid/lab/browsertest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// startDaemon runs a daemon with two hosts, an echo and a sink stand-in, and a remote rank that does not run. It also
// serves the daemon's status page.
func startDaemon(t *testing.T) (*control.Client, *httptest.Server) {
	t.Helper()
	network := loopback.Network(t)
	var ranks []string
	for i, r := range []string{"run: host, link: {profile: extended}", "run: host, link: {profile: extended}",
		"run: standin", "run: standin, kernel: sink", "peer: cpu"} {
		ranks = append(ranks, fmt.Sprintf("address: %s%d, %s", network, i+1, r))
	}
	recent := statuspage.NewLog(20)
	d := daemontest.Start(t, daemon.Options{Log: zap.New(recent.Core(zapcore.WarnLevel))}, "", ranks...)
	return d.Client, serve(t, statuspage.New(d.Status, statuspage.Options{Host: "node7", Recent: recent.Recent}))
}

// serve serves a page, and takes samples for it, until the test ends.
func serve(t *testing.T, p *statuspage.Page) *httptest.Server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		<-done
	})
	return server
}

// hang posts a receive that no message matches. The receive is pending until the test ends.
func hang(t *testing.T, client *control.Client, from, to int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, _ = client.Recv(ctx, control.RecvRequest{From: from, To: to, Words: 16, AnyDatatype: true, Timeout: 0})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// age is an expression that returns how long a wait has lasted according to the page, in seconds.
const age = `(() => { const e = document.querySelector('[data-key="0>3/receive"] .age'); return e ? parseFloat(e.textContent) : 0; })()`

// TestHang checks that the open page shows for which rank a hanging rank waits, and for how long. It is updated every
// second.
func TestHang(t *testing.T) {
	ctx := browsertest.Start(t)
	client, server := startDaemon(t)
	p := open(t, ctx, server, "/", browsertest.Desktop)
	p.until(`document.body.dataset.state === 'live'`)
	if text := browsertest.Eval[string](p.Tab,
		`document.querySelector('#verdict').innerText`); text != "No rank is waiting" {
		t.Errorf("before anything happens: %q", text)
	}
	loaded := browsertest.Eval[float64](p.Tab, `performance.timeOrigin`)
	hang(t, client, 3, 0)
	p.until(age + ` > 1`)
	first := browsertest.Eval[float64](p.Tab, age)
	p.until(fmt.Sprintf(age+` > %v + 1.5`, first))
	for selector, want := range map[string]string{
		`[data-key="0>3/receive"] .what`:   "rank 0 waits for SEND_REQUEST from rank 3",
		`[data-key="0>3/receive"] .detail`: "receive",
		`#verdict`:                         "1 wait, longest ",
		`#announcement`: "1 wait. Longest: rank 0 waits for SEND_REQUEST from rank 3; no packet " +
			"was ever received from ",
		`#peers [data-key="0>3"] .state`: "waiting ",
		`#ranks [data-key="2"]`:          "echo",
		`title`:                          "(1) zrlmpid node7",
	} {
		if got := browsertest.Eval[string](p.Tab,
			fmt.Sprintf(`document.querySelector(%q).textContent`, selector)); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
	if n := browsertest.Eval[int](p.Tab, `document.querySelectorAll('#waits > li').length`); n != 1 {
		t.Errorf("%d waits", n)
	}
	if browsertest.Eval[float64](p.Tab, `performance.timeOrigin`) != loaded {
		t.Error("the page was loaded again")
	}
	p.CheckNoProblems()
}

// TestChart checks that the chart shows the value under the pointer, also after the page was updated, and hides it when
// the pointer leaves.
func TestChart(t *testing.T) {
	ctx := browsertest.Start(t)
	_, server := startDaemon(t)
	p := open(t, ctx, server, "/", browsertest.Desktop)
	p.until(`document.querySelector('#live-chart .chart')?.dataset.points.split(';').length > 2`)
	const at = `(() => { const b = document.querySelector('#live-chart .chart').getBoundingClientRect(); return {clientX: b.right - 2, clientY: b.top + 9, bubbles: true}; })()`
	browsertest.Eval[bool](p.Tab,
		`document.querySelector('#live-chart').dispatchEvent(new PointerEvent('pointermove', `+at+`))`)
	p.until(`/^0 at \d+:\d\d:\d\d/.test(document.querySelector('#live-chart .tip')?.textContent)`)
	before := browsertest.Eval[string](p.Tab, `document.querySelector('#live-chart .tip').textContent`)
	p.until(`document.querySelector('#live-chart .tip') && document.querySelector('#live-chart .tip').textContent !== ` +
		fmt.Sprintf("%q", before))
	browsertest.Eval[bool](p.Tab,
		`document.querySelector('#live-chart').dispatchEvent(new PointerEvent('pointerleave'))`)
	p.until(`!document.querySelector('#live-chart .tip')`)
	if text := browsertest.Eval[string](p.Tab,
		`document.querySelector('#live-chart .x').innerText`); !strings.Contains(text, "−1 min") ||
		!strings.HasSuffix(text, "now") {
		t.Errorf("the axis: %q", text)
	}
	p.CheckNoProblems()
}

// TestDeadlock checks that the page shows a possible deadlock of two hosts that receive from each other.
func TestDeadlock(t *testing.T) {
	ctx := browsertest.Start(t)
	client, server := startDaemon(t)
	hang(t, client, 1, 0)
	hang(t, client, 0, 1)
	p := open(t, ctx, server, "/", browsertest.Desktop)
	p.until(`document.querySelectorAll('#cycles li').length === 1 && document.querySelector('#verdict-box').className === 'verdict bad'`)
	for selector, want := range map[string]string{
		`#verdict`: "Possible deadlock: cycle ", `#cycles li`: "possible deadlock", `#waits li`: "possible deadlock",
	} {
		if got := browsertest.Eval[string](p.Tab,
			fmt.Sprintf(`document.querySelector(%q).textContent`, selector)); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
	p.CheckNoProblems()
}

// TestTooManyViewers checks that a page reports that there are too many viewers, and that it goes live when another
// viewer leaves.
func TestTooManyViewers(t *testing.T) {
	ctx := browsertest.Start(t)
	source := &daemontest.StatusSource{Value: daemontest.ClusterStatus(3, 100, true)}
	server := serve(t, statuspage.New(source.Status, statuspage.Options{Host: "node7"}))
	var last *http.Response
	for range 32 {
		resp, err := http.Get(server.URL + "/events")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		last = resp
	}
	p := open(t, ctx, server, "/", browsertest.Desktop)
	p.until(`document.body.dataset.state === 'full'`)
	if text := browsertest.Eval[string](p.Tab,
		`document.querySelector('#live').innerText`); text != "Too many viewers, not live since" {
		t.Errorf("the page says %q", text)
	}
	last.Body.Close()
	p.until(`document.body.dataset.state === 'live'`)
}

// TestWithoutScript checks that the page is complete without JavaScript, and that it reloads itself.
func TestWithoutScript(t *testing.T) {
	ctx := browsertest.Start(t)
	client, server := startDaemon(t)
	if _, err := client.Send(t.Context(), control.SendRequest{To: 2, Datatype: protocol.Int},
		strings.NewReader("12345678")); err != nil {
		t.Fatal(err)
	}
	hang(t, client, 3, 0)
	off := browsertest.Desktop
	off.NoScript = true
	p := open(t, ctx, server, "/", off)
	// The page reloads every few seconds, and then shows the wait.
	p.until(`document.querySelector('#waits')?.innerText.includes('rank 0 waits for SEND_REQUEST from rank 3') === true`)
	for selector, want := range map[string]string{`#verdict`: "wait", `#peers [data-key="0>2"]`: "fpga, cloudfpga, udp",
		`#pause[hidden]`: "Pause"} {
		if got := browsertest.Eval[string](p.Tab,
			fmt.Sprintf(`document.querySelector(%q)?.textContent || ''`, selector)); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
	// The filter is an ordinary form.
	p.Do(chromedp.SetValue("#q", "nothing"), chromedp.Click("#apply"))
	p.until(`location.search.includes('q=nothing') && document.querySelector('#waits-more')?.innerText.includes('match the filter') === true`)
	p.CheckNoProblems()
}
