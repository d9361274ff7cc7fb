package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The bounds of scrapes.
const (
	// maxScrapes is how many scrapes are carried out at the same time. Others wait.
	maxScrapes = 4
	// scrapeTimeout is how long a scrape may take, with its wait.
	scrapeTimeout = 10 * time.Second
)

// Handler serves a registry, as text, OpenMetrics or protobuf. Native histograms come
// with the last only. log takes errors.
func Handler(r *prometheus.Registry, log promhttp.Logger) http.Handler {
	scrape := promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: log, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
	})
	slots := make(chan struct{}, maxScrapes)
	// http.TimeoutHandler keeps the answer in memory until it is complete, so that a
	// slot is not held for a client that reads slowly.
	return http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			scrape.ServeHTTP(w, req)
		case <-req.Context().Done():
		}
	}), scrapeTimeout, "the metrics were not collected in time: too many scrapes at the same time?")
}
