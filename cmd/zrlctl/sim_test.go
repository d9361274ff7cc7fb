package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// simulate runs zrlctl sim and returns its output and exit code.
func simulate(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"sim"}, args...), strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

// The same parameters have the same bytes as results.
func TestSimGolden(t *testing.T) {
	for _, test := range []struct {
		golden string
		args   []string
	}{
		{"bcast_table2.json", []string{"bcast", "--table2", "--json"}},
		{"bcast_figures.txt", []string{"bcast", "--figures"}},
		{"bcast_busy.txt", []string{"bcast", "--nodes", "24", "--bytes", "300", "--busy", "1=1100,2=600,3=40,9=24", "--root", "5"}},
		{"bcast_busy.json", []string{"bcast", "--nodes", "5", "--bytes", "64", "--busy", "1=40", "--clock", "200", "--word", "8", "--json"}},
		{"match_preposted.txt", []string{"match", "--engine=false"}},
		{"match_unload.json", []string{"match", "--benchmark", "unload", "--depths", "256,1000", "--engine=false", "--json"}},
		{"matvec.txt", []string{"matvec", "--sizes", "50"}},
		{"backsub.json", []string{"backsub", "--sizes", "100", "--processors", "6,8", "--json"}},
	} {
		t.Run(test.golden, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", "sim", test.golden))
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

func TestSimUsage(t *testing.T) {
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
		{"bcast 3", `unexpected argument "3"`},
		{"broadcast", "bcast"},
		{"matvec --sizes 0", "--sizes: size 0: must be 1 to 1000"},
		{"backsub --processors 17", "--processors: 17 processors: must be 1 to 16"},
		{"match --benchmark x", `--benchmark "x"`},
		{"match --depths 0", "depth 0: must be 1 to 33024"},
		{"match --depths 33025", "depth 33025"},
		{"match --depths x", "must be whole numbers"},
	} {
		stdout, stderr, code := simulate(t, strings.Fields(test.args)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, %s%s", test.args, code, stdout, stderr)
		}
	}
}

// The engine is measured in the same run.
func TestSimEngine(t *testing.T) {
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
