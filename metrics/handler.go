package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The bounds of scrapes.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Handler serves a registry, as text, OpenMetrics or protobuf. Native histograms come
// with the last only. log takes errors.
func Handler(r *prometheus.Registry, log promhttp.Logger) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: log, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
		MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout,
	})
}
