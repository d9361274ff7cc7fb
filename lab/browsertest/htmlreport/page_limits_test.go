package htmlreport_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/reporttest"
	"github.com/zrlmpi/zrlmpid/lab/browsertest"
)

func TestPageOfNothing(t *testing.T) {
	ctx := browsertest.Start(t)
	noSteps := reporttest.TroubledReport()
	for i := range noSteps.Messages {
		noSteps.Messages[i].Steps = nil
	}
	for name, r := range map[string]*capture.Report{
		"empty":       {},
		"no steps":    noSteps,
		"one message": reporttest.Traffic{Ranks: 2, Messages: 1}.Report(),
		"to itself": {Start: reporttest.RecordedAt,
			Messages: []capture.Message{{ID: 1, Src: 3, Dst: 3,
				Steps: []capture.Step{{Packet: 1, Packets: 1, Time: reporttest.RecordedAt, End: reporttest.RecordedAt,
					Type: "SEND_REQUEST", FromSender: true}}}}},
		"finding only": {Start: reporttest.RecordedAt,
			Findings: []capture.Finding{{Kind: "new_kind", Text: "text", Packets: []int64{5}, Messages: []int64{77},
				Time: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, ctx, r, browsertest.Desktop)
			browsertest.Eval[bool](p.Tab,
				`(document.querySelector('.finding')?.click(), zrlmpiReport.zoom(0.1), zrlmpiReport.zoom(100), document.querySelector('#compress').click(), true)`)
			p.frame()
			p.CheckNoProblems()
		})
	}
}

func TestPageShowsTextAsText(t *testing.T) {
	r := reporttest.TroubledReport()
	r.Source, r.Summary.Truncated = strings.Join(reporttest.HostileTexts, " "), strings.Join(reporttest.HostileTexts, " ")
	for i := range r.Findings {
		text := reporttest.HostileTexts[i%len(reporttest.HostileTexts)]
		r.Findings[i].Text, r.Findings[i].Kind = text, capture.FindingKind(text)
	}
	for i := range r.Messages {
		text := reporttest.HostileTexts[i%len(reporttest.HostileTexts)]
		r.Messages[i].Call, r.Messages[i].Verdict, r.Messages[i].Steps[0].Type = text, text, text
	}
	p := open(t, browsertest.Start(t), r, browsertest.Desktop)
	for i := range len(r.Findings) {
		browsertest.Eval[bool](p.Tab, fmt.Sprintf(`(zrlmpiReport.select(%d), true)`, i))
		p.frame()
	}
	for i := range reporttest.HostileTexts {
		browsertest.Eval[bool](p.Tab, fmt.Sprintf(`(zrlmpiReport.selectMessage(%d), true)`, i))
		p.frame()
		x, y := p.place(r.Messages[i].Steps[0].Packet)
		p.mouse(input.DispatchMouseEventTypeMouseMoved, ladderCanvas, x, y, nil)
	}
	if got := browsertest.Eval[int](p.Tab,
		`document.querySelectorAll('img, iframe, body script:not(#data)').length`); got != 1 {
		t.Errorf("the page has %d elements that it should not have", got-1)
	}
	texts := browsertest.Eval[[]string](p.Tab,
		`[...document.querySelectorAll('.finding .text')].map((e) => e.textContent)`)
	for i, f := range r.Findings {
		if want := string([]rune(f.Text)); texts[i] != want {
			t.Errorf("%q is shown as %q", want, texts[i])
		}
	}
	p.CheckNoProblems()
}

func TestPolicyStopsForeignScripts(t *testing.T) {
	p := open(t, browsertest.Start(t), reporttest.TroubledReport(), browsertest.Desktop)
	browsertest.Eval[bool](p.Tab,
		`(() => { const s = document.createElement('script'); s.textContent = 'window.foreign = true'; document.body.append(s); return true; })()`)
	if browsertest.Eval[bool](p.Tab, `window.foreign === true`) {
		t.Error("a script that is not the page's ran")
	}
}

func TestPageOnPhoneAndInTheDark(t *testing.T) {
	ctx := browsertest.Start(t)
	backgrounds := map[bool]string{}
	for _, s := range []browsertest.Screen{
		{Width: 375, Height: 800}, {Width: 375, Height: 800, Dark: true}, {Width: 320, Height: 640},
		{Width: 1280, Height: 900, Dark: true}, {Width: 1920, Height: 1080},
	} {
		p := open(t, ctx, reporttest.TroubledReport(), s)
		browsertest.Eval[bool](p.Tab, `(zrlmpiReport.select(0), true)`)
		p.frame()
		if got := browsertest.Eval[int64](p.Tab, `document.documentElement.scrollWidth`); got > s.Width {
			t.Errorf("at a width of %d the page is %d wide", s.Width, got)
		}
		if n := p.colours(ladderCanvas); n < 3 {
			t.Errorf("%+v: nothing is drawn", s)
		}
		backgrounds[s.Dark] = browsertest.Eval[string](p.Tab, `getComputedStyle(document.body).backgroundColor`)
		p.CheckNoProblems()
	}
	if backgrounds[true] == backgrounds[false] {
		t.Errorf("light and dark are both %s", backgrounds[true])
	}
	// The colours change while the page is open.
	p := open(t, ctx, reporttest.TroubledReport(), browsertest.Desktop)
	const corner = `[...document.querySelector('#ladder-canvas').getContext('2d').getImageData(0, 0, 900, 300).data].reduce((sum, x) => sum + x, 0)`
	before := browsertest.Eval[float64](p.Tab, corner)
	browsertest.Call(p.Tab, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: "dark"}}})
	p.frame()
	if browsertest.Eval[float64](p.Tab, corner) == before {
		t.Error("the diagram keeps its colours when the screen turns dark")
	}
}

// TestLargePage checks that the page stays within bounds in which it is usable. The bounds are far above the measured
// values, since other tests may run on the same processors.
func TestLargePage(t *testing.T) {
	ctx := browsertest.Start(t)
	const messages = 100_000
	p := open(t, ctx, reporttest.Traffic{Ranks: 12, Messages: messages, LossEvery: 400, AllToAll: true}.Report(),
		browsertest.Desktop)
	ready := browsertest.Eval[float64](p.Tab, `zrlmpiReport.ready`)
	p.click("#fit", 5, 5)
	v := p.ladder()
	if v.Mode != "density" {
		t.Errorf("%d messages are drawn as %s", messages, v.Mode)
	}
	if n := browsertest.Eval[int](p.Tab, `document.querySelectorAll('*').length`); n > 5000 {
		t.Errorf("the page has %d elements", n)
	}
	frames := browsertest.Eval[[]float64](p.Tab, `(async () => {
		const out = [], next = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		for (let i = 0; i < 40; i++) { zrlmpiReport.zoom(0.75); await next(); out.push(zrlmpiReport.ladder.lastFrame); }
		return out;
	})()`)
	slices.Sort(frames)
	if v := p.ladder(); v.Mode != "arrows" {
		t.Errorf("zoomed in, the diagram is %s", v.Mode)
	}
	sorting := browsertest.Eval[float64](p.Tab,
		`(() => { const t = performance.now(); document.querySelector('#message-table thead th:nth-child(5) button').click(); return performance.now() - t; })()`)
	t.Logf("%d messages: ready after %.0f ms; a frame takes %.1f ms (median), %.1f ms (worst); sorting the "+
		"table %.0f ms",
		messages, ready, frames[len(frames)/2], frames[len(frames)-1], sorting)
	if ready > 10_000 {
		t.Errorf("the page is ready after %.0f ms", ready)
	}
	if median := frames[len(frames)/2]; median > 250 {
		t.Errorf("a frame takes %.0f ms", median)
	}
	p.click(".finding", 20, 10)
	if v := p.ladder(); v.Mode != "arrows" {
		t.Errorf("a finding is shown as %s", v.Mode)
	}
	p.CheckNoProblems()
}
