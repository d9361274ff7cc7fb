// Package grafana_test checks the Grafana dashboard.
package grafana_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// shipped is the name of the file that Grafana loads.
const shipped = "zrlmpid.json"

// columnsOfGrid is the width of a dashboard in grid columns.
const columnsOfGrid = 24

// datasource is a reference to a data source.
type datasource struct{ Type, UID string }

// prometheus is the data source that the user selects.
var prometheus = datasource{"prometheus", "${datasource}"}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dashboard holds the parts of a dashboard that the tests use.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Panels        []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ H, W, X, Y int }
		Datasource               datasource
		FieldConfig              struct {
			Defaults struct {
				Unit       string
				Custom     struct{ ThresholdsStyle struct{ Mode string } }
				Thresholds struct{ Steps []struct{ Color string } }
			}
		}
		Targets []struct {
			Expr, RefID, LegendFormat string
			Instant, Range            bool
			Datasource                datasource
		}
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
	Templating struct {
		List []struct{ Name, Label, Description, Definition string }
	}
}

// load reads the shipped dashboard.
func load(t *testing.T) *dashboard {
	t.Helper()
	d := new(dashboard)
	if err := json.Unmarshal(read(t, shipped), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPanelsAreComplete: each panel has a position, a unique number, a query, a description and a unit.
func TestPanelsAreComplete(t *testing.T) {
	d := load(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 39 {
		t.Errorf("%q, %q, schema %d", d.UID, d.Title, d.SchemaVersion)
	}
	ids, titles, taken := map[int]string{}, map[string]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if other, ok := ids[p.ID]; ok || p.ID <= 0 {
			t.Errorf("%s: number %d is taken by %s", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		if titles[p.Title] || p.Title == "" {
			t.Errorf("there are two panels %q", p.Title)
		}
		titles[p.Title] = true
		g := p.GridPos
		if g.X < 0 || g.W < 1 || g.H < 1 || g.X+g.W > columnsOfGrid {
			t.Errorf("%s is outside of the grid: %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Fatalf("%s lies upon %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Description) < 30 || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 ||
			p.Datasource != prometheus {
			t.Errorf("%s has no description, unit or query, or another data source", p.Title)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.Expr == "" || refs[q.RefID] || q.RefID == "" || q.Datasource != prometheus || q.Instant == q.Range {
				t.Errorf("%s: query %+v", p.Title, q)
			}
			refs[q.RefID] = true
			if p.Type == "timeseries" && q.LegendFormat == "" {
				t.Errorf("%s: query %s has no legend", p.Title, q.RefID)
			}
		}
	}
	for at := range taken {
		for x := range columnsOfGrid {
			if taken[[2]int{x, at[1]}] == "" {
				t.Fatalf("the line of %s has a gap at column %d", taken[at], x)
			}
		}
	}
	if len(d.Panels) < 40 {
		t.Errorf("%d panels", len(d.Panels))
	}
}

// TestPanelsAreDocumented: docs/operations.md names only existing panels.
func TestPanelsAreDocumented(t *testing.T) {
	titles := map[string]bool{}
	for _, p := range load(t).Panels {
		titles[p.Title] = true
	}
	_, section, _ := strings.Cut(string(read(t, "../../docs/operations.md")), "\n## The dashboard\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := regexp.MustCompile(`\*([^*]+)\*`).FindAllStringSubmatch(section, -1)
	if len(named) < 10 {
		t.Errorf("docs/operations.md names %d panels", len(named))
	}
	for _, match := range named {
		if title := strings.Join(strings.Fields(match[1]), " "); !titles[title] {
			t.Errorf("docs/operations.md names the panel %q, which does not exist", title)
		}
	}
}

// TestPanelsHaveUnits: Grafana supports the units of all panels.
func TestPanelsHaveUnits(t *testing.T) {
	known := []string{"none", "short", "s", "bytes", "Bps", "pps", "mps", "cps", "percentunit", "string"}
	for _, p := range load(t).Panels {
		if p.Type != "row" && !slices.Contains(known, p.FieldConfig.Defaults.Unit) {
			t.Errorf("%s: unit %q", p.Title, p.FieldConfig.Defaults.Unit)
		}
	}
}

// TestLatencyPanelsHaveThresholds: the graphs of times show which of them are too long.
func TestLatencyPanelsHaveThresholds(t *testing.T) {
	for _, p := range load(t).Panels {
		field := &p.FieldConfig.Defaults
		if p.Type == "timeseries" && field.Unit == "s" &&
			(field.Custom.ThresholdsStyle.Mode != "dashed" || len(field.Thresholds.Steps) < 2) {
			t.Errorf("%s has no thresholds", p.Title)
		}
	}
}

var (
	variableName = regexp.MustCompile(`\$\{?(\w+)`)
	metricName   = regexp.MustCompile(`\bzrlmpi_\w+`)
)

// TestQueriesUseWhatThereIs: queries use only existing variables and documented metrics.
func TestQueriesUseWhatThereIs(t *testing.T) {
	d := load(t)
	names := []string{"__rate_interval", "__range"}
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
		if v.Label == "" || v.Description == "" {
			t.Errorf("variable %s has no label or description", v.Name)
		}
	}
	manual := string(read(t, "../../docs/metrics.md"))
	used := map[string]bool{}
	check := func(where, expr string) {
		for _, m := range variableName.FindAllStringSubmatch(expr, -1) {
			used[m[1]] = true
			if !slices.Contains(names, m[1]) {
				t.Errorf("%s: there is no variable %s", where, m[1])
			}
		}
		for _, name := range metricName.FindAllString(expr, -1) {
			if !strings.Contains(manual, "`"+strings.TrimSuffix(name, "_bucket")+"`") {
				t.Errorf("%s: docs/metrics.md has no %s", where, name)
			}
		}
	}
	for _, v := range d.Templating.List {
		check("variable "+v.Name, v.Definition)
	}
	for _, a := range d.Annotations.List {
		check("annotation "+a.Name, a.Expr)
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			check(p.Title, q.Expr)
			check(p.Title, q.Datasource.UID)
			if strings.Contains(q.Expr, "zrlmpi_") && !strings.Contains(q.Expr, "$instance") {
				t.Errorf("%s: query %s is not of the selected daemons", p.Title, q.RefID)
			}
		}
	}
	for _, name := range names {
		if !used[name] {
			t.Errorf("variable %s does nothing", name)
		}
	}
	// The dashboard shows every documented metric.
	for _, m := range regexp.MustCompile("(?m)^\\| `(zrlmpi_\\w+)`").FindAllStringSubmatch(manual, -1) {
		if !bytes.Contains(read(t, shipped), []byte(m[1])) {
			t.Errorf("no panel shows %s", m[1])
		}
	}
}

// TestQueriesParse: Prometheus can parse all queries, which the test passes to it as rules.
func TestQueriesParse(t *testing.T) {
	promtool := needs.Program(t, "whether the dashboard's queries parse", "promtool", "prometheus")
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	type group struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	}
	replace := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h")
	var groups []group
	for _, p := range load(t).Panels {
		if len(p.Targets) == 0 {
			continue
		}
		g := group{Name: p.Title}
		for _, q := range p.Targets {
			g.Rules = append(g.Rules, rule{"query:" + q.RefID, replace.Replace(q.Expr)})
		}
		groups = append(groups, g)
	}
	check := func() (string, error) {
		text, err := yaml.Marshal(map[string]any{"groups": groups})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "queries.yml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", path).CombinedOutput()
		return string(out), err
	}
	if out, err := check(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	groups[3].Rules[0].Expr += ")"
	if out, err := check(); err == nil {
		t.Errorf("promtool takes anything:\n%s", out)
	}
}
