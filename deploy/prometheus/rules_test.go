package prometheus_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// docs is the prefix of runbook_url.
const docs = "https://github.com/zrlmpi/zrlmpid/blob/main/docs/operations.md#"

// promtool runs Prometheus' promtool. If it is not installed, the test is skipped or, in CI, fails.
func promtool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path := needs.Program(t, "the rules", "promtool", "prometheus")
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	return string(out), err
}

// ruleFile holds the parts of a rule file that the tests use.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Record, Alert, Expr, For string
	Labels                   map[string]string
	Annotations              map[string]string
}

// rules returns all rules.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	files := glob(t, "*.rules.yml")
	for _, path := range files {
		var f ruleFile
		if err := yaml.Unmarshal(read(t, path), &f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, g := range f.Groups {
			all = append(all, g.Rules...)
		}
	}
	if len(all) < 30 {
		t.Fatalf("%d rules in %q", len(all), files)
	}
	return all
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %q, %v", pattern, files, err)
	}
	return files
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestConfig: Prometheus accepts the configuration and the rules. As a comment in the configuration says, an older
// version accepts it without the one key that it does not support.
func TestConfig(t *testing.T) {
	text := read(t, "prometheus.yml")
	dir := t.TempDir()
	for _, path := range glob(t, "*.rules.yml") {
		write(t, filepath.Join(dir, path), read(t, path))
	}
	path := filepath.Join(dir, "prometheus.yml")
	write(t, path, text)
	out, err := promtool(t, "check", "config", path)
	if err != nil && strings.Contains(out, "field scrape_native_histograms not found") {
		var lines [][]byte
		for line := range bytes.Lines(text) {
			if !bytes.Contains(line, []byte("scrape_native_histograms")) {
				lines = append(lines, line)
			}
		}
		write(t, path, bytes.Join(lines, nil))
		out, err = promtool(t, "check", "config", path)
	}
	if err != nil || !strings.Contains(out, "2 rule files found") {
		t.Errorf("%v\n%s", err, out)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRulesAreSound(t *testing.T) {
	if out, err := promtool(t,
		append([]string{"check", "rules", "--lint-fatal"}, glob(t, "*.rules.yml")...)...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAlertsFire: each alert fires if its fault occurs, and does not fire otherwise.
func TestAlertsFire(t *testing.T) {
	for _, path := range glob(t, "tests/*.test.yml") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".test.yml"), func(t *testing.T) {
			t.Parallel()
			read(t, path) // makes go test run again if the file changes
			if out, err := promtool(t, "test", "rules", path); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestTestsCanFail: promtool reports an alert that should fire but does not. Otherwise the tests above would prove
// nothing.
func TestTestsCanFail(t *testing.T) {
	dir := t.TempDir()
	for _, path := range glob(t, "*.rules.yml") {
		text := bytes.ReplaceAll(read(t, path), []byte("zrlmpi_kernel_up == 0"), []byte("zrlmpi_kernel_up == 2"))
		write(t, filepath.Join(dir, path), text)
	}
	if err := os.Mkdir(filepath.Join(dir, "tests"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tests", "peers.test.yml")
	write(t, path, read(t, "tests/peers.test.yml"))
	out, err := promtool(t, "test", "rules", path)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(out, "ZrlmpiKernelDown") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAlertsAreComplete: each alert has a severity, a description, a remedy and a section of the documentation, and
// fires in a test.
func TestAlertsAreComplete(t *testing.T) {
	var tests []byte
	for _, path := range glob(t, "tests/*.test.yml") {
		tests = append(tests, read(t, path)...)
	}
	manual := read(t, "../../docs/operations.md")
	seen := make(map[string]bool)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if seen[r.Alert] {
			t.Errorf("%s: there are two", r.Alert)
		}
		seen[r.Alert] = true
		if s := r.Labels["severity"]; s != "critical" && s != "warning" && s != "info" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || len(r.Annotations["description"]) < 80 {
			t.Errorf("%s says too little", r.Alert)
		}
		if r.Annotations["runbook_url"] != docs+strings.ToLower(r.Alert) {
			t.Errorf("%s: runbook_url %s", r.Alert, r.Annotations["runbook_url"])
		}
		if !bytes.Contains(manual, []byte("\n### "+r.Alert+"\n")) {
			t.Errorf("%s: docs/operations.md has no section of that name", r.Alert)
		}
		if !bytes.Contains(tests, []byte(`alertname="`+r.Alert+`"`)) {
			t.Errorf("%s fires in no test", r.Alert)
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^### (Zrlmpi\w+)$`).FindAllSubmatch(manual, -1) {
		if !seen[string(section[1])] {
			t.Errorf("docs/operations.md describes %s, which does not exist", section[1])
		}
	}
}

var (
	metricName   = regexp.MustCompile(`\bzrlmpi_\w+`)
	recordedName = regexp.MustCompile(`\bzrlmpi:[\w:]+`)
)

// TestMetricsExist: rules use only documented metrics and the series that other rules record.
func TestMetricsExist(t *testing.T) {
	manual := string(read(t, "../../docs/metrics.md"))
	recorded := make(map[string]bool)
	for _, r := range rules(t) {
		recorded[r.Record] = true
	}
	for _, r := range rules(t) {
		for _, name := range metricName.FindAllString(r.Expr, -1) {
			if !strings.Contains(manual, "`"+strings.TrimSuffix(name, "_bucket")+"`") {
				t.Errorf("%s%s: docs/metrics.md has no %s", r.Record, r.Alert, name)
			}
		}
		for _, name := range recordedName.FindAllString(r.Expr, -1) {
			if !recorded[name] {
				t.Errorf("%s%s: no rule records %s", r.Record, r.Alert, name)
			}
		}
	}
}
