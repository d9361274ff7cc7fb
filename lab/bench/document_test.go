package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSaved checks that a report is unchanged after it was saved and loaded.
func TestSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "out.json")
	r := testReport("pingpong", [2]int{4, millionWords}, "cloudfpga", "upstream", rawPoll)
	if err := r.Save(file); err != nil {
		t.Fatal(err)
	}
	again, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var a, b strings.Builder
	if r.Print(&a, Format{Markdown: true}) != nil || again.Print(&b, Format{Markdown: true}) != nil ||
		a.String() != b.String() {
		t.Errorf("%s\n%s", a.String(), b.String())
	}
	if err := again.Draw(filepath.Join(filepath.Dir(file), "plots"), func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "plots", "pingpong-latency-network.svg")); err != nil {
		t.Error(err)
	}
	for _, x := range []struct{ text, says string }{
		{"{", "unexpected end"},
		{"{}", "there are no results"},
		{`{"results": [{"workload": "latency"}]}`, `there is no workload "latency"`},
		{`{"results": [{"workload": "ring", "sides": [{"key": "x"}]}]}`, "ring, x: there are no figures"},
		{`{"results": [{"workload": "ring", "sides": [{"key": "x", "rounds": [[]]}]}]}`,
			"ring, x: there are no figures"},
		{`{"results": [{"workload": "ring", "sides": [{"key": "x", "rounds": [[{"n": 1}], [{"n": 2}]]}]}]}`,
			"ring, x: the rounds have different steps"},
	} {
		bad := filepath.Join(t.TempDir(), "bad.json")
		if err := os.WriteFile(bad, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(bad); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.text, err)
		}
	}
	if _, err := Load("/does/not/exist"); err == nil {
		t.Error("a file that does not exist is loaded")
	}
}

// runOf returns a run of the given workloads, which the version identifies.
func runOf(version string, workloads ...string) *Report {
	all := &Report{Rounds: 3, Machine: Machine{CPU: "Abacus", Cores: 2, Version: version, Time: "time of " + version}}
	for i, w := range workloads {
		one := testReport(w, [2]int{4, millionWords}, "cloudfpga", openMPITCP, rawGRO).Results[0]
		for k := range one.Sides {
			for _, round := range one.Sides[k].Rounds {
				for n := range round {
					round[n].P50 *= float64(10*len(version) + i)
				}
			}
		}
		one.Sides[2].Rounds[0] = append(one.Sides[2].Rounds[0], Point{N: millionWords, P50: 5})
		all.Results = append(all.Results, one)
	}
	all.computeDerived()
	return all
}

func newDocument(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestUpdate checks that Update replaces the summary and no other byte.
func TestUpdate(t *testing.T) {
	file := newDocument(t, "before\n"+summaryBegin+"old\n"+summaryEnd+"\nafter\n")
	for range 2 {
		if err := runOf("one", "pingpong", "ring").Update(file); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	if !strings.HasPrefix(doc, "before\n"+summaryBegin+"**Medians") ||
		!strings.HasSuffix(doc, "\n"+summaryEnd+"\nafter\n") || strings.Contains(doc, "old") {
		t.Error(doc)
	}
	for _, want := range []string{
		"|                          | cloudFPGA | attached | UDP | TCP | Open MPI, TCP | shm | Open MPI, shm | " +
			"MPICH, shm |\n",
		"|        Ping-pong 4 B, µs |       300 |        – |   – |   – |           150 |   – |             – |       " +
			"   – |\n",
		"\n2 × Abacus; ; ; zrlmpid one; median of 3 rounds; time of one; a wake-up",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %q in\n%s", want, doc)
		}
	}
}

// TestUpdateNoPlace checks that a document is unchanged unless it has exactly one place for the summary.
func TestUpdateNoPlace(t *testing.T) {
	r := runOf("one", "ring")
	for _, x := range []struct{ text, says string }{
		{"no marks\n", "no line <!-- bench: summary -->: write it above"},
		{summaryBegin + "no end\n", "no line <!-- end of bench: summary --> below"},
		{summaryBegin + summaryEnd + "\n" + summaryBegin + summaryEnd, "two lines <!-- bench: summary -->"},
	} {
		file := newDocument(t, x.text)
		if err := r.Update(file); err == nil || !strings.Contains(err.Error(), x.says) ||
			!strings.Contains(err.Error(), file+" is unchanged: ") {
			t.Errorf("%v instead of %s", err, x.says)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != x.text {
			t.Errorf("%v: the document is changed:\n%s", err, text)
		}
	}
	if err := r.Update("/does/not/exist"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestDocument checks that the summary in docs/performance.md is the summary of an archived run.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, summary, _, err := cutSummary(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range archived(t) {
		if r.Summary() == summary {
			return
		}
	}
	t.Errorf("the table is of no run in lab/results: make bench-docs writes both\n%s", summary)
}

// TestArchive checks that a run shows the same tables after it was archived, and also its verdicts.
func TestArchive(t *testing.T) {
	r := runOf("one", "pingpong", "stream", "ring")
	file := filepath.Join(t.TempDir(), "run.json")
	if err := r.Archive().Save(file); err != nil {
		t.Fatal(err)
	}
	a, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	var again strings.Builder
	if err2 := a.WriteJSON(&again); err != nil || err2 != nil || again.String() != string(text) {
		t.Errorf("%v, %v: it is saved as something else:\n%s\n%s", err, err2, text, again.String())
	}
	if !a.isArchived() || len(a.Targets) == 0 || len(a.Ratios) != len(r.Ratios) || len(a.Growth) != len(r.Growth) {
		t.Errorf("%+v", a)
	}
	var before, after strings.Builder
	if r.WithTargets().Print(&before, Format{}) != nil || a.Print(&after, Format{}) != nil {
		t.Error("they are not printed")
	}
	head, _, _ := strings.Cut(before.String(), "Targets and")
	if !strings.HasPrefix(after.String(), head) {
		t.Errorf("%s\n%s", before.String(), after.String())
	}
	some, err := a.Select("ring")
	if err != nil || len(some.Results) != 1 || some.Results[0].Workload != "ring" || len(a.Results) != 3 {
		t.Errorf("%v, %+v", err, some)
	}
	if _, err := a.Select("rate"); err == nil || !strings.Contains(err.Error(), "has no figures of rate") {
		t.Error(err)
	}
}
