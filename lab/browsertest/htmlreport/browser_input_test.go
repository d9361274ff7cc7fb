package htmlreport_test

import (
	"fmt"

	"github.com/chromedp/cdproto/input"

	"github.com/zrlmpi/zrlmpid/lab/browsertest"
)

// mouse sends a mouse event at a position in pixels within an element.
func (p *tab) mouse(what input.DispatchMouseEventType, selector string, x, y float64,
	change func(*input.DispatchMouseEventParams)) {
	p.T.Helper()
	box := browsertest.Eval[struct{ X, Y float64 }](p.Tab,
		fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return {X: r.x, Y: r.y}; })()`,
			selector))
	e := input.DispatchMouseEventParams{Type: what, X: box.X + x, Y: box.Y + y}
	if change != nil {
		change(&e)
	}
	browsertest.Call(p.Tab, input.DispatchMouseEvent, e)
}

func left(e *input.DispatchMouseEventParams) {
	e.Button, e.Buttons, e.ClickCount = input.MouseButtonLeft, 1, 1
}

func (p *tab) click(selector string, x, y float64) {
	p.T.Helper()
	browsertest.Eval[bool](p.Tab,
		fmt.Sprintf(`(document.querySelector(%q).scrollIntoView({block: 'nearest', inline: 'nearest'}), true)`,
			selector))
	p.mouse(input.DispatchMouseEventTypeMouseMoved, selector, x, y, nil)
	p.mouse(input.DispatchMouseEventTypeMousePressed, selector, x, y, left)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, selector, x, y, left)
	p.frame()
}

func (p *tab) press(key string) {
	p.T.Helper()
	text := ""
	if len(key) == 1 {
		text = key
	}
	browsertest.Call(p.Tab, input.DispatchKeyEvent,
		input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: text})
	browsertest.Call(p.Tab, input.DispatchKeyEvent,
		input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: key})
	p.frame()
}

// text returns the visible text of an element.
func (p *tab) text(selector string) string {
	p.T.Helper()
	return browsertest.Eval[string](p.Tab,
		fmt.Sprintf(`(() => { const e = document.querySelector(%q); return e && !e.hidden ? e.innerText : ''; })()`,
			selector))
}

// colours returns the number of different colours on a canvas.
func (p *tab) colours(selector string) int {
	p.T.Helper()
	return browsertest.Eval[int](p.Tab, fmt.Sprintf(`(() => {
		const c = document.querySelector(%q), seen = new Set();
		const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
		for (let i = 0; i < d.length; i += 4) if (d[i + 3]) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
		return seen.size;
	})()`, selector))
}

// place returns where on the ladder a packet is drawn.
func (p *tab) place(packet int64) (x, y float64) {
	p.T.Helper()
	at := browsertest.Eval[struct{ X, Y float64 }](p.Tab, fmt.Sprintf(`zrlmpiReport.place(%d)`, packet))
	return at.X, at.Y
}
