package statuspage

import (
	"context"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Options configures a Page.
type Options struct {
	// Host is the host name in the page's title. If it is empty, the page shows the system's host name.
	Host string
	// Latency returns the durations of a local rank's sends to a peer, or false if they are unknown. The page calls it
	// for each pair shown. If Latency is nil, the page shows no durations.
	Latency func(rank, peer int) (Latency, bool)
	// Recent returns the most recent warnings and errors, like Log.Recent. If Recent is nil, the page shows none.
	Recent func() []Entry
}

// Latency contains percentiles of send durations in seconds. The duration of a send is measured from posting the
// operation to its completion.
type Latency struct {
	P50, P99 float64
	// Messages is the number of sends measured.
	Messages uint64
}

// Page serves the status over HTTP. It is safe for concurrent use.
type Page struct {
	source func() state.Status
	opts   Options
	mux    http.ServeMux
	wake   chan struct{} // holds a value after a watcher was added

	mu         sync.Mutex
	lastSample *sample // nil before the first sample
	history    history
	watchers   int
	// sampleTaken is closed when a new sample is taken.
	sampleTaken chan struct{}
}

// Intervals between two samples. When a client loads the page, it gets the last sample if that is younger than
// maxSampleAge.
const (
	liveInterval = time.Second
	slowInterval = 10 * time.Second
	maxSampleAge = 500 * time.Millisecond
)

// New returns a Page that shows the statuses returned by source, which must be safe for concurrent use.
func New(source func() state.Status, opts Options) *Page {
	if opts.Host == "" {
		opts.Host, _ = os.Hostname() // may be empty
	}
	p := &Page{source: source, opts: opts, wake: make(chan struct{}, 1), sampleTaken: make(chan struct{}),
		history: newHistory()}
	p.mux.HandleFunc("GET /{$}", p.servePage)
	p.mux.HandleFunc("GET /events", p.serveEvents)
	p.mux.HandleFunc("GET /status.json", p.serveStatus)
	return p
}

// ServeHTTP serves /, /events and /status.json. It sends events until the client disconnects or the request's context
// is done.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// sample is a status at one point in time.
type sample struct {
	takenAt time.Time
	status  state.Status
	digest  *digest.Digest
	// views holds the rendered views by query. The page's lock guards it.
	views map[query]*view
}

// Run takes samples until ctx is done: about every second while the page has watchers, and otherwise every ten seconds
// for the history.
func (p *Page) Run(ctx context.Context) {
	tick := time.NewTicker(liveInterval)
	defer tick.Stop()
	p.takeSample(0)
	for {
		select {
		case <-p.wake:
			p.takeSample(maxSampleAge)
		case <-tick.C:
			p.takeSample(p.sampleInterval())
		case <-ctx.Done():
			return
		}
	}
}

// sampleInterval returns how old the last sample may become before Run takes a new one.
func (p *Page) sampleInterval() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers > 0 {
		return maxSampleAge
	}
	return slowInterval
}

// takeSample returns the last sample if its age is below the duration oldest. Otherwise, it takes a new one.
func (p *Page) takeSample(oldest time.Duration) *sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.lastSample != nil && now.Sub(p.lastSample.takenAt) < oldest {
		return p.lastSample
	}
	s := &sample{takenAt: now, status: p.source(), views: make(map[query]*view)}
	var before *state.Status
	if p.lastSample != nil {
		before = &p.lastSample.status
	}
	s.digest = digest.New(&s.status, before)
	p.history.add(s)
	p.lastSample = s
	close(p.sampleTaken)
	p.sampleTaken = make(chan struct{})
	return s
}

// view returns the view of a sample for the given query.
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

// maxViews is the maximum number of views kept for a sample.
const maxViews = 2 * maxWatchers
