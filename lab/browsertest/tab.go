// Package browsertest opens pages in Chromium, for the tests in the folders below it. It checks the content of a page,
// the errors that the page reports, and the addresses that the page loads. It must not load anything that a test did
// not ask for, and must not be part of a program.
package browsertest

import (
	"context"
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

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// Start starts Chromium with a temporary user directory. Chromium runs until the test ends. If Chromium is not
// installed, the test is skipped, or fails in an environment that must run all tests.
func Start(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: no tests with a browser under -short")
	}
	path := findChromium(t)
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

func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	needs.Missing(t, "the page", "Chromium is not installed (apt-get install chromium)")
	return ""
}

// Screen describes how a page is displayed: its size in pixels, and the preferences of the user.
type Screen struct {
	Width, Height                 int64
	Dark, ReducedMotion, NoScript bool
}

// Desktop is a common desktop screen.
var Desktop = Screen{Width: 1280, Height: 900}

// Tab is an open page. If an action fails, the test ends.
type Tab struct {
	T   *testing.T
	Ctx context.Context
	// allowedPrefix is the prefix of all addresses that the page may load.
	allowedPrefix string

	mu       sync.Mutex
	problems []string
	requests []string
}

// Open opens the page at url. The page may only load addresses with the prefix own.
func Open(t *testing.T, ctx context.Context, own, url string, screen Screen) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	tab := &Tab{T: t, Ctx: ctx, allowedPrefix: own}
	if err := chromedp.Listen(ctx, tab.listen); err != nil {
		t.Fatal(err)
	}
	scheme, motion := "light", "no-preference"
	if screen.Dark {
		scheme = "dark"
	}
	if screen.ReducedMotion {
		motion = "reduce"
	}
	Call(tab, log.Enable, cdp.Empty{})
	Call(tab, network.Enable, network.EnableParams{})
	Call(tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: screen.NoScript})
	Call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}})
	tab.Do(chromedp.EmulateViewport(screen.Width, screen.Height), chromedp.Navigate(url))
	return tab
}

func (p *Tab) listen(event any) {
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

// Do runs actions on the page.
func (p *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.T.Helper()
	p.Check(chromedp.Do(p.Ctx, actions...))
}

// Run runs an action on the page and returns its result.
func Run[T any](p *Tab, action chromedp.Action[T]) T {
	p.T.Helper()
	v, err := chromedp.Run(p.Ctx, action)
	p.Check(err)
	return v
}

// Call sends a command to the browser. If the command fails, the test ends.
func Call[P, R any](p *Tab, command cdp.Command[P, R], params P) {
	p.T.Helper()
	_, err := chromedp.Call(p.Ctx, command, params)
	p.Check(err)
}

// Eval evaluates an expression in the page and returns its value. If the value is a promise, Eval waits for it.
func Eval[T any](p *Tab, expression string) T {
	p.T.Helper()
	return Run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Check ends the test if err is not nil.
func (p *Tab) Check(err error) {
	p.T.Helper()
	if err != nil {
		p.T.Fatalf("%v; the page says %q", err, p.Problems())
	}
}

// Problems returns the errors and warnings that the page has reported.
func (p *Tab) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// CheckNoProblems checks that the page has reported no error and has loaded nothing from a foreign address.
func (p *Tab) CheckNoProblems() {
	p.T.Helper()
	if problems := p.Problems(); len(problems) > 0 {
		p.T.Errorf("the page reports errors: %q", problems)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, url := range p.requests {
		if !strings.HasPrefix(url, p.allowedPrefix) && !strings.HasPrefix(url, "data:") {
			p.T.Errorf("the page loads %s", url)
		}
	}
}
