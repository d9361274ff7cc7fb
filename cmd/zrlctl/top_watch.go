package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

// terminal is a terminal on which top runs interactively.
type terminal interface {
	// Enter switches to the alternate screen; Restore restores the previous state.
	Enter() error
	Restore() error
	// Suspend stops the program, as Ctrl-Z does, until it is continued.
	Suspend() error
	// Keys returns a channel of input, which is closed with the terminal. Resized returns a channel that receives a
	// value when the terminal's size changes.
	Keys() <-chan []byte
	Resized() <-chan struct{}
	// Size returns the size in characters.
	Size() (width, height int)
	// Draw replaces the contents of the screen.
	Draw(frame string) error
	Colours() bool
}

// watcher shows the samples of a daemon on a terminal.
type watcher struct {
	*top
	tty          terminal
	page         topPage
	keys         keyParser
	scroll       int
	paused       bool
	showsHelp    bool
	typingFilter bool // the user is typing a filter
	// err is the error of the last query, nil if it succeeded.
	err     error
	samples int
}

// queryResult is the result of a query.
type queryResult struct {
	sample *sample
	err    error
}

// watch shows samples until the user quits. It always restores the terminal, even after a panic.
func (t *top) watch(ctx context.Context, tty terminal) (err error) {
	first, err := t.takeSample(ctx, nil)
	if err != nil {
		return err
	}
	w := &watcher{top: t, tty: tty, page: topPage{sample: first}, samples: 1}
	if err := tty.Enter(); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer func() {
		if failed := tty.Restore(); err == nil && failed != nil {
			err = fmt.Errorf("terminal: %w", failed)
		}
	}()
	return w.run(ctx)
}

func (w *watcher) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	answers := make(chan queryResult, 1)
	querying := false
	for w.count == 0 || w.samples < w.count {
		if err := w.draw(); err != nil {
			return fmt.Errorf("terminal: %w", err)
		}
		select {
		case <-tick.C:
			if !w.paused && !querying {
				querying = true
				before := w.page.sample
				go func() {
					l, err := w.takeSample(ctx, before)
					answers <- queryResult{l, err}
				}()
			}
		case a := <-answers:
			querying = false
			w.showResult(a)
		case piece, ok := <-w.tty.Keys():
			if !ok {
				return nil
			}
			for _, k := range w.keys.parse(piece) {
				end, err := w.handleKey(k)
				if end || err != nil {
					return err
				}
			}
		case <-w.tty.Resized():
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// showResult shows the result of a query. It discards the result while the display is paused.
func (w *watcher) showResult(result queryResult) {
	if w.paused {
		return
	}
	w.err = result.err
	if result.err == nil {
		w.page.sample = result.sample
		w.samples++
	}
}

// handleKey handles a key, and reports whether the key quits the program.
func (w *watcher) handleKey(k key) (end bool, err error) {
	_, height := w.tty.Size()
	page := max(1, height-len(w.page.header())-2)
	switch {
	case k == keyInterrupt:
		return true, nil
	case k == keySuspend:
		return false, w.tty.Suspend()
	case w.typingFilter:
		var done bool
		w.page.filter, done = editLine(w.page.filter, k)
		w.typingFilter, w.scroll = !done, 0
		return false, nil
	}
	switch k {
	case 'q':
		return true, nil
	case 'j', keyDown:
		w.scroll++
	case 'k', keyUp:
		w.scroll--
	case ' ', keyPageDown:
		w.scroll += page
	case 'b', keyPageUp:
		w.scroll -= page
	case 'g', keyHome:
		w.scroll = 0
	case 'G', keyEnd:
		w.scroll = 1 << 30
	case 'p':
		w.paused = !w.paused
	case 's':
		orders := digest.Orders()
		w.page.order = orders[(int(w.page.order)+1)%len(orders)]
	case '/':
		w.typingFilter = true
	case keyEscape:
		w.page.filter, w.showsHelp = "", false
	case '?', 'h':
		w.showsHelp, w.scroll = !w.showsHelp, 0
	}
	return false, nil
}

// draw redraws the screen.
func (w *watcher) draw() error {
	width, height := w.tty.Size()
	w.page.width = width
	head, body := w.page.header(), w.page.body()
	if w.showsHelp {
		body = heading("KEYS")
		for _, l := range keyHelp {
			body = append(body, styledLine{{"  " + l, plain}})
		}
	}
	room := max(0, height-len(head)-1)
	w.scroll = max(0, min(w.scroll, len(body)-room))
	end := min(len(body), w.scroll+room)
	lines := append(head, body[w.scroll:end]...)
	for len(lines) < len(head)+room {
		lines = append(lines, nil)
	}
	lines = append(lines[:min(len(lines), max(0, height-1))], w.footer(end, len(body)))
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		l.drawTo(&b, width, w.tty.Colours())
		b.WriteString("\x1b[K")
	}
	return w.tty.Draw(b.String())
}

// footer returns the last line of the screen: the filter while the user types it, an error, or a list of keys.
func (w *watcher) footer(end, of int) styledLine {
	switch {
	case w.typingFilter:
		return styledLine{{"filter: " + w.page.filter, plain}, {" ", inverse}}
	case w.err != nil:
		return styledLine{{fmt.Sprintf(" as of %s: %s ", w.page.takenAt.Format(time.TimeOnly), w.err), boldRed}}
	}
	state := fmt.Sprintf(" every %v ", w.interval)
	if w.paused {
		state = " paused, p resumes "
	}
	line := styledLine{{state, inverse}, {" q quits, p pauses, s sorts, / filters, ? shows keys", faint}}
	if w.page.filter != "" {
		line = append(line, span{"  filter: " + w.page.filter, yellow})
	}
	if below := of - end; below > 0 {
		line = append(line, span{fmt.Sprintf("  %s below", words.Plural(below, "line")), faint})
	}
	return line
}
