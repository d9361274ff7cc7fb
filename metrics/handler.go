package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The bounds of scrapes.
const (
	// maxScrapes bounds concurrent scrapes. Others wait.
	maxScrapes = 4
	// scrapeTimeout bounds a scrape, including its wait.
	scrapeTimeout = 10 * time.Second
)

// Handler serves a registry as text, OpenMetrics or protobuf. Only protobuf has native
// histograms. Errors are written to log.
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
	}), scrapeTimeout, "metrics not collected in time: reduce the number of concurrent scrapes")
}
