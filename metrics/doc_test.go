package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
)

// TestDocumentation checks that every family has a row in docs/metrics.md with its type and labels, and that
// every row describes a family.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(zrlmpi_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\|")
	label := regexp.MustCompile("`([a-z_]+)`")
	documented := make(map[string]bool)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		name := m[1]
		if documented[name] {
			t.Errorf("%s has two rows", name)
		}
		documented[name] = true
		i := slices.IndexFunc(families, func(f *family) bool { return f.name == name })
		if i < 0 {
			t.Errorf("%s is documented, and there is no such metric", name)
			continue
		}
		f := families[i]
		if want := strings.ToLower(f.kind.String()); m[2] != want {
			t.Errorf("%s is documented as a %s, and is a %s", name, m[2], want)
		}
		var labels []string
		for _, l := range label.FindAllStringSubmatch(m[3], -1) {
			labels = append(labels, l[1])
		}
		if !slices.Equal(labels, f.labels) {
			t.Errorf("%s is documented with the labels %v, and has %v", name, labels, f.labels)
		}
	}
	for _, f := range families {
		if !documented[f.name] {
			t.Errorf("%s has no row", f.name)
		}
	}
	for _, p := range phases.PhaseNames {
		if !strings.Contains(string(text), "| `"+p.Direction+"` | `"+p.Phase+"` |") {
			t.Errorf("the phase %s of %s has no row", p.Phase, p.Direction)
		}
	}
}
