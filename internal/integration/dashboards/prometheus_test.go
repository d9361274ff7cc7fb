package dashboards_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// testTimeout is the time limit of a wait in a test.
const testTimeout = 2 * time.Minute

// server is a running Prometheus.
type server struct {
	url string
}

var listensOn = regexp.MustCompile(`msg="Listening on".* address=(127\.0\.0\.1:\d+)`)

// findPrometheus returns the path of Prometheus.
func findPrometheus(t *testing.T) string {
	t.Helper()
	return needs.Program(t, "what dashboard and alerts show", "prometheus", "prometheus")
}

// runPrometheus runs Prometheus with the configuration in dir until the test ends.
func runPrometheus(t *testing.T, path, dir string, flags ...string) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, append(flags, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, read := make(chan string, 1), make(chan struct{})
	var text bytes.Buffer
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			fmt.Fprintln(&text, lines.Text())
			if m := listensOn.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-read
		cmd.Wait() // it was interrupted
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", &text)
		}
	})
	select {
	case a := <-address:
		return &server{"http://" + a}
	case <-read:
		t.Fatalf("Prometheus does not start:\n%s", &text)
	case <-time.After(testTimeout):
		t.Fatal("Prometheus does not start")
	}
	return nil
}

// knowsKey reports whether this version of Prometheus supports scrape_native_histograms.
func knowsKey(t *testing.T, path string) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput()
	var major, minor int
	if m := regexp.MustCompile(`version (\d+\.\d+)\.`).FindSubmatch(out); err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out)
	} else if _, err := fmt.Sscanf(string(m[1]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	return major > 3 || major == 3 && minor >= 8
}

// configure copies the shipped configuration into a new directory with other targets and another interval of scrapes,
// and the rules with shorter delays.
func configure(t *testing.T, path string, targets []string, interval string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const shipped = "../../../deploy/prometheus/"
	text := read(t, shipped+"prometheus.yml")
	text = change(t, text, `targets: ["127.0.0.1:9627"]`, `targets: ["`+strings.Join(targets, `", "`)+`"]`)
	text = change(t, text, "interval: 15s", "interval: "+interval)
	if !knowsKey(t, path) {
		text = change(t, text, "    scrape_native_histograms: true\n", "")
	}
	write(t, filepath.Join(dir, "prometheus.yml"), text)
	rules := read(t, shipped+"zrlmpid.rules.yml")
	for _, short := range [][2]string{{"[5m]", "[5s]"}, {"offset 5m", "offset 5s"}, {"interval: 10m", "interval: 1s"},
		{"[1w]", "[1m]"}, {"[1h] offset 1d", "[3s] offset 5s"}} {
		rules = change(t, rules, short[0], short[1])
	}
	write(t, filepath.Join(dir, "zrlmpid.rules.yml"), rules)
	alerts := read(t, shipped+"zrlmpid-alerts.rules.yml")
	alerts = change(t, alerts, "[5m]", "[5s]")
	for _, seconds := range []string{"600", "60", "30"} {
		alerts = change(t, alerts, `"} > `+seconds+"\n", `"} > 1`+"\n")
	}
	alerts = regexp.MustCompile(`(?m)^( +for): \w+$`).ReplaceAllString(alerts, "$1: 1s")
	write(t, filepath.Join(dir, "zrlmpid-alerts.rules.yml"), alerts)
	return dir
}

// change replaces a text that must occur.
func change(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("there is no %q to be replaced", from)
	}
	return strings.ReplaceAll(text, from, to)
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// get queries the HTTP API.
func (s *server) get(ctx context.Context, path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", resp.Status, answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// alert is a pending or firing alert.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

func (a alert) String() string {
	s := a.Labels["alertname"]
	for _, label := range []string{"rank", "peer"} {
		if v := a.Labels[label]; v != "" {
			s += " " + label + " " + v
		}
	}
	return s
}

// firing returns the alerts that currently fire for a target.
func (s *server) firing(ctx context.Context, instance string) (firing []alert, err error) {
	var all struct{ Alerts []alert }
	if err := s.get(ctx, "alerts", nil, &all); err != nil {
		return nil, err
	}
	for _, a := range all.Alerts {
		if a.State == "firing" && a.Labels["instance"] == instance {
			firing = append(firing, a)
		}
	}
	return firing, nil
}

// holds reports whether an expression currently yields a number or a histogram.
func (s *server) holds(ctx context.Context, expr string) (bool, error) {
	var answer struct {
		ResultType string
		Result     []struct {
			Value     [2]any
			Histogram []any
		}
	}
	if err := s.get(ctx, "query", url.Values{"query": {expr}}, &answer); err != nil {
		return false, err
	}
	for _, r := range answer.Result {
		if len(r.Histogram) > 0 || r.Value[1] != nil && r.Value[1] != "NaN" {
			return true, nil
		}
	}
	return false, nil
}

// eventually calls look until it returns "". After a timeout it fails the test with the last result.
func eventually(t *testing.T, look func(ctx context.Context) (missing string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for last := ""; ; {
		missing := look(ctx)
		if missing == "" {
			return
		}
		if ctx.Err() == nil || last == "" {
			last = missing
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Error(last)
			return
		}
	}
}
