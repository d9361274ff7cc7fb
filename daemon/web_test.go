package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/zrlmpi/zrlmpid/daemon/web"
	"github.com/zrlmpi/zrlmpid/mpe"
)

const anyHTTP = `http: {listen: "127.0.0.1:0"}`

// fetch returns a page of the daemon.
func (r *running) fetch(t *testing.T, path string) (code int, body string) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr, Timeout: testTimeout}).Get(r.webURL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// countPeerTimes returns the number of times in the daemon's histograms of one peer, which only protobuf contains.
func (r *running) countPeerTimes(t *testing.T, labels map[string]string) (n uint64) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.webURL()+"metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for decoder := expfmt.NewDecoder(resp.Body, expfmt.ResponseFormat(resp.Header)); ; {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); err == io.EOF {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
		if family.GetName() != "zrlmpi_peer_phase_seconds" {
			continue
		}
		for _, m := range family.Metric {
			if !slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return labels[l.GetName()] != l.GetValue() }) {
				n += m.Histogram.GetSampleCount()
			}
		}
	}
}

// TestMetrics scrapes a daemon whose ranks have exchanged messages.
func TestMetrics(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml(anyHTTP, append(echoes(1, ""), "run: standin, kernel: sink")...))
	r.ping(t, 1, 1000, 5)
	if _, err := r.findRank(0).Engine.Irecv(1, make([]byte, 4), mpe.Options{}); err != nil {
		t.Fatal(err)
	}
	code, text := r.fetch(t, "metrics")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, text)
	}
	for _, want := range []string{
		`zrlmpi_messages_total{direction="send",peer="1",rank="0"} 5`,
		`zrlmpi_messages_total{direction="receive",peer="1",rank="0"} 5`,
		`zrlmpi_message_bytes_total{direction="receive",peer="0",rank="1"} 20000`,
		`zrlmpi_packets_total{direction="in",peer="0",rank="1",type="send_request"} 5`,
		`zrlmpi_packets_total{direction="out",peer="1",rank="0",type="data"} 15`,
		`zrlmpi_handshake_phase_seconds_count{direction="send",kind="fpga",phase="clear",profile="cloudfpga",rank="0"} 5`,
		`zrlmpi_posted_receives{rank="0"} 1`,
		`zrlmpi_oldest_wait_seconds{direction="receive",peer="1",rank="0",waits_for="send_request"} `,
		`zrlmpi_kernel_up{kernel="sink",rank="2"} 1`,
		`zrlmpi_attached_programs{rank="0"} 0`,
		`zrlmpi_config_last_reload_successful 1`,
		`zrlmpi_offload_enabled{feature="batches",rank="0"} `,
		`zrlmpi_socket_buffer_bytes{rank="1"} `,
		`go_goroutines `, `process_start_time_seconds `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := r.countPeerTimes(t, map[string]string{"rank": "1", "peer": "0", "direction": "receive",
		"phase": "total"}); n != 5 {
		t.Errorf("%d times of messages from rank 0 to rank 1, want 5", n)
	}
	// Kernels are waiting for work, and no rank has communicated with rank 2.
	for _, unwanted := range []string{`oldest_wait_seconds{direction="receive",peer="0",rank="1"`,
		`peer="2",rank="0"`} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q is there", unwanted)
		}
	}
	s, err := r.client.Status(within(t))
	if err != nil || s.HTTP != r.webURL() || !strings.HasSuffix(r.ready, ", http "+s.HTTP+"\n") {
		t.Errorf("status says %q, the ready line %q; %v", s.HTTP, r.ready, err)
	}
	if u, err := url.Parse(s.HTTP); err != nil || u.Hostname() != "127.0.0.1" {
		t.Errorf("%v, %v", u, err)
	}
	for path, want := range map[string]string{"": "<!DOCTYPE html>", "status.json": `"cluster":[{"rank":0,`} {
		if code, text := r.fetch(t, path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("/%s: %d: %.200s", path, code, text)
		}
	}
	latency := sendTimes(r.metricsSource().Ranks)
	if l, ok := latency(0, 1); !ok || l.Messages != 5 || l.P50 <= 0 || l.P99 < l.P50 {
		t.Errorf("sends took %+v", l)
	}
	if l, ok := latency(3, 1); ok {
		t.Errorf("sends of a rank that is elsewhere took %+v", l)
	}
	if code, text := r.fetch(t, "-/ready"); code != http.StatusOK {
		t.Errorf("%d: %s", code, text)
	}
}

// TestNotReady checks that the daemon reports that it is not ready while it drains a message in progress that
// does not end.
func TestNotReady(t *testing.T) {
	var p phase
	s, err := web.Listen(web.Options{Listen: "127.0.0.1:0", Ready: p.checkReady})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for state, want := range map[int32]string{
		starting: "zrlmpid is not ready: starting.\n",
		serving:  "zrlmpid is ready.\n",
		stopping: "zrlmpid is not ready: stopping, waiting for messages to complete.\n",
	} {
		p.Store(state)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, s.URL()+"-/ready", nil))
		if got := w.Body.String(); got != want || (w.Code == http.StatusOK) != (state == serving) {
			t.Errorf("%d: %d %q, want %q", state, w.Code, got, want)
		}
	}
}

// TestHTTPAddressTaken checks that the daemon does not start, and releases everything else, if a configured
// address is in use. This does not apply to the default address.
func TestHTTPAddressTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newCluster(t)
	text := c.yaml("http: {listen: \""+l.Addr().String()+"\"}", echoes(1, "")...)
	d, err := New(mustParse(t, text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var taken *web.ListenError
	if err := d.Run(within(t)); !errors.As(err, &taken) ||
		!strings.Contains(err.Error(), l.Addr().String()+" is in use") {
		t.Fatal(err)
	}
	if _, err := os.Lstat(c.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control socket is still there: %v", err)
	}
	start(t, c.yaml("", echoes(1, "")...)).ping(t, 1, 1, 1) // the ranks' addresses are free
}

// TestUnaskedHTTPAddressTaken checks that HTTP is disabled if another daemon uses the default address.
func TestUnaskedHTTPAddressTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	log := &syncBuffer{grew: make(chan struct{}, 1)}
	d, err := New(mustParse(t, newCluster(t).yaml("", echoes(1, "")...)), Options{Log: testLogger(log)})
	if err != nil {
		t.Fatal(err)
	}
	d.cfg.HTTP.Listen = l.Addr().String()
	if s, err := d.bindWeb(false); s != nil || err != nil {
		t.Errorf("%v, %v", s, err)
	}
	if !strings.Contains(log.String(), l.Addr().String()+" is in use") {
		t.Errorf("the log: %s", log)
	}
	if s, err := d.bindWeb(true); s != nil || err == nil {
		t.Errorf("%v, %v", s, err)
	}
}

// TestBadWebConfigIsAnError checks that Run returns a web.ConfigError that names the file.
func TestBadWebConfigIsAnError(t *testing.T) {
	c := newCluster(t)
	path := filepath.Join(t.TempDir(), "no.yml")
	d, err := New(mustParse(t, c.yaml(`http: {listen: "127.0.0.1:0", web_config: "`+path+`"}`, echoes(1, "")...)),
		Options{})
	if err != nil {
		t.Fatal(err)
	}
	var bad *web.ConfigError
	if err := d.Run(within(t)); !errors.As(err, &bad) || bad.Path != path {
		t.Error(err)
	}
}

// TestHTTPFailureEndsTheDaemon checks that the daemon exits instead of running without metrics.
func TestHTTPFailureEndsTheDaemon(t *testing.T) {
	task := &webTask{done: make(chan struct{}), err: errors.New("it broke"), cancel: func() {}}
	close(task.done)
	if err := task.waitFailed(context.Background()); err == nil || err.Error() != "it broke" {
		t.Error(err)
	}
	running := &webTask{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := running.waitFailed(ctx); err != nil {
		t.Error(err)
	}
}

// TestNoHTTP checks that nothing is counted if HTTP is disabled.
func TestNoHTTP(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", echoes(1, "")...))
	r.newRankObserver(r.findRank(0))
	if o := r.findRank(0).FlightRecorder.Observer; o != mpe.Observer(r.observer) || r.findRank(0).PhaseRecorder != nil {
		t.Error("messages are counted for nobody")
	}
	s, err := r.client.Status(within(t))
	if err != nil || s.HTTP != "" {
		t.Errorf("%q, %v", s.HTTP, err)
	}
}
