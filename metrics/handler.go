package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
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
func Handler(r *Registry, log promhttp.Logger) http.Handler {
	serve := func(native bool) http.Handler {
		return promhttp.HandlerFor(
			prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return r.gather(native) }),
			promhttp.HandlerOpts{ErrorLog: log, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
	}
	text, protobuf := serve(false), serve(true)
	slots := make(chan struct{}, maxScrapes)
	// http.TimeoutHandler buffers the whole answer, so that a slow client does not count as a running scrape.
	return http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			if hasNativeHistograms(req) {
				protobuf.ServeHTTP(w, req)
				return
			}
			text.ServeHTTP(w, req)
		case <-req.Context().Done():
		}
	}), scrapeTimeout, "metrics not collected in time: reduce the number of concurrent scrapes")
}

// hasNativeHistograms reports whether the format that promhttp chooses for the request contains native histograms.
func hasNativeHistograms(req *http.Request) bool {
	format := expfmt.NegotiateAccept(req.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	return format.FormatType() != expfmt.TypeTextPlain && format.FormatType() != expfmt.TypeOpenMetrics
}
