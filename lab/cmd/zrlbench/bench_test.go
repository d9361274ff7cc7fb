package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/lab/goodput"
	"github.com/zrlmpi/zrlmpid/lab/path"
	"github.com/zrlmpi/zrlmpid/lab/tune"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

// TestMain runs a rank if the test binary is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{bench.RankCommand, tune.RankCommand, goodput.FlowCommand,
		path.EmulatorCommand}, os.Args[1]) {
		main()
	}
	// With the race detector, a rank would otherwise sleep for a second before it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(statetest.Run(m))
}

const testTimeout = 20 * time.Second

// zrlbench runs the program until it ends.
func zrlbench(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestBench(t *testing.T) {
	dir := t.TempDir()
	file, plots, doc := filepath.Join(dir, "out.json"), filepath.Join(dir, "plots"), filepath.Join(dir, "doc.md")
	code, out, errs := zrlbench(t, "ring", "pingpong", "--quick", "--only", "cloudfpga,attached", "--save", file,
		"--svg", plots)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{"== Ring (ring) ==", "== Ping-pong (pingpong) ==", "cloudfpga", "attached",
		"messages, all verified"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if !strings.Contains(errs, "[4/4, about ") {
		t.Errorf("no progress is reported: %s", errs)
	}
	if _, err := os.Stat(filepath.Join(plots, "ring-network.svg")); err != nil {
		t.Error(err)
	}
	if code, again, _ := zrlbench(t, "show", file); code != exitOK || again != out {
		t.Errorf("show prints something else: %d\n%s\n%s", code, again, out)
	}
	var r bench.Report
	if code, text, _ := zrlbench(t, "show", file, "--json"); code != exitOK ||
		json.Unmarshal([]byte(text), &r) != nil || len(r.Results) != 2 {
		t.Errorf("%d\n%s", code, text)
	}
	code, markdown, _ := zrlbench(t, "show", file, "--markdown")
	if code != exitOK || !strings.Contains(markdown, "## Ring\n\n**Time of a hop") {
		t.Errorf("%d\n%s", code, markdown)
	}
	// The command writes the summary into a document, and draws the plots that the document shows.
	const marks = "<!-- bench: summary -->\n<!-- end of bench: summary -->\n"
	if err := os.WriteFile(doc, []byte(marks+"![ring](img/ring-network.svg)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	images := filepath.Join(dir, "img")
	code, _, errs = zrlbench(t, "show", file, "--into", doc, "--svg", images)
	if text, err := os.ReadFile(doc); code != exitOK || err != nil ||
		!strings.Contains(string(text), "Ping-pong 4 B, µs |") {
		t.Errorf("%d, %v\n%s\n%s", code, err, errs, text)
	}
	if files, err := os.ReadDir(images); err != nil || len(files) != 1 || files[0].Name() != "ring-network.svg" {
		t.Errorf("%v, %v", files, err)
	}
	// If the document has no place for the summary, neither the document nor any plot changes.
	if err := os.WriteFile(doc, []byte("no marks\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs = zrlbench(t, "show", file, "--into", doc, "--svg", filepath.Join(dir, "other"))
	if code != exitFailure || !strings.Contains(errs, doc+" is unchanged: no line <!-- bench: summary -->: ") {
		t.Errorf("%d\n%s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("plots are drawn: %v", err)
	}
	// An archived run shows the same figures, and contains its command line.
	runs := filepath.Join(dir, "runs")
	code, name, errs := zrlbench(t, "archive", file, "--folder", runs)
	if code != exitOK || filepath.Dir(name) != runs {
		t.Fatalf("%d\n%s%s", code, name, errs)
	}
	code, again, errs := zrlbench(t, "show", strings.TrimSpace(name), "ring")
	if _, tables, _ := strings.Cut(out, "== Ring (ring) =="); code != exitOK ||
		!strings.Contains(again, strings.Split(tables, "\n\n")[1]) ||
		!strings.HasPrefix(again, "zrlbench ring pingpong --quick ") || strings.Contains(again, "Ping-pong") {
		t.Errorf("%d\n%s%s", code, again, errs)
	}
	if code, _, errs := zrlbench(t, "archive", file, "--folder", runs); code != exitFailure ||
		!strings.Contains(errs, "exists already; replace it with --replace") {
		t.Errorf("%d\n%s", code, errs)
	}
}

func TestBenchMistakes(t *testing.T) {
	for _, x := range []struct {
		args string
		code int
		says string
	}{
		{"latency", exitUsage, `there is no workload "latency"`},
		{"ring --rounds 0", exitUsage, "--rounds 0: give at least 1"},
		{"ring --only zrlmpid", exitUsage, `there is no side "zrlmpid"`},
		{"--steps 4:1", exitUsage, "steps are of one workload"},
		{"--depth 4", exitUsage, "unknown flag: --depth"},
		{"show /does/not/exist", exitFailure, "no such file"},
		{"show does-not-exist.json", exitFailure, "no such file"},
		{"show abacus", exitUsage, `no archived run matches "abacus"; "zrlbench show" lists all of them`},
		{"show 2x", exitUsage, `"2x" matches the runs of several machines: `},
		{"show family-25-model-17 latency", exitUsage, `there is no workload "latency"`},
		{"archive", exitUsage, "accepts 1 arg(s)"},
		{"archive /does/not/exist", exitFailure, "no such file"},
		{"archive bench_test.go", exitFailure, "bench_test.go: invalid character"},
		{"pingpong --only extended-udp --steps 5:1", exitFailure, "5 bytes are not a number of words"},
	} {
		code, _, errs := zrlbench(t, strings.Fields(x.args)...)
		if code != x.code || !strings.Contains(errs, x.says) {
			t.Errorf("%q: exit code %d, %q", x.args, code, errs)
		}
	}
	if code, _, errs := zrlbench(t, bench.RankCommand, "-workload", "x"); code != exitFailure ||
		!strings.Contains(errs, `there is no workload "x"`) {
		t.Errorf("exit code %d, %q", code, errs)
	}
	if _, help, _ := zrlbench(t, "--help"); strings.Contains(help, bench.RankCommand) ||
		!strings.Contains(help, "zrlbench tune") {
		t.Error(help)
	}
}
