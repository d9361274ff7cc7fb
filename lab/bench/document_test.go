package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSaved checks that a saved report is unchanged when it is loaded.
func TestSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "out.json")
	r := testReport("pingpong", [2]int{4, million}, "cloudfpga", "upstream", rawPoll)
	if err := r.Save(file); err != nil {
		t.Fatal(err)
	}
	again, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var a, b strings.Builder
	if r.Print(&a, Format{Markdown: true}) != nil || again.Print(&b, Format{Markdown: true}) != nil || a.String() != b.String() {
		t.Errorf("%s\n%s", a.String(), b.String())
	}
	if err := again.Draw(filepath.Join(filepath.Dir(file), "plots")); err != nil {
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
		{`{"results": [{"workload": "ring", "sides": [{"key": "x", "rounds": [[]]}]}]}`, "ring, x: there are no figures"},
		{`{"results": [{"workload": "ring", "sides": [{"key": "x", "rounds": [[{"n": 1}], [{"n": 2}]]}]}]}`, "ring, x: the rounds have different steps"},
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

// runOf returns a run of some workloads, identified by its version.
func runOf(version string, workloads ...string) *Report {
	all := &Report{Rounds: 3, Machine: Machine{CPU: "Abacus", Cores: 2, Version: version, Time: "time of " + version}}
	for i, w := range workloads {
		one := testReport(w, [2]int{4, million}, "cloudfpga", openMPITCP, rawGRO).Results[0]
		for k := range one.Sides {
			for _, round := range one.Sides[k].Rounds {
				for n := range round {
					round[n].P50 *= float64(10*len(version) + i)
				}
			}
		}
		one.Sides[2].Rounds[0] = append(one.Sides[2].Rounds[0], Point{N: million, P50: 5})
		all.Results = append(all.Results, one)
	}
	all.finish()
	return all
}

// document returns text with blocks of those names.
func document(names ...string) string {
	var doc strings.Builder
	for _, name := range names {
		fmt.Fprintf(&doc, "about %s\n%s\nold %s\n%s\nmore of %s\n\n", name, beginMark(name), name, endMark(name), name)
	}
	return doc.String()
}

// update updates a file from a report, and returns its new content.
func update(t *testing.T, r *Report, file string) string {
	t.Helper()
	if err := r.Update(file, "img"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func newDocument(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestUpdate checks that the blocks of a report's workloads are replaced, and all other bytes are unchanged.
func TestUpdate(t *testing.T) {
	names := Workloads()
	file := newDocument(t, document(names...))
	full := update(t, runOf("one", Workloads()...), file)
	if strings.Contains(full, "old ") || strings.Count(full, "zrlmpid one") != len(names) {
		t.Fatalf("not every block is replaced, and says of which run it is:\n%s", full)
	}
	if again := update(t, runOf("one", Workloads()...), file); again != full {
		t.Errorf("the second time it is different:\n%s", again)
	}
	for _, replaced := range [][]string{{"bcast", "bcast-busy"}, {"ring"}, {"stream", "pingpong"}} {
		file := newDocument(t, full)
		got := update(t, runOf("other", replaced...), file)
		// With the blocks of the first run in place of the new ones, the document equals the original.
		back := got
		for _, b := range runOf("one", Workloads()...).blocks("img") {
			if !slices.Contains(replaced, b.name) {
				continue
			}
			next, err := b.into(back)
			if err != nil || next == back {
				t.Errorf("%v: block %s is not replaced: %v", replaced, b.name, err)
			}
			back = next
		}
		if back != full {
			t.Errorf("%v: something else is changed:\n%s", replaced, got)
		}
		if n := strings.Count(got, "zrlmpid other"); n != len(replaced) {
			t.Errorf("%v: %d blocks are of the other run", replaced, n)
		}
	}
}

// TestBlocks checks that a block describes its run, and mentions no other workload.
func TestBlocks(t *testing.T) {
	r := runOf("one", "ring", "pingpong", "stream", "bcast")
	r.Missing = []string{"ring, x: no ring", "pingpong, x: no ping-pong", "bcast, x: no broadcast", "One side is missing"}
	r.Failed = []string{"pingpong, y: it failed"}
	r.Results[3].Sides = nil // only the message about the missing side concerns bcast
	r.finish()
	text := map[string]string{}
	for _, b := range r.blocks("img") {
		text[b.name] = b.text
	}
	if len(text) != 3 {
		t.Errorf("%d blocks: %v", len(text), text)
	}
	for name, want := range map[string]string{
		"ring": `
**Peak memory of a process, in MiB**

| cloudfpga | openmpi-tcp | raw-udp-gro |
| --------: | ----------: | ----------: |
|      2.00 |        2.00 |        2.00 |

**The run**

- median of 3 rounds, all sides in turn; time of one
- 2 × Abacus, , , zrlmpid one
- a wake-up of a thread that slept 1 ms: –
- load average  before,  after
- Version of openmpi-tcp
- 3 000 messages, all verified
- *** ring, x: no ring ***
- *** bcast, x: no broadcast ***
- *** One side is missing ***

`,
		"pingpong": `
- *** pingpong, x: no ping-pong ***
- *** bcast, x: no broadcast ***
- *** One side is missing ***
- *** FAILED: pingpong, y: it failed ***

`,
	} {
		if !strings.HasSuffix(text[name], want) {
			t.Errorf("%s:\n%s", name, text[name])
		}
	}
	if !strings.HasPrefix(text["ring"], "![Time of a hop in a ring, over the network](img/ring-network.svg)\n\n") {
		t.Errorf("there is no plot:\n%s", text["ring"])
	}
}

// TestUpdateNoPlace checks that a document without a place for a block is unchanged, and that the error names the
// missing block.
func TestUpdateNoPlace(t *testing.T) {
	r := runOf("one", "ring", "rate")
	good := document("ring", "rate", "pingpong")
	for _, x := range []struct {
		text string
		says []string
	}{
		{document("rate", "targets"), []string{"there is no line <!-- bench: ring -->: write it where the block is to be, and <!-- end of bench: ring --> below it"}},
		{document("run", "verdicts"), []string{"no line <!-- bench: ring -->", "no line <!-- bench: rate -->"}},
		{strings.Replace(good, endMark("ring"), "", 1), []string{"the block of <!-- bench: ring --> has no end: write <!-- end of bench: ring -->"}},
		{strings.Replace(good, endMark("ring"), "", 1) + endMark("ring"), []string{"the block of <!-- bench: ring --> has no end"}},
		{good + document("rate"), []string{"there are two lines <!-- bench: rate -->"}},
		{strings.Replace(good, beginMark("rate")+"\n", beginMark("rate"), 1), []string{"there is no line <!-- bench: rate -->"}},
	} {
		file := newDocument(t, x.text)
		err := r.Update(file, "img")
		if err == nil {
			t.Errorf("there is no error that says %q", x.says)
			continue
		}
		for _, says := range append(x.says, file+" is not changed: ") {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q does not say %q", err, says)
			}
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != x.text {
			t.Errorf("%v: the document is changed:\n%s", err, text)
		}
	}
	if err := r.Update("/does/not/exist", ""); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestDocument checks that docs/performance.md has a place for every block, and no other marks.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	names := append(Workloads(), targetsBlock)
	for _, name := range names {
		if _, _, _, err := cutBlock(string(text), name); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(string(text), beginAny); n != len(names) {
		t.Errorf("there are %d marks for %d blocks", n, len(names))
	}
}
