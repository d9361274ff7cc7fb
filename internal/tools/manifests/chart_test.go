package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)

var update = flag.Bool("update", false, "render the examples in deploy/kubernetes again")

const (
	kubernetes = "../../../deploy/kubernetes"
	// release is the name of the release in examples and tests.
	release = "zrlmpid"
)

// variants are values of the chart that together use every template and option. Those named after a folder of
// deploy/kubernetes are its examples.
func variants(t testing.TB) map[string]map[string]any {
	t.Helper()
	hosts, err := chartutil.ReadValuesFile(filepath.Join(kubernetes, "host-network", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ReadValues([]byte(`
image: {repository: registry.example/zrlmpid, digest: "sha256:` + strings.Repeat("0f", 32) + `"}
imagePullSecrets: [{name: registry}]
replicas: 3
volume: {persistent: true, storageClassName: local}
http: {scheme: HTTPS}
priorityClassName: ranks
nodeSelector: {pool: ranks}
tolerations: [{key: ranks, operator: Exists}]
podLabels: {team: mpi}
podAnnotations: {note: "1"}
env: [{name: GOMEMLIMIT, value: 512MiB}]
extraVolumes: [{name: tls, secret: {secretName: tls}}]
extraVolumeMounts: [{name: tls, mountPath: /etc/zrlmpid-tls, readOnly: true}]
monitoring: {serviceMonitor: true, endpoint: {interval: 30s, tlsConfig: {serverName: zrlmpid}}, rules: true,
  dashboard: true, labels: {release: prometheus}}
`))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]map[string]any{
		"standins": {}, "host-network": hosts, "all": all, "xdp": {"xdp": true},
	}
}

func loadChart(t testing.TB) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(filepath.Join(kubernetes, "zrlmpid"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// render renders the chart as "helm template" does, in the order of the templates' names.
func render(t testing.TB, values map[string]any) ([]byte, error) {
	t.Helper()
	return renderChart(loadChart(t), values)
}

func renderChart(loaded *chart.Chart, values map[string]any) ([]byte, error) {
	options := chartutil.ReleaseOptions{Name: release, Namespace: "default"}
	combined, err := chartutil.ToRenderValues(loaded, values, options, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, combined)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); text != "" && path.Ext(name) == ".yaml" {
			all.WriteString("---\n" + strings.TrimPrefix(text, "---\n") + "\n")
		}
	}
	return all.Bytes(), nil
}

func mustRender(t testing.TB, values map[string]any) []byte {
	t.Helper()
	text, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestExamples checks that the examples are what the chart renders. With -update, it renders them anew.
func TestExamples(t *testing.T) {
	for name, values := range variants(t) {
		folder := filepath.Join(kubernetes, name)
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
			continue
		}
		path := filepath.Join(folder, "zrlmpid.yaml")
		text := append([]byte("# Rendered from the chart: go -C internal/tools/manifests test . -run TestExamples -update\n"),
			mustRender(t, values)...)
		if *update {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not what the chart renders (%v): run this test with -update", path, err)
		}
	}
}

// TestPackChart checks that a package of the chart renders like its folder, with the version as the image's tag, and
// that its bytes are reproducible.
func TestPackChart(t *testing.T) {
	var packages [][]byte
	for range 2 {
		path, err := PackChart(filepath.Join(kubernetes, "zrlmpid"), t.TempDir(), "v1.2.3~4bc159f2", time.Unix(1, 0))
		if err != nil || filepath.Base(path) != "zrlmpid-1.2.3-4bc159f2.tgz" {
			t.Fatal(path, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, text)
	}
	if !bytes.Equal(packages[0], packages[1]) {
		t.Error("two packages of the same chart differ")
	}
	packed, err := loader.LoadArchive(bytes.NewReader(packages[0]))
	if err != nil {
		t.Fatal(err)
	}
	values := variants(t)["host-network"]
	got, err := renderChart(packed, values)
	want := bytes.ReplaceAll(mustRender(t, values), []byte("image: zrlmpid\n"), []byte("image: zrlmpid:1.2.3-4bc159f2\n"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, the package renders\n%s", err, got)
	}
}

// TestLint checks the chart as "helm lint --strict" does, with the values of every variant.
func TestLint(t *testing.T) {
	for name, values := range variants(t) {
		for _, message := range lint.All(filepath.Join(kubernetes, "zrlmpid"), values, "default", true).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// TestRefusedValues checks that the schema rejects mistakes.
func TestRefusedValues(t *testing.T) {
	for text, want := range map[string]string{
		"replica: 2":                                     "replica",
		"replicas: -1":                                   "/replicas",
		"replicas: two":                                  "/replicas",
		"config: {ranks: []}":                            "/config",
		"config: 'log: {}'":                              "/config",
		"nodes: {Worker_A: 'ranks: []'}":                 "Worker_A",
		"nodes: {worker-a: ''}":                          "/nodes/worker-a",
		"networkPolicy: {from: []}":                      "/networkPolicy/from",
		"networkPolicy: {from: [{}]}":                    "/networkPolicy/from/0",
		"image: {digest: latest}":                        "/image/digest",
		"volume: {sizeLimit: 1 GB}":                      "/volume/sizeLimit",
		"volume: {accessModes: [ReadWriteMany]}":         "/volume/accessModes/0",
		"http: {port: 0}":                                "/http/port",
		"podLabels: {app.kubernetes.io/name: other}":     "app.kubernetes.io/name",
		"monitoring: {alerts: true}":                     "alerts",
		"topologySpreadConstraints: [{maxSkew: 1}]":      "/topologySpreadConstraints/0",
		"resources: {request: {cpu: 1}}":                 "request",
		"podDisruptionBudget: {enabled: true}":           "/podDisruptionBudget",
		"terminationGracePeriodSeconds: 30s":             "/terminationGracePeriodSeconds",
		"extraContainers: {name: program, image: image}": "/extraContainers",
	} {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %s", text, err, want)
		}
	}
}

// TestSchemaHasAllValues checks that values.yaml and the schema have the same keys.
func TestSchemaHasAllValues(t *testing.T) {
	type node struct {
		Properties map[string]node
	}
	loaded := loadChart(t)
	var schema node
	if err := json.Unmarshal(loaded.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // Helm's own
	var compare func(path string, schema node, value any)
	compare = func(path string, schema node, value any) {
		values, _ := value.(map[string]any)
		if schema.Properties == nil {
			return
		}
		if want, got := slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(schema.Properties)); path != ".resources" &&
			!slices.Equal(want, got) {
			t.Errorf("%s: values.yaml has %q, the schema %q", path, want, got)
		}
		for key, property := range schema.Properties {
			compare(path+"."+key, property, values[key])
		}
	}
	compare("", schema, loaded.Values)
}

// TestMonitoring checks that the chart delivers the rules and the dashboard as they are in deploy.
func TestMonitoring(t *testing.T) {
	objects, err := decode(decoder(t), mustRender(t, variants(t)["all"]))
	if err != nil {
		t.Fatal(err)
	}
	dashboard, err := os.ReadFile("../../../deploy/grafana/zrlmpid.json")
	if err != nil {
		t.Fatal(err)
	}
	config := configMaps(objects)[release+"-dashboard"]
	if config == nil || config.Data["zrlmpid.json"] != string(dashboard) || config.Labels["grafana_dashboard"] != "1" {
		t.Error("the ConfigMap has another dashboard")
	}
	var want []monitoringv1.RuleGroup
	files, err := filepath.Glob("../../../deploy/prometheus/*.rules.yml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rules monitoringv1.PrometheusRuleSpec
		if err := yaml.UnmarshalStrict(text, &rules); err != nil {
			t.Fatal(err)
		}
		want = append(want, rules.Groups...)
	}
	rule := only[*monitoringv1.PrometheusRule](t, objects)
	if !reflect.DeepEqual(rule.Spec.Groups, want) || rule.Labels["release"] != "prometheus" {
		t.Error("the PrometheusRule has other rules")
	}
	monitor := only[*monitoringv1.ServiceMonitor](t, objects)
	endpoint := monitor.Spec.Endpoints[0]
	if monitor.Spec.JobLabel != "app.kubernetes.io/name" || monitor.Labels[monitor.Spec.JobLabel] != "zrlmpid" {
		t.Errorf("the job is named by %s, and the rules need zrlmpid", monitor.Spec.JobLabel)
	}
	if fmt.Sprint(endpoint.Scheme) == "" || endpoint.Interval != "30s" || *endpoint.TLSConfig.ServerName != "zrlmpid" {
		t.Errorf("the endpoint is %+v", endpoint)
	}
}
