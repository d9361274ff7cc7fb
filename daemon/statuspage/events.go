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
	// maxWatchers is the maximum number of concurrent event clients. It is far below the server's limit on connections,
	// to leave connections for other requests.
	maxWatchers = 32
	// retryAfter is the number of seconds after which a rejected client may try again.
	retryAfter = 5
	// writeTimeout is the maximum time that a client may take to read an event.
	writeTimeout = 10 * time.Second
)

// change is an event that describes how the page differs from what the client already shows. Its JSON names are short
// because each client receives one such event every second.
type change struct {
	Time  string `json:"t"`
	Title string `json:"title,omitempty"`
	// Level is the level of the verdict.
	Level  digest.Level          `json:"level,omitempty"`
	Pieces map[string]string     `json:"p,omitempty"`
	Lists  map[string]listChange `json:"l,omitempty"`
}

// listChange contains the changes of one list. The field Order is nil if the order of the items is unchanged.
type listChange struct {
	Order *[]string         `json:"o,omitempty"`
	Items map[string]string `json:"i,omitempty"`
}

// changesSince returns the changes since an earlier view. If before is nil, it returns the whole view.
func (v *view) changesSince(before *view) *change {
	c := &change{Time: v.sampledAt.Format("15:04:05"), Pieces: map[string]string{}, Lists: map[string]listChange{}}
	if before == nil || before.title != v.title {
		c.Title = v.title
	}
	if before == nil || before.model.Verdict.Level != v.model.Verdict.Level {
		c.Level = v.model.Verdict.Level
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
			order := append([]string{}, l.order...) // not nil, so that the JSON is [] and not null
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

// encodeEvent encodes the change as a server-sent event.
func (c *change) encodeEvent() ([]byte, error) {
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
	if !p.addWatcher() {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		http.Error(w, fmt.Sprintf("the limit of %d event clients is reached: try again in %d s, or reload the page "+
			"or /status.json",
			maxWatchers, retryAfter), http.StatusServiceUnavailable)
		return
	}
	defer p.removeWatcher()
	setHeaders(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // keeps proxies from buffering the answer
	out := http.NewResponseController(w)
	var sent *view
	q := parseQuery(r)
	for s := p.takeSample(maxSampleAge); ; {
		next := p.newerThan(s)
		v, err := p.view(s, q)
		if err != nil {
			return
		}
		event, err := v.changesSince(sent).encodeEvent()
		if err != nil {
			return
		}
		// An error is harmless: it only means that the server does not support deadlines for single requests.
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
			s = p.takeSample(maxSampleAge)
		case <-r.Context().Done():
			return
		}
	}
}

// addWatcher adds a watcher. It returns false if there already are maxWatchers.
func (p *Page) addWatcher() bool {
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

// removeWatcher removes a watcher.
func (p *Page) removeWatcher() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers--
}

// newerThan returns a channel that is closed when a sample newer than s is available.
func (p *Page) newerThan(s *sample) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastSample != s {
		done := make(chan struct{})
		close(done)
		return done
	}
	return p.sampleTaken
}
