package metrics

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestScrapesWait checks that many concurrent scrapes are all answered, but only a few at a time.
func TestScrapesWait(t *testing.T) {
	const clients = 40
	asked, release := make(chan struct{}, clients), make(chan struct{})
	process := prometheus.NewRegistry()
	process.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slow"}, func() float64 {
		<-release
		return 1
	}))
	handler := Handler(&Registry{process, func(*scrape) {}}, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	var scrapes sync.WaitGroup
	for range clients {
		scrapes.Go(func() {
			resp, err := http.Get(server.URL)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Error(resp.Status)
			}
		})
	}
	for range clients {
		<-asked
	}
	close(release)
	scrapes.Wait()
}
