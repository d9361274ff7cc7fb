package statuspage

import (
	"context"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
)

// Options are what a page is told besides where statuses come from.
type Options struct {
	// Host is the name of this host for the page's title; empty is the system's.
	Host string
	// Latency tells how long a local rank's sends to a peer take; false if nothing is
	// known. It may be nil, and is called for the pairs that are shown.
	Latency func(rank, peer int) (Latency, bool)
	// Recent has the last warnings and errors; nil is none. Log.Recent is one.
	Recent func() []Entry
}

// Latency is how long sends take, in seconds, from posted to ended.
type Latency struct {
	P50, P99 float64
	// Messages is how many that is known of.
	Messages uint64
}

// Page serves the status. Its methods may be called concurrently.
type Page struct {
	source func() control.Status
	opts   Options
	mux    http.ServeMux
	wake   chan struct{} // somebody begins to look

	mu       sync.Mutex
	last     *sample // nil before the first
	past     past
	watchers int
	// next is closed when there is another sample.
	next chan struct{}
}

// The times between two samples. A page that is loaded takes one that is at most
// newest old.
const (
	liveEvery = time.Second
	slowEvery = 10 * time.Second
	newest    = 500 * time.Millisecond
)

// New returns a page of what source tells. source must be safe for concurrent use.
func New(source func() control.Status, opts Options) *Page {
	if opts.Host == "" {
		opts.Host, _ = os.Hostname() // a page without a name is a page
	}
	p := &Page{source: source, opts: opts, wake: make(chan struct{}, 1), next: make(chan struct{}), past: newPast()}
	p.mux.HandleFunc("GET /{$}", p.servePage)
	p.mux.HandleFunc("GET /events", p.serveEvents)
	p.mux.HandleFunc("GET /status.json", p.serveStatus)
	return p
}

// ServeHTTP serves /, /events and /status.json. Events go on until the client leaves
// or the request's context ends.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// sample is a status at one moment.
type sample struct {
	at     time.Time
	status control.Status
	digest *digest.Digest
	// views are what was made of it, by what was asked for. The page's lock guards
	// them.
	views map[query]*view
}

// Run takes samples until ctx is done: about once a second while somebody looks, and
// every ten seconds otherwise, for what the page tells of the past.
func (p *Page) Run(ctx context.Context) {
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	p.take(0)
	for {
		select {
		case <-p.wake:
			p.take(newest)
		case <-tick.C:
			p.take(p.pace())
		case <-ctx.Done():
			return
		}
	}
}

// pace is how old the last sample may get.
func (p *Page) pace() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers > 0 {
		return newest
	}
	return slowEvery
}

// take returns the last sample, or takes another if that is too old.
func (p *Page) take(oldest time.Duration) *sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.last != nil && now.Sub(p.last.at) < oldest {
		return p.last
	}
	s := &sample{at: now, status: p.source(), views: make(map[query]*view)}
	var before *control.Status
	if p.last != nil {
		before = &p.last.status
	}
	s.digest = digest.Of(&s.status, before)
	p.past.add(s)
	p.last = s
	close(p.next)
	p.next = make(chan struct{})
	return s
}

// view returns what a sample shows to whoever asks so.
func (p *Page) view(s *sample, q query) (*view, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := s.views[q]; v != nil {
		return v, nil
	}
	v, err := p.render(s, q)
	if err != nil {
		return nil, err
	}
	if len(s.views) < maxViews {
		s.views[q] = v
	}
	return v, nil
}

// maxViews is how many views of a sample are kept for whoever asks for the same.
const maxViews = 2 * maxWatchers
