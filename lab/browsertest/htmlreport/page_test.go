package htmlreport_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/reporttest"
	"github.com/zrlmpi/zrlmpid/lab/browsertest"
)

const ladderCanvas, tooltip = "#ladder-canvas", "#tooltip"

// changed reports whether the diagram shows a different time span than before.
func changed(a, b ladderView) bool { return a.From != b.From || a.To != b.To }

func span(v ladderView) float64 { return v.To - v.From }

func TestPage(t *testing.T) {
	ctx := browsertest.Start(t)
	r := reporttest.TroubledReport()
	find := func(kind capture.FindingKind) (int, capture.Finding) {
		i := slices.IndexFunc(r.Findings, func(f capture.Finding) bool { return f.Kind == kind })
		return i, r.Findings[i]
	}

	t.Run("draws", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		for _, canvas := range []string{ladderCanvas, "#minimap", "#legend canvas", "#phase-rows canvas",
			"#phase-rows canvas.time"} {
			if n := p.colours(canvas); n < 3 {
				t.Errorf("%s has %d colours: nothing is drawn", canvas, n)
			}
		}
		if v := p.ladder(); v.Mode != "arrows" {
			t.Errorf("a few packets are drawn as %s", v.Mode)
		}
		for selector, want := range map[string]string{"#verdict": "14 findings", "h1": "trouble in rank 2.pcap",
			"#pair-table": "0 → 1", "#message-table": "CLEAR_TO_SEND lost"} {
			if selector == "#message-table" {
				browsertest.Eval[bool](p.Tab,
					`(() => { const s = document.querySelector('#search'); s.value = 'clear lost'; s.dispatchEvent(new Event('input')); return true; })()`)
				browsertest.Run(p.Tab, chromedp.Poll[bool](`document.querySelector('#found').innerText.includes(' of ')`))
			}
			if got := p.text(selector); !strings.Contains(got, want) {
				t.Errorf("%s shows %q, want %q in it", selector, got, want)
			}
		}
		p.CheckNoProblems()
	})

	t.Run("retransmissions", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		var messages, packets int
		for i := range r.Messages {
			packets += r.Messages[i].Retransmissions
			messages += min(r.Messages[i].Retransmissions, 1)
		}
		browsertest.Eval[bool](p.Tab,
			`(() => { const s = document.querySelector('#which'); s.value = 'retransmitted'; s.dispatchEvent(new Event('change')); return true; })()`)
		browsertest.Run(p.Tab, chromedp.Poll[bool](`document.querySelector('#found').innerText.includes(' of ')`))
		if got, want := p.text("#found"), fmt.Sprintf("%d of ", messages); !strings.HasPrefix(got, want) {
			t.Errorf("messages with retransmissions: %q, want %q", got, want)
		}
		total := browsertest.Eval[string](p.Tab,
			`document.querySelector('#pair-table tbody tr:not(.space)').cells[3].innerText`)
		if total != fmt.Sprint(packets) {
			t.Errorf("the pair table shows %q retransmissions, want %d", total, packets)
		}
		p.CheckNoProblems()
	})

	t.Run("opens at a serious finding", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		i := browsertest.Eval[int](p.Tab, `Number(document.activeElement.dataset.finding ?? -1)`)
		if i < 0 || browsertest.Eval[bool](p.Tab, `!document.activeElement.matches('.finding.on.level-0')`) {
			t.Fatalf("finding %d is selected and has the focus", i)
		}
		if v, at := p.ladder(), r.Findings[i].Time*1e9; at < v.From || at > v.To {
			t.Errorf("the diagram shows %+v, and the finding is at %.0f", v, at)
		}
		// Each packet of a finding links to the row of the packet.
		i, f := find(capture.DuplicatePacket)
		link := fmt.Sprintf("#finding-%d a[href='#packet-%d']", i+1, f.Packets[0])
		browsertest.Eval[bool](p.Tab, fmt.Sprintf(`(document.querySelector("%s").click(), true)`, link))
		browsertest.Run(p.Tab, chromedp.Poll[bool](`document.querySelector('.steps tr.on') !== null`))
		if got := p.text(".steps tr.on"); !strings.HasPrefix(got, fmt.Sprint(f.Packets[0], "\t")) ||
			!strings.Contains(got,
				"delivered twice") {
			t.Errorf("the link to packet %d shows the row %q", f.Packets[0], got)
		}
		p.CheckNoProblems()
	})

	t.Run("finding to diagram and back", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		before := p.ladder()
		i, f := find(capture.DuplicatePacket)
		p.click(fmt.Sprintf(".finding[data-finding='%d']", i), 20, 10)
		v := p.ladder()
		if at := f.Time * 1e9; !changed(before, v) || at < v.From || at > v.To {
			t.Errorf("the diagram shows %+v, and the finding is at %.0f", v, at)
		}
		if got := p.text("#inspector-title"); !strings.Contains(got, fmt.Sprintf("Message %d:", f.Messages[0])) {
			t.Errorf("the inspector shows %q", got)
		}
		if got := p.text("#inspector-body"); !strings.Contains(got, "delivered twice") {
			t.Errorf("the inspector says %q", got)
		}
		// Selecting another message deselects the finding. The copy selects it again.
		p.press("Escape")
		browsertest.Eval[bool](p.Tab, `(document.querySelector('#inspector-close').click(), true)`)
		p.frame()
		if got := browsertest.Eval[int](p.Tab, `document.querySelectorAll('.finding.on').length`); got != 0 {
			t.Fatalf("%d findings are marked after deselecting", got)
		}
		x, y := p.place(f.Packets[0])
		p.click(ladderCanvas, x, y)
		if got := p.text(".finding.on"); !strings.Contains(got, "Duplicate packet") {
			t.Errorf("a click on the packet marks the finding %q", got)
		}
		p.CheckNoProblems()
	})

	t.Run("deadlock", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		i, _ := find(capture.Deadlock)
		browsertest.Eval[bool](p.Tab, fmt.Sprintf(`(zrlmpiReport.select(%d), true)`, i))
		p.frame()
		if got := p.text("#inspector-body"); !strings.Contains(got,
			"rank 2 has waited 4.8s for CLEAR_TO_SEND from rank 3") {
			t.Errorf("the inspector says %q", got)
		}
		p.CheckNoProblems()
	})

	t.Run("tooltip", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		i, f := find(capture.DuplicatePacket)
		browsertest.Eval[bool](p.Tab, fmt.Sprintf(`(zrlmpiReport.select(%d), true)`, i))
		p.frame()
		x, y := p.place(f.Packets[0])
		p.mouse(input.DispatchMouseEventTypeMouseMoved, ladderCanvas, x, y, nil)
		got := p.text(tooltip)
		for _, want := range []string{"ACK, rank 2 → rank 0", fmt.Sprint("Packet\n", f.Packets[0]), "delivered twice",
			"SEND_", "Request → clear"} {
			if !strings.Contains(got, want) {
				t.Errorf("the tooltip lacks %q: %q", want, got)
			}
		}
		p.mouse(input.DispatchMouseEventTypeMouseMoved, "body", 5, 5, nil)
		if got := p.text(tooltip); got != "" {
			t.Errorf("the tooltip stays: %q", got)
		}
		p.CheckNoProblems()
	})

	t.Run("zoom and pan", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		p.click("#fit", 5, 5)
		whole := p.ladder()
		in := whole
		for tries := 0; span(in) >= span(whole) && tries < 10; tries++ { // the browser loses about one wheel event in ten
			p.mouse(input.DispatchMouseEventTypeMouseWheel, ladderCanvas, 300, 300,
				func(e *input.DispatchMouseEventParams) {
					e.DeltaX, e.DeltaY = 0.01, -400 // a zero would be omitted, and the event then rejected
				})
			p.frame()
			in = p.ladder()
		}
		if span(in) >= span(whole) {
			t.Errorf("the wheel zooms from %+v to %+v", whole, in)
		}
		p.mouse(input.DispatchMouseEventTypeMousePressed, ladderCanvas, 300, 400, left)
		p.mouse(input.DispatchMouseEventTypeMouseMoved, ladderCanvas, 300, 300, left)
		p.mouse(input.DispatchMouseEventTypeMouseReleased, ladderCanvas, 300, 300, left)
		if dragged := p.ladder(); dragged.From <= in.From {
			t.Errorf("dragging up shows %+v after %+v", dragged, in)
		}
		p.click("#fit", 5, 5)
		if v := p.ladder(); changed(v, whole) {
			t.Errorf("All shows %+v, want %+v", v, whole)
		}
		p.click("#zoom-in", 5, 5)
		button := p.ladder()
		if !changed(button, whole) {
			t.Error("the button does not zoom")
		}
		browsertest.Eval[bool](p.Tab, `(document.querySelector('#ladder-canvas').focus(), true)`)
		last := button
		for _, key := range []string{"+", "PageDown", "PageUp", "Home", "End", "-", "0"} {
			p.press(key)
			v := p.ladder()
			if !changed(v, last) {
				t.Errorf("%s changes nothing", key)
			}
			last = v
		}
		p.press("ArrowDown")
		p.frame()
		if got := p.text(tooltip); !strings.Contains(got, "SEND_REQUEST, rank 0 → rank 1") {
			t.Errorf("the first packet is %q", got)
		}
		p.press("Enter")
		if got := p.text("#inspector-title"); !strings.HasPrefix(got, "Message 1:") {
			t.Errorf("Enter selects %q", got)
		}
		p.press("Escape")
		p.CheckNoProblems()
	})

	t.Run("axis without compression", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		share := func() float64 {
			_, first := p.place(r.Messages[0].Steps[0].Packet)
			_, last := p.place(r.Messages[11].Steps[0].Packet)
			return last - first
		}
		compressed := share()
		p.click("#compress", 5, 5)
		if linear := share(); linear > compressed/10 {
			t.Errorf("a burst takes %.1f pixels of the linear axis, and %.1f of the compressed one", linear, compressed)
		}
		p.CheckNoProblems()
	})

	t.Run("pairs and tables", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		browsertest.Eval[bool](p.Tab,
			`(() => { const s = document.querySelector('#pair'); s.value = '1>2'; s.dispatchEvent(new Event('change')); return true; })()`)
		p.frame()
		ranks := browsertest.Eval[[]string](p.Tab,
			`[...document.querySelectorAll('#message-table tbody tr:not(.space) td:nth-child(3)')].map((e) => e.innerText)`)
		if len(ranks) != 4 || slices.ContainsFunc(ranks, func(s string) bool { return s != "1 → 2" }) {
			t.Errorf("the table lists %q", ranks)
		}
		if got := p.text("#shown"); got != "4 of 56 messages" {
			t.Errorf("the page says that it shows %q", got)
		}
		// Selecting a finding about hidden ranks shows these ranks again.
		i, _ := find(capture.Deadlock)
		browsertest.Eval[bool](p.Tab, fmt.Sprintf(`(zrlmpiReport.select(%d), true)`, i))
		if got := p.text("#shown"); got != "" {
			t.Errorf("the page says that it shows %q", got)
		}
		p.click("#message-table thead th:nth-child(5) button", 5, 5)
		counts := browsertest.Eval[[]int](p.Tab,
			`[...document.querySelectorAll('#message-table tbody tr:not(.space) td:nth-child(5)')].map((e) => Number(e.innerText.replace(/\s/g, '')))`)
		if !slices.IsSortedFunc(counts, func(a, b int) int { return b - a }) || counts[0] != 65536 {
			t.Errorf("sorted by words: %v", counts)
		}
		p.CheckNoProblems()
	})

	t.Run("kinds", func(t *testing.T) {
		p := open(t, ctx, r, browsertest.Desktop)
		browsertest.Eval[bool](p.Tab,
			`([...document.querySelectorAll('#kinds button')].find((b) => b.innerText.includes('Deadlock')).click(), true)`)
		if got := browsertest.Eval[int](p.Tab, `document.querySelectorAll('.finding').length`); got != 1 {
			t.Errorf("%d findings are listed, want the deadlock", got)
		}
		p.CheckNoProblems()
	})
}
