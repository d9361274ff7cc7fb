package htmlreport_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"

	"github.com/zrlmpi/zrlmpid/capture"
)

func TestPageOfNothing(t *testing.T) {
	ctx := browser(t)
	noSteps := troubled()
	for i := range noSteps.Messages {
		noSteps.Messages[i].Steps = nil
	}
	for name, r := range map[string]*capture.Report{
		"empty":        {},
		"no steps":     noSteps,
		"one message":  traffic{ranks: 2, messages: 1}.report(),
		"to itself":    {Start: recordedAt, Messages: []capture.Message{{ID: 1, Src: 3, Dst: 3, Steps: []capture.Step{{Packet: 1, Packets: 1, Time: recordedAt, End: recordedAt, Type: "SEND_REQUEST", FromSender: true}}}}},
		"finding only": {Start: recordedAt, Findings: []capture.Finding{{Kind: "new_kind", Text: "text", Packets: []int64{5}, Messages: []int64{77}, Time: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, ctx, r, desktop)
			eval[bool](p, `(document.querySelector('.finding')?.click(), zrlmpiReport.zoom(0.1), zrlmpiReport.zoom(100), document.querySelector('#compress').click(), true)`)
			p.frame()
			p.quiet()
		})
	}
}

func TestPageShowsTextAsText(t *testing.T) {
	r := troubled()
	r.Source, r.Summary.Truncated = strings.Join(hostile, " "), strings.Join(hostile, " ")
	for i := range r.Findings {
		text := hostile[i%len(hostile)]
		r.Findings[i].Text, r.Findings[i].Kind = text, capture.Kind(text)
	}
	for i := range r.Messages {
		text := hostile[i%len(hostile)]
		r.Messages[i].Call, r.Messages[i].Verdict, r.Messages[i].Steps[0].Type = text, text, text
	}
	p := open(t, browser(t), r, desktop)
	for i := range len(r.Findings) {
		eval[bool](p, fmt.Sprintf(`(zrlmpiReport.select(%d), true)`, i))
		p.frame()
	}
	for i := range hostile {
		eval[bool](p, fmt.Sprintf(`(zrlmpiReport.selectMessage(%d), true)`, i))
		p.frame()
		x, y := p.place(r.Messages[i].Steps[0].Packet)
		p.mouse(input.DispatchMouseEventTypeMouseMoved, ladderCanvas, x, y, nil)
	}
	if got := eval[int](p, `document.querySelectorAll('img, iframe, body script:not(#data)').length`); got != 1 {
		t.Errorf("the page has %d elements that it should not have", got-1)
	}
	texts := eval[[]string](p, `[...document.querySelectorAll('.finding .text')].map((e) => e.textContent)`)
	for i, f := range r.Findings {
		if want := string([]rune(f.Text)); texts[i] != want {
			t.Errorf("%q is shown as %q", want, texts[i])
		}
	}
	p.quiet()
}

func TestPolicyStopsForeignScripts(t *testing.T) {
	p := open(t, browser(t), troubled(), desktop)
	eval[bool](p, `(() => { const s = document.createElement('script'); s.textContent = 'window.foreign = true'; document.body.append(s); return true; })()`)
	if eval[bool](p, `window.foreign === true`) {
		t.Error("a script that is not the page's ran")
	}
}

func TestPageOnPhoneAndInTheDark(t *testing.T) {
	ctx := browser(t)
	backgrounds := map[bool]string{}
	for _, s := range []screen{{375, 800, false}, {375, 800, true}, {320, 640, false}, {1280, 900, true}, {1920, 1080, false}} {
		p := open(t, ctx, troubled(), s)
		eval[bool](p, `(zrlmpiReport.select(0), true)`)
		p.frame()
		if got := eval[int64](p, `document.documentElement.scrollWidth`); got > s.width {
			t.Errorf("at a width of %d the page is %d wide", s.width, got)
		}
		if n := p.colours(ladderCanvas); n < 3 {
			t.Errorf("%+v: nothing is drawn", s)
		}
		backgrounds[s.dark] = eval[string](p, `getComputedStyle(document.body).backgroundColor`)
		p.quiet()
	}
	if backgrounds[true] == backgrounds[false] {
		t.Errorf("light and dark are both %s", backgrounds[true])
	}
	// The colours follow while the page is open.
	p := open(t, ctx, troubled(), desktop)
	const corner = `[...document.querySelector('#ladder-canvas').getContext('2d').getImageData(0, 0, 900, 300).data].reduce((sum, x) => sum + x, 0)`
	before := eval[float64](p, corner)
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	p.frame()
	if eval[float64](p, corner) == before {
		t.Error("the diagram keeps its colours when the screen turns dark")
	}
}

// TestLargePage holds the page to what makes it usable. The bounds are far from
// what is measured, since other tests may run on the same processors.
func TestLargePage(t *testing.T) {
	ctx := browser(t)
	const messages = 100_000
	p := open(t, ctx, traffic{ranks: 12, messages: messages, lossEvery: 400, allToAll: true}.report(), desktop)
	ready := eval[float64](p, `zrlmpiReport.ready`)
	v := p.ladder()
	if v.Mode != "density" {
		t.Errorf("%d messages are drawn as %s", messages, v.Mode)
	}
	if n := eval[int](p, `document.querySelectorAll('*').length`); n > 5000 {
		t.Errorf("the page has %d elements", n)
	}
	frames := eval[[]float64](p, `(async () => {
		const out = [], next = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		for (let i = 0; i < 40; i++) { zrlmpiReport.zoom(0.75); await next(); out.push(zrlmpiReport.ladder.lastFrame); }
		return out;
	})()`)
	slices.Sort(frames)
	if v := p.ladder(); v.Mode != "arrows" {
		t.Errorf("zoomed in, the diagram is %s", v.Mode)
	}
	sorting := eval[float64](p, `(() => { const t = performance.now(); document.querySelector('#message-table thead th:nth-child(5) button').click(); return performance.now() - t; })()`)
	t.Logf("%d messages: ready after %.0f ms; a frame takes %.1f ms (median), %.1f ms (worst); sorting the table %.0f ms",
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
	p.quiet()
}
