package statuspage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
)

const (
	// maxWatchers limits the clients that follow the events at the same time. It is far below the server's
	// limit on connections, which other requests need as well.
	maxWatchers = 32
	// retryAfter is the time after which a rejected client may try again, in seconds.
	retryAfter = 5
	// writeTimeout limits the time that a client takes to read an event.
	writeTimeout = 10 * time.Second
)

// change is an event: the difference from the client's view. Its JSON names are short, as it is sent every
// second.
type change struct {
	Time  string `json:"t"`
	Title string `json:"title,omitempty"`
	// Level is the level of the verdict.
	Level  digest.Level          `json:"level,omitempty"`
	Pieces map[string]string     `json:"p,omitempty"`
	Lists  map[string]listChange `json:"l,omitempty"`
}

// listChange is the difference of a list. Order is nil if it is unchanged.
type listChange struct {
	Order *[]string         `json:"o,omitempty"`
	Items map[string]string `json:"i,omitempty"`
}

// since returns the difference from an earlier view, or everything if before is nil.
func (v *view) since(before *view) *change {
	c := &change{Time: v.at.Format("15:04:05"), Pieces: map[string]string{}, Lists: map[string]listChange{}}
	if before == nil || before.title != v.title {
		c.Title = v.title
	}
	if before == nil || before.shown.Verdict.Level != v.shown.Verdict.Level {
		c.Level = v.shown.Verdict.Level
	}
	for name, html := range v.pieces {
		if before == nil || before.pieces[name] != html {
			c.Pieces[name] = html
		}
	}
	for name, l := range v.lists {
		var old list
		if before != nil {
			old = before.lists[name]
		}
		diff := listChange{Items: map[string]string{}}
		if before == nil || !slices.Equal(old.order, l.order) {
			order := append([]string{}, l.order...) // not nil: JSON needs [] and not null
			diff.Order = &order
		}
		for key, html := range l.items {
			if old.items[key] != html {
				diff.Items[key] = html
			}
		}
		if diff.Order != nil || len(diff.Items) > 0 {
			c.Lists[name] = diff
		}
	}
	return c
}

// event returns the change as a server-sent event.
func (c *change) event() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("data: ")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // this is not HTML, and escaping would make it much longer
	if err := enc.Encode(c); err != nil {
		return nil, err
	}
	b.WriteString("\n")
	return b.Bytes(), nil
}

// serveEvents sends changes until the client disconnects.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		http.Error(w, fmt.Sprintf("the limit of %d event clients is reached: try again in %d s, or reload the page "+
			"or /status.json",
			maxWatchers, retryAfter), http.StatusServiceUnavailable)
		return
	}
	defer p.exit()
	head(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for proxies that buffer answers
	out := http.NewResponseController(w)
	var sent *view
	q := queryOf(r)
	for s := p.take(newest); ; {
		next := p.after(s)
		v, err := p.view(s, q)
		if err != nil {
			return
		}
		event, err := v.since(sent).event()
		if err != nil {
			return
		}
		// An error means that the server does not support deadlines per request.
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := w.Write(event); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		sent = v
		select {
		case <-next:
			s = p.take(newest)
		case <-r.Context().Done():
			return
		}
	}
}

// enter adds a watcher, unless maxWatchers are present.
func (p *Page) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers == maxWatchers {
		return false
	}
	p.watchers++
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return true
}

// exit removes a watcher.
func (p *Page) exit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers--
}

// after returns a channel that is closed once there is a sample after s.
func (p *Page) after(s *sample) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != s {
		done := make(chan struct{})
		close(done)
		return done
	}
	return p.next
}
