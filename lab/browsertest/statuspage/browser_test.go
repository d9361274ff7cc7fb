package statuspage_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/zrlmpi/zrlmpid/lab/browsertest"
)

// testTimeout limits how long a test waits.
const testTimeout = 20 * time.Second

// tab is an open page.
type tab struct{ *browsertest.Tab }

// open opens a page of a server in a tab.
func open(t *testing.T, ctx context.Context, server *httptest.Server, path string, s browsertest.Screen) *tab {
	t.Helper()
	return &tab{browsertest.Open(t, ctx, server.URL, server.URL+path, s)}
}

// until waits until an expression is true. The page may be reloaded in the meantime.
func (p *tab) until(expression string) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.Ctx, testTimeout)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(testTimeout)))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "navigated") &&
			!strings.Contains(err.Error(), "context") {
			p.T.Fatalf("%s: %v; the page says %q, and is: %s", expression, err, p.Problems(),
				browsertest.Eval[string](p.Tab, `document.body.innerText`))
		}
	}
}
