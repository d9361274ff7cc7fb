package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/lab/results"
)

// archived returns all archived runs.
func archived(t *testing.T) map[string]*Report {
	t.Helper()
	all := map[string]*Report{}
	for _, name := range results.Names() {
		text, err := results.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if all[name], err = Parse(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestMissedTargets checks that lab/results/missed.json explains each target that an archived run has missed, exactly
// once, and no other target.
func TestMissedTargets(t *testing.T) {
	reasons := map[string]int{}
	for _, r := range results.Reasons() {
		if r.Why == "" {
			t.Errorf("no reason for %q", r.Targets)
		}
		for _, name := range r.Targets {
			reasons[name]++
		}
	}
	all := archived(t)
	for _, target := range targets {
		want := 0
		for _, r := range all {
			if slices.ContainsFunc(r.Targets, func(v TargetResult) bool { return v.Name == target.name && !v.Met }) {
				want = 1
			}
		}
		if got := reasons[target.name]; got != want {
			t.Errorf("%s: %d reasons instead of %d", target.name, got, want)
		}
		delete(reasons, target.name)
	}
	for name := range reasons {
		t.Errorf("a reason for %q, which is not a target", name)
	}
}

// TestArchivedRuns checks that the file of a run is named after its date and machine, and contains no single rounds.
func TestArchivedRuns(t *testing.T) {
	for name, r := range archived(t) {
		if len(name) < len(r.Name()) || name[:len(r.Name())] != r.Name() {
			t.Errorf("%s is named %s", r.Name(), name)
		}
		text, err := results.Read(name)
		var b strings.Builder
		if err2 := r.WriteJSON(&b); err != nil || err2 != nil || b.String() != string(text) {
			t.Errorf("%s: zrlbench show --json prints something else: %v, %v", name, err, err2)
		}
		if !r.isArchived() {
			t.Errorf("%s has the figures of single rounds: add runs with zrlbench archive", name)
		}
		for _, v := range r.Targets {
			known := slices.ContainsFunc(targets,
				func(x target) bool { return x.name == v.Name && x.workload == v.Workload })
			if v.Value == nil || !known {
				t.Errorf("%s: %s has no figure or is no target", name, v.Name)
			}
		}
		for _, x := range r.Tables {
			for _, row := range x.Rows {
				if len(row) != len(x.Columns) {
					t.Errorf("%s: %s has a row of %d cells in %d columns", name, x.Title, len(row), len(x.Columns))
				}
			}
		}
	}
}
