package main

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/lab/results"
)

var update = flag.Bool("update", false, "write the golden files of testdata/show")

// TestShowGolden checks how an archived run is shown as text, as Markdown and as JSON.
func TestShowGolden(t *testing.T) {
	const folder = "testdata/show/"
	for _, x := range []struct{ golden, args string }{
		{"run.txt", ""},
		{"run.md", "--markdown"},
		{"ring.txt", "ring"},
		{"targets.txt", "--targets"},
		{"targets.json", "--targets --json"},
		{"saved.json", "--json"},
	} {
		code, out, errs := zrlbench(t, append([]string{"show", folder + "run.json"}, strings.Fields(x.args)...)...)
		if code != exitOK || errs != "" {
			t.Fatalf("%s: exit code %d, %s", x.args, code, errs)
		}
		if *update {
			if err := os.WriteFile(folder+x.golden, []byte(out), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(folder + x.golden)
		if err != nil {
			t.Fatal(err)
		}
		if out != string(want) {
			t.Errorf("show %s: -update writes %s; read the difference:\n%s", x.args, x.golden, out)
		}
	}
}

// TestShowArchived checks that all archived runs are listed, and that each is found by its name and by its machine.
func TestShowArchived(t *testing.T) {
	code, list, errs := zrlbench(t, "show")
	if code != exitOK {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	var all []archivedRun
	code, text, errs := zrlbench(t, "show", "--json")
	if code != exitOK || json.Unmarshal([]byte(text), &all) != nil || len(all) != len(results.Names()) {
		t.Fatalf("exit code %d, %s%s", code, text, errs)
	}
	for _, run := range all {
		if !strings.Contains(list, "\n"+run.Name+" ") {
			t.Errorf("no line of %s in\n%s", run.Name, list)
		}
		code, out, errs := zrlbench(t, "show", run.Name)
		if code != exitOK || !strings.Contains(out, run.Machine.CPU) || !strings.Contains(out, run.Machine.Time) {
			t.Errorf("%s: exit code %d, %s%s", run.Name, code, out, errs)
		}
		// This finds the newest run of the machine, which may be a different run.
		code, text, errs := zrlbench(t, "show", run.Name[len("2006-01-02-"):], "--json")
		var newest bench.Report
		if code != exitOK || json.Unmarshal([]byte(text), &newest) != nil {
			t.Fatalf("%s: exit code %d, %s", run.Name, code, errs)
		}
		if newest.Machine.CPU != run.Machine.CPU || newest.Machine.Time < run.Machine.Time {
			t.Errorf("%s: exit code %d, %s", run.Name, code, errs)
		}
	}
}
