package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// csv is an example of benchstat's output.
const csv = `goos: linux
pkg: example.com/x
,base,,new,,,
,sec/op,CI,sec/op,CI,vs base,P
A-2,1.0e-07,2%,1.30e-07,2%,+30.00%,p=0.002 n=6
B-2,1.0e-07,4%,9.0e-07,4%,~,p=0.087 n=6
C-2,1.0e-07,2%,0.5e-07,3%,-50.00%,p=0.002 n=6
geomean,1.0e-07,,9.0e-07,,+800.00%,

,base,,new,,,
,B/s,CI,B/s,CI,vs base,P
A-2,1.30e+09,0%,1.00e+09,0%,-23.08%,p=0.002 n=6
C-2,1.0e+09,0%,2.0e+09,0%,+100.00%,p=0.002 n=6
pkg: example.com/y
,base,,new,,,
,allocs/op,CI,allocs/op,CI,vs base,P
D-2,0,0%,1,0%,?,p=0.002 n=6
`

// TestWorse checks that the script finds all changes for the worse that exceed the threshold, and no others.
func TestWorse(t *testing.T) {
	awk, err := exec.LookPath("awk")
	if err != nil {
		t.Skip("NOT CHECKED: ", err)
	}
	file := filepath.Join(t.TempDir(), "csv")
	for _, x := range []struct {
		text, threshold string
		fails           bool
		want            string
	}{
		{csv, "25", true, `worse by more than 25 %: example.com/x A-2: 1.30e-07 sec/op instead of 1.0e-07
worse by more than 25 %: example.com/x A-2: 1.00e+09 B/s instead of 1.30e+09
worse by more than 25 %: example.com/y D-2: 1 allocs/op instead of 0
`},
		{csv, "40", true, "worse by more than 40 %: example.com/y D-2: 1 allocs/op instead of 0\n"},
		{csv[:strings.Index(csv, "pkg: example.com/y")], "40", false,
			"no median is worse by more than 40 % (4 differ significantly)\n"},
		{"", "5", false, "no median is worse by more than 5 % (0 differ significantly)\n"},
	} {
		if err := os.WriteFile(file, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(awk, "-v", "threshold="+x.threshold, "-f", "worse.awk", file).CombinedOutput()
		if (err != nil) != x.fails || string(out) != x.want {
			t.Errorf("%s %%: %v\n%s", x.threshold, err, out)
		}
	}
}

// TestCompareMistakes checks that the script reports invalid arguments.
func TestCompareMistakes(t *testing.T) {
	for _, program := range []string{"bash", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("NOT CHECKED: ", err)
		}
	}
	cmd := exec.Command("bash", "compare.sh")
	cmd.Env = append(os.Environ(), "BASE=no-such-revision", "THRESHOLD=")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out),
		"BASE=no-such-revision is no revision: name one, as in make bench-compare BASE=HEAD") {
		t.Errorf("%v\n%s", err, out)
	}
}
