package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
)

// terminal is where somebody looks.
type terminal interface {
	// Enter takes the terminal, and Leave gives it back as it was.
	Enter() error
	Leave() error
	// Suspend stops the program as the shell's Ctrl-Z does, until it goes on.
	Suspend() error
	// Keys has what is typed, and is closed when the terminal has gone. Resized
	// tells of a new size.
	Keys() <-chan []byte
	Resized() <-chan struct{}
	// Size is in characters.
	Size() (width, height int)
	// Draw replaces what is seen.
	Draw(frame string) error
	Colours() bool
}

// watcher shows a daemon on a terminal.
type watcher struct {
	*top
	tty    terminal
	page   topPage
	keys   keyParser
	scroll int
	paused bool
	help   bool
	typing bool // a filter
	// silent is why there is no newer look.
	silent error
	looks  int
}

// answer is what came of a question.
type answer struct {
	look *look
	err  error
}

// watch shows looks until the user has seen enough. The terminal is left as it was,
// also after a panic.
func (t *top) watch(ctx context.Context, tty terminal) (err error) {
	first, err := t.next(ctx, nil)
	if err != nil {
		return err
	}
	w := &watcher{top: t, tty: tty, page: topPage{look: first}, looks: 1}
	if err := tty.Enter(); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer func() {
		if left := tty.Leave(); err == nil && left != nil {
			err = fmt.Errorf("terminal: %w", left)
		}
	}()
	return w.run(ctx)
}

func (w *watcher) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	answers := make(chan answer, 1)
	asking := false
	for w.count == 0 || w.looks < w.count {
		if err := w.draw(); err != nil {
			return fmt.Errorf("terminal: %w", err)
		}
		select {
		case <-tick.C:
			if !w.paused && !asking {
				asking = true
				before := w.page.look
				go func() {
					l, err := w.next(ctx, before)
					answers <- answer{l, err}
				}()
			}
		case a := <-answers:
			asking = false
			w.take(a)
		case piece, ok := <-w.tty.Keys():
			if !ok {
				return nil
			}
			for _, k := range w.keys.parse(piece) {
				end, err := w.press(k)
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

// take shows an answer. One that comes late does not disturb a pause.
func (w *watcher) take(a answer) {
	if w.paused {
		return
	}
	w.silent = a.err
	if a.err == nil {
		w.page.look = a.look
		w.looks++
	}
}

// press does what a key says, and reports whether that is the end.
func (w *watcher) press(k key) (end bool, err error) {
	_, height := w.tty.Size()
	page := max(1, height-headLines-2)
	switch {
	case k == keyInterrupt:
		return true, nil
	case k == keySuspend:
		return false, w.tty.Suspend()
	case w.typing:
		var done bool
		w.page.filter, done = edit(w.page.filter, k)
		w.typing, w.scroll = !done, 0
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
		w.typing = true
	case keyEscape:
		w.page.filter, w.help = "", false
	case '?', 'h':
		w.help, w.scroll = !w.help, 0
	}
	return false, nil
}

// headLines is how many lines do not scroll at the top.
const headLines = 3

// draw shows what is known now.
func (w *watcher) draw() error {
	width, height := w.tty.Size()
	body := w.page.body()
	if w.help {
		body = heading("KEYS")
		for _, l := range topKeys {
			body = append(body, text{{"  " + l, plain}})
		}
	}
	room := max(0, height-headLines-1)
	w.scroll = max(0, min(w.scroll, len(body)-room))
	end := min(len(body), w.scroll+room)
	lines := append(w.page.head(), body[w.scroll:end]...)
	for len(lines) < headLines+room {
		lines = append(lines, nil)
	}
	lines = append(lines[:min(len(lines), max(0, height-1))], w.foot(end, len(body)))
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		l.draw(&b, width, w.tty.Colours())
		b.WriteString("\x1b[K")
	}
	return w.tty.Draw(b.String())
}

// foot is the last line: what is typed, what is amiss, or the keys.
func (w *watcher) foot(end, of int) text {
	switch {
	case w.typing:
		return text{{"filter: " + w.page.filter, plain}, {" ", marked}}
	case w.silent != nil:
		return text{{fmt.Sprintf(" as of %s: %s ", w.page.at.Format(time.TimeOnly), w.silent), loud}}
	}
	state := fmt.Sprintf(" every %v ", w.interval)
	if w.paused {
		state = " paused, p goes on "
	}
	line := text{{state, marked}, {" q ends, p pauses, s sorts, / filters, ? more", faint}}
	if w.page.filter != "" {
		line = append(line, span{"  filter: " + w.page.filter, yellow})
	}
	if below := of - end; below > 0 {
		line = append(line, span{fmt.Sprintf("  %s below", digest.Plural(below, "line")), faint})
	}
	return line
}
