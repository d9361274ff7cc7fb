package htmlreport_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/htmlreport"
	"github.com/zrlmpi/zrlmpid/lab/browsertest"
)

// tab is an open page with a report.
type tab struct{ *browsertest.Tab }

// open writes a report to a file and opens it in a tab.
func open(t *testing.T, ctx context.Context, r *capture.Report, s browsertest.Screen) *tab {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.html")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := htmlreport.Write(file, r); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s.ReducedMotion = true
	p := &tab{browsertest.Open(t, ctx, "file:", "file://"+name, s)}
	browsertest.Run(p.Tab, chromedp.Poll[bool](`window.zrlmpiReport !== undefined && window.zrlmpiReport.ladder.frames > 0`, chromedp.WithPollingTimeout(time.Minute)))
	return p
}

// frame waits until all pending changes have been drawn.
func (p *tab) frame() {
	p.T.Helper()
	browsertest.Eval[bool](p.Tab,
		`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// ladderView is the state of the diagram, as the page reports it. Times are in nanoseconds.
type ladderView struct {
	From, To              float64
	Mode                  string
	Frames                int
	LastFrame, WorstFrame float64
}

func (p *tab) ladder() ladderView {
	p.T.Helper()
	p.frame()
	return browsertest.Eval[ladderView](p.Tab, `zrlmpiReport.ladder`)
}
