package statuspage_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser starts Chromium, with a directory of its own. Without Chromium these tests
// are skipped, but not where everything must be tested.
func browser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short leaves the tests with a browser out")
	}
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		const text = "there is no Chromium here, so that nobody knows whether the page works; install it with: apt-get install chromium"
		if os.Getenv("CI") == "true" {
			t.Fatal(text)
		}
		t.Skip("SKIPPED: " + text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// tab is an open page.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string
	requests []string
}

// screen is what the page is looked at on.
type screen struct {
	width, height  int64
	dark, noScript bool
}

var desktop = screen{width: 1280, height: 900}

// open opens a server's page.
func open(t *testing.T, ctx context.Context, server *httptest.Server, path string, s screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, url: server.URL}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	call(p, log.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: s.noScript})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	p.do(chromedp.EmulateViewport(s.width, s.height), chromedp.Navigate(server.URL+path))
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.problems = append(p.problems, "console: "+string(e.Type))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.problems = append(p.problems, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.check(chromedp.Do(p.ctx, actions...))
}

func run[T any](p *tab, action chromedp.Action[T]) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, action)
	p.check(err)
	return v
}

func call[P, R any](p *tab, command cdp.Command[P, R], params P) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, command, params)
	p.check(err)
}

func (p *tab) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%v; the page says %q", err, p.said())
	}
}

func (p *tab) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// eval evaluates an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// until waits for an expression to be true, also while the page is loaded anew.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience)))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "navigated") && !strings.Contains(err.Error(), "context") {
			p.t.Fatalf("%s: %v; the page says %q, and is: %s", expression, err, p.said(), eval[string](p, `document.body.innerText`))
		}
	}
}

// quiet checks that the page reported no errors, and loaded nothing from elsewhere.
func (p *tab) quiet() {
	p.t.Helper()
	if problems := p.said(); len(problems) > 0 {
		p.t.Errorf("the page complains: %q", problems)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, url := range p.requests {
		if !strings.HasPrefix(url, p.url) && !strings.HasPrefix(url, "data:") {
			p.t.Errorf("the page loads %s", url)
		}
	}
}
