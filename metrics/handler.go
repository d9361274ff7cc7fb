package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits on scrapes.
const (
	// maxScrapes is the maximum number of concurrent scrapes. Further scrapes wait.
	maxScrapes = 4
	// scrapeTimeout is the maximum duration of a scrape, including the time for which it waits for other scrapes.
	scrapeTimeout = 10 * time.Second
)

// Handler serves a registry as text, OpenMetrics or protobuf. Only the protobuf format contains native histograms.
// Handler writes errors to log.
func Handler(r *prometheus.Registry, log promhttp.Logger) http.Handler {
	scrape := promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: log, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
	})
	slots := make(chan struct{}, maxScrapes)
	// http.TimeoutHandler buffers the whole answer, so that a slow client does not count as a running scrape.
	return http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			scrape.ServeHTTP(w, req)
		case <-req.Context().Done():
		}
	}), scrapeTimeout, "metrics not collected in time: reduce the number of concurrent scrapes")
}
