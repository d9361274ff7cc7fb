package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// simulate runs zrlbench paper, and returns its output and exit code.
func simulate(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"paper"}, args...), strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

// TestPaperGolden checks that the same parameters yield the same results.
func TestPaperGolden(t *testing.T) {
	for _, test := range []struct {
		golden string
		args   []string
	}{
		{"bcast_table2.json", []string{"bcast", "--table2", "--json"}},
		{"bcast_figures.txt", []string{"bcast", "--figures"}},
		{"bcast_busy.txt", []string{"bcast", "--nodes", "24", "--bytes", "300", "--busy", "1=1100,2=600,3=40,9=24",
			"--root", "5"}},
		{"bcast_busy.json", []string{"bcast", "--nodes", "5", "--bytes", "64", "--busy", "1=40", "--clock", "200",
			"--word", "8", "--json"}},
		{"match_preposted.txt", []string{"match", "--engine=false"}},
		{"match_unload.json", []string{"match", "--benchmark", "unload", "--depths", "256,1000", "--engine=false",
			"--json"}},
		{"matvec.txt", []string{"matvec", "--sizes", "50"}},
		{"backsub.json", []string{"backsub", "--sizes", "100", "--processors", "6,8", "--json"}},
		{"scale.txt", []string{"scale", "--ranks", "2,8,4100", "--collectives", "allreduce,bcast,barrier", "--bytes",
			"8"}},
		{"scale_cluster.json", []string{"scale", "--cluster", "testdata/paper/cluster.yaml", "--ranks", "16",
			"--collectives", "alltoall", "--bytes", "8,64KiB", "--json"}},
		{"choose.txt", []string{"choose", "testdata/paper/cluster.yaml"}},
		{"choose_fpga.txt", []string{"choose", "testdata/paper/fpga.yaml"}},
	} {
		t.Run(test.golden, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", "paper", test.golden))
			if err != nil {
				t.Fatal(err)
			}
			got, stderr, code := simulate(t, test.args...)
			if code != exitOK || stderr != "" || got != string(want) {
				t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, stderr, got, want)
			}
		})
	}
}

func TestPaperUsage(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"bcast --nodes 1", "1 nodes: must be 2 to 256"},
		{"bcast --busy 1", `--busy "1": must be a node and its bytes`},
		{"bcast --busy x=1", `--busy "x=1"`},
		{"bcast --busy 1=1,1=2", "node 1 is listed twice"},
		{"bcast --busy 9=1", "busy node 9"},
		{"bcast --clock 0", "--clock 0"},
		{"bcast --clock NaN", "--clock NaN"},
		{"bcast --table2 --nodes 3", "--nodes"},
		{"bcast --table2 --figures", "only one of"},
		{"bcast 3", "3"},
		{"broadcast", `unknown command "broadcast"`},
		{"matvec --sizes 0", "--sizes: size 0: must be 1 to 1000"},
		{"backsub --processors 17", "--processors: 17 processors: must be 1 to 16"},
		{"match --benchmark x", `--benchmark "x"`},
		{"match --depths 0", "depth 0: must be 1 to 33024"},
		{"match --depths 33025", "depth 33025"},
		{"bcast --svg x", "--svg: only --figures has plots"},
		{"scale --collectives x", `--collectives: unknown collective "x"`},
		{"scale --bytes 6", `--bytes "6": must be a multiple of 4`},
		{"scale --bytes 2GiB", `--bytes "2GiB"`},
		{"scale --ranks 1", "--ranks: 1 ranks: must be 2 to 65536"},
		{"scale --compare x --ranks 2", "--ranks: --compare takes what was measured"},
		{"scale --cluster testdata/paper/measured.yaml", `unknown key "version"`},
		{"scale --measured testdata/paper/cluster.yaml", `unknown key "ranks"`},
		{"choose", "accepts 1 arg(s)"},
		{"choose testdata/paper/measured.yaml", "measured.yaml:1: unknown key"},
		{"choose testdata/paper/fpga.yaml -o x", "ranks with FPGAs read no table"},
	} {
		stdout, stderr, code := simulate(t, strings.Fields(test.args)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, %s%s", test.args, code, stdout, stderr)
		}
	}
}

// TestPaperEngine checks that the engine is measured in the same run as the designs.
func TestPaperEngine(t *testing.T) {
	for _, benchmark := range []string{"preposted", "unload"} {
		stdout, stderr, code := simulate(t, "match", "--depths", "1,300", "--benchmark", benchmark, "--json")
		var got []struct {
			Depth  int
			Engine float64 `json:"engine_ns"`
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK {
			t.Fatalf("%v, exit code %d, %s%s", err, code, stdout, stderr)
		}
		if len(got) != 2 || got[1].Depth != 300 || got[0].Engine <= 0 || got[1].Engine <= 0 {
			t.Errorf("%+v", got)
		}
	}
}

// TestPaperCompare checks that a comparison includes calls used for the fit, other calls, and totals.
func TestPaperCompare(t *testing.T) {
	stdout, stderr, code := simulate(t, "scale", "--compare", "testdata/paper/measured.yaml", "--json")
	var got struct {
		Comparisons []struct {
			Class  string
			Ranks  int
			Fitted bool
		}
		Total struct {
			Cases    int
			NearBest int `json:"near_best"`
		}
		Parameters []struct{ Deviation float64 }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK {
		t.Fatalf("%v, exit code %d, %s%s", err, code, stdout, stderr)
	}
	if len(got.Comparisons) != 3 || got.Comparisons[1].Ranks != 4 || !got.Comparisons[1].Fitted ||
		got.Comparisons[2].Fitted || got.Total.Cases != 5 || got.Total.NearBest != 5 ||
		got.Parameters[0].Deviation > 0.05 {
		t.Errorf("%+v", got)
	}
	stdout, stderr, code = simulate(t, "scale", "--compare", "testdata/paper/measured.yaml")
	if code != exitOK || !strings.Contains(stdout, "5 (100.0 %)") || !strings.Contains(stdout, "o (ns)") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{"scale", "--compare", "testdata/none"}, {"choose", "testdata/none"}} {
		if _, stderr, code := simulate(t, args...); code != exitFailure || !strings.Contains(stderr, "no such file") {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	if _, stderr, code := simulate(t, "scale", "--compare", chosenTable(t)); code != exitFailure ||
		!strings.Contains(stderr, "no measurements") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// chosenTable returns the name of a file with a table that paper choose wrote.
func chosenTable(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.yaml")
	if stdout, stderr, code := simulate(t, "choose", "testdata/paper/cluster.yaml", "--measured",
		"testdata/paper/measured.yaml", "--output", file, "--json"); code != exitOK {
		t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
	}
	return file
}

// TestPaperChosenTable checks that the engine can read a table that paper choose wrote.
func TestPaperChosenTable(t *testing.T) {
	file, err := os.Open(chosenTable(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table, err := collectives.Load(file, "table.yaml")
	if err != nil {
		t.Fatal(err)
	}
	call := coll.Call{Collective: coll.Allgather, Ranks: 16, Bytes: 4096, Elem: 4, Flows: true}
	if by := table.Choose(choice.OversubscribedNetwork,
		&call); by == choice.Default().Choose(choice.OversubscribedNetwork, &call) ||
		table.Hash() == choice.Default().Hash() {
		t.Errorf("the table has %v, as the built-in one", by)
	}
}

func TestPaperChooseTooMany(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte("ranks: 1025"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := simulate(t, "choose", file); code != exitUsage ||
		!strings.Contains(stderr, "ranks: 1025 is outside 2 to 1024") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestPaperPlots(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct {
		args  []string
		files []string
	}{
		{[]string{"scale", "--ranks", "2,4", "--bytes", "8,64KiB", "--collectives", "bcast,barrier"},
			[]string{"scale-bcast-8.svg", "scale-bcast-64KiB.svg", "scale-barrier-0.svg"}},
		{[]string{"bcast", "--figures"}, []string{"bcast-4.svg", "bcast-8.svg", "bcast-16.svg", "bcast-32.svg"}},
		{[]string{"match", "--depths", "1,300", "--engine=false"}, []string{"match-preposted.svg"}},
		{[]string{"matvec", "--sizes", "20,50"}, []string{"matvec.svg"}},
	} {
		folder := filepath.Join(dir, x.args[0])
		if stdout, stderr, code := simulate(t, append(x.args, "--svg", folder)...); code != exitOK {
			t.Fatalf("%v: exit code %d, %s%s", x.args, code, stdout, stderr)
		}
		for _, name := range x.files {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil || !strings.Contains(string(text), "<path") {
				t.Errorf("%s: %v, %s", name, err, text)
			}
		}
		if all, err := os.ReadDir(folder); err != nil || len(all) != len(x.files) {
			t.Errorf("%v: %v, %v", x.args, all, err)
		}
	}
	if _, stderr, code := simulate(t, "matvec", "--sizes", "20", "--svg",
		"testdata/paper/cluster.yaml"); code != exitFailure {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// TestPaperPlotsOfDocs checks that the plots in docs/papers.md are up to date.
func TestPaperPlotsOfDocs(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("simulates all cells of the papers, in one goroutine")
	}
	for _, args := range []string{"bcast --figures", "match --engine=false", "match --engine=false --benchmark unload",
		"matvec", "backsub"} {
		folder := t.TempDir()
		if stdout, stderr, code := simulate(t, append(strings.Fields(args), "--svg", folder)...); code != exitOK {
			t.Fatalf("%s: exit code %d, %s%s", args, code, stdout, stderr)
		}
		files, err := os.ReadDir(folder)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", args, files, err)
		}
		for _, file := range files {
			got, err1 := os.ReadFile(filepath.Join(folder, file.Name()))
			want, err2 := os.ReadFile(filepath.Join("../../../docs/img", file.Name()))
			if err := errors.Join(err1, err2); err != nil || !bytes.Equal(got, want) {
				t.Errorf("docs/img/%s is another plot than that of zrlbench paper %s: %v", file.Name(), args, err)
			}
		}
	}
}
