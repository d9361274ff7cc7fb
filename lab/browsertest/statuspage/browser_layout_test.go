package statuspage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/daemon/statuspage"
	"github.com/zrlmpi/zrlmpid/lab/browsertest"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// TestScreens checks that the page fits the width of any screen, whatever it shows, and that it uses the colours that
// the user prefers.
func TestScreens(t *testing.T) {
	ctx := browsertest.Start(t)
	m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(200, 4000, true)}
	daemontest.AddWait(&m.Value, 3, 133)
	p := m.Value.Ranks[0].Engine.Peers
	p[6].Refuses = strings.Repeat("verylong", 40)
	p[7].NetworkError = strings.Repeat("a long text with words ", 20)
	p[8].Dropped = state.DropCounts{state.DropSourceRank: 1 << 60, state.DropDuplicate: 5}
	p[9].Extended = &state.Extended{RoundTrip: 1e-3}
	m.Value.Config = strings.Repeat("/long", 60)
	m.Value.Ranks = append(m.Value.Ranks,
		state.Rank{RankInfo: state.RankInfo{Rank: 201, Role: state.RoleStandin, Kernel: strings.Repeat("exec", 30),
			KernelState: state.KernelFailed, KernelError: "exit status 1",
			Address: "[2001:db8:85a3:8d3:1319:8a2e:370:7348]:2718"}})
	server := serve(t, statuspage.New(m.Status, statuspage.Options{Host: strings.Repeat("host", 20)}))
	backgrounds := map[bool]string{}
	for _, s := range []browsertest.Screen{{Width: 320, Height: 700}, {Width: 375, Height: 800, Dark: true},
		{Width: 620, Height: 900}, {Width: 1001, Height: 900}, {Width: 1280, Height: 900},
		{Width: 1920, Height: 1080, Dark: true}} {
		p := open(t, ctx, server, "/", s)
		p.until(`document.body.dataset.state === 'live'`)
		if got := browsertest.Eval[int64](p.Tab, `document.documentElement.scrollWidth`); got > s.Width {
			t.Errorf("at a width of %d the page is %d wide", s.Width, got)
		}
		backgrounds[s.Dark] = browsertest.Eval[string](p.Tab, `getComputedStyle(document.body).backgroundColor`)
		p.CheckNoProblems()
	}
	if backgrounds[true] == backgrounds[false] {
		t.Errorf("light and dark are both %s", backgrounds[true])
	}
}

// TestFilterLive checks that the filter takes effect while the user types, and that it becomes part of the address.
func TestFilterLive(t *testing.T) {
	ctx := browsertest.Start(t)
	m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(1000, 4000, true)}
	p := open(t, ctx, serve(t, statuspage.New(m.Status, statuspage.Options{})), "/?sort=rank", browsertest.Desktop)
	p.until(`document.querySelectorAll('#peers tr').length === 60 && document.querySelector('#apply').hidden`)
	p.Do(chromedp.SendKeys("#q", "0>777"))
	p.until(`document.querySelectorAll('#peers tr').length === 1 && location.search === '?q=0%3E777&sort=rank'`)
	if got := browsertest.Eval[string](p.Tab, `document.querySelector('#peers tr').dataset.key`); got != "0>777" {
		t.Error(got)
	}
	// An update replaces only the content that changed.
	browsertest.Eval[bool](p.Tab,
		`(window.row = document.querySelector('#peers tr'), window.cell = row.children[2], true)`)
	m.Modify(func(s *state.Status) { *s = daemontest.ClusterStatus(1000, 4010, true) })
	p.until(`row.isConnected && cell.isConnected && row.textContent.includes('401\u202f000')`)
	browsertest.Eval[bool](p.Tab, `(document.querySelector('#pause').click(), true)`)
	p.until(`document.body.dataset.state === 'paused' && document.querySelector('#pause').getAttribute('aria-pressed') === 'true'`)
	p.CheckNoProblems()
}

// TestFoldedFailures checks that earlier failures that the user has unfolded stay unfolded and keep the focus when
// another failure is added.
func TestFoldedFailures(t *testing.T) {
	ctx := browsertest.Start(t)
	failures := func(n int) []state.Failure {
		return slices.Repeat([]state.Failure{{Rank: 2, Operation: state.OperationSend, Reason: "timed out", Count: 1}},
			n)
	}
	m := &daemontest.StatusSource{Value: daemontest.ClusterStatus(3, 4000, true)}
	m.Value.Failures = failures(3)
	p := open(t, ctx, serve(t, statuspage.New(m.Status, statuspage.Options{})), "/", browsertest.Desktop)
	p.until(`document.body.dataset.state === 'live' && document.querySelector('#failures').innerText.includes('3 times')`)
	browsertest.Eval[bool](p.Tab, `(document.querySelector('#failures summary').focus(), true)`)
	p.Do(chromedp.SendKeys("#failures summary", "\r"))
	p.until(`document.querySelector('#failures details').open`)
	m.Modify(func(s *state.Status) { s.Failures = failures(4) })
	p.until(`document.querySelector('#failures').innerText.includes('4 times')`)
	if !browsertest.Eval[bool](p.Tab,
		`document.querySelector('#failures details').open && document.activeElement.tagName === 'SUMMARY'`) {
		t.Error("another failure folds the unfolded ones")
	}
	if n := browsertest.Eval[int](p.Tab, `document.querySelectorAll('#failures details li').length`); n != 3 {
		t.Errorf("%d earlier failures", n)
	}
	p.CheckNoProblems()
}

// TestServerGoes checks that the page shows when it is no longer up to date.
func TestServerGoes(t *testing.T) {
	ctx := browsertest.Start(t)
	server := serve(t, statuspage.New((&daemontest.StatusSource{Value: daemontest.ClusterStatus(2, 10, true)}).Status,
		statuspage.Options{}))
	p := open(t, ctx, server, "/", browsertest.Desktop)
	p.until(`document.body.dataset.state === 'live'`)
	server.CloseClientConnections()
	server.Listener.Close()
	p.until(`document.body.dataset.state === 'lost' && document.querySelector('.live').innerText.startsWith('No response since')`)
}

// TestForeignScript checks that the content security policy blocks a foreign script.
func TestForeignScript(t *testing.T) {
	p := open(t, browsertest.Start(t),
		serve(t, statuspage.New((&daemontest.StatusSource{Value: daemontest.ClusterStatus(2, 10, true)}).Status,
			statuspage.Options{})), "/", browsertest.Desktop)
	p.until(`document.body.dataset.state === 'live'`)
	browsertest.Eval[bool](p.Tab,
		`(() => { const s = document.createElement('script'); s.textContent = 'window.foreign = true'; document.body.append(s); return true; })()`)
	if browsertest.Eval[bool](p.Tab, `window.foreign === true`) {
		t.Error("a script that is not the page's ran")
	}
	// Every control has a name, and every table has headings.
	for _, nameless := range []string{
		`[...document.querySelectorAll('input, select, button')].filter((e) => !e.labels?.length && !e.textContent.trim()).length`,
		`[...document.querySelectorAll('section')].filter((e) => !e.getAttribute('aria-label') && !document.getElementById(e.getAttribute('aria-labelledby'))).length`,
		`[...document.querySelectorAll('svg')].filter((e) => !e.getAttribute('aria-label')).length`,
	} {
		if n := browsertest.Eval[int](p.Tab, nameless); n != 0 {
			t.Errorf("%d without a name: %s", n, fmt.Sprintf("%.60s", nameless))
		}
	}
}
