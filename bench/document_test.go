package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSaved: what was saved says the same when it is loaded.
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
		{`{"results": [{"workload": "ring", "sides": [{"key": "x"}]}]}`, "ring: x has no figures"},
		{`{"results": [{"workload": "ring", "sides": [{"key": "x", "rounds": [[]]}]}]}`, "ring: x has no figures"},
		{`{"results": [{"workload": "ring", "sides": [{"key": "x", "rounds": [[{"n": 1}], [{"n": 2}]]}]}]}`, "ring: the rounds of x have different steps"},
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

// TestUpdate: sections of a document are replaced, and nothing else is.
func TestUpdate(t *testing.T) {
	r := testReport("ring", [2]int{2, 4}, "extended-udp", "openmpi-tcp", "x")
	file := filepath.Join(t.TempDir(), "doc.md")
	var doc strings.Builder
	for _, name := range []string{"run", "pingpong", "ring", "memory", "verdicts"} {
		doc.WriteString("about " + name + "\n" + beginMark(name) + "\nold " + name + "\n" + endMark(name) + "\n")
	}
	if err := os.WriteFile(file, []byte(doc.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := r.Update(file, "img"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.sections(Format{Markdown: true, Images: "img"}) {
			if !strings.Contains(string(text), "about "+s.name+"\n"+beginMark(s.name)+"\n"+s.text+endMark(s.name)+"\n") {
				t.Errorf("section %s is not in\n%s", s.name, text)
			}
		}
		if !strings.Contains(string(text), "![Time of a hop in a ring, by the network](img/ring-network.svg)\n") {
			t.Errorf("there is no plot in\n%s", text)
		}
		if !strings.Contains(string(text), "old pingpong\n") || strings.Contains(string(text), "old ring") {
			t.Errorf("%s", text)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Replace(doc.String(), beginMark("ring"), "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Update(file, ""); err == nil || !strings.Contains(err.Error(), "there is no line <!-- bench: ring -->") {
		t.Error(err)
	}
}

// TestDocument: docs/performance.md has a place for every section.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(Workloads(), "run", "memory", "verdicts") {
		if _, err := replaceSection(string(text), section{name: name}); err != nil {
			t.Error(err)
		}
	}
}
