package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
)

// Registry gathers the metrics of a daemon or of jobs. It is safe for concurrent use.
type Registry struct {
	// process gathers the metrics of the Go runtime and the process, whose names sort before those of collect. It may
	// be nil.
	process prometheus.Gatherer
	collect func(*scrape)
}

// NewRegistry returns a registry for src, the Go runtime and the process.
func NewRegistry(src Source) (*Registry, error) {
	process := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := process.Register(c); err != nil {
			return nil, err
		}
	}
	return &Registry{process, src.collect}, nil
}

// Gather implements prometheus.Gatherer. It returns the metrics for a text format.
func (r *Registry) Gather() ([]*dto.MetricFamily, error) { return r.gather(false) }

// gather returns all metrics, with native histograms or only with what text formats can contain.
func (r *Registry) gather(native bool) (list []*dto.MetricFamily, err error) {
	if r.process != nil {
		list, err = r.process.Gather()
	}
	s := newScrape(native)
	r.collect(s)
	return append(list, s.families()...), err
}
