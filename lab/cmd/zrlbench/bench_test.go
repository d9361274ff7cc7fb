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
	if len(os.Args) > 1 && slices.Contains([]string{bench.RankCommand, tune.RankCommand, goodput.FlowCommand, path.EmulatorCommand}, os.Args[1]) {
		main()
	}
	// With the race detector, ranks would sleep for a second at exit.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(statetest.Run(m))
}

const testTimeout = 20 * time.Second

// zrlbench runs the program to completion.
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
	code, out, errs := zrlbench(t, "ring", "pingpong", "--quick", "--only", "cloudfpga,attached", "--save", file, "--svg", plots)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{"== Ring (ring) ==", "== Ping-pong (pingpong) ==", "cloudfpga", "attached", "messages, all verified"} {
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
	if code, text, _ := zrlbench(t, "show", file, "--json"); code != exitOK || json.Unmarshal([]byte(text), &r) != nil || len(r.Results) != 2 {
		t.Errorf("%d\n%s", code, text)
	}
	code, markdown, _ := zrlbench(t, "show", file, "--markdown")
	if code != exitOK || !strings.Contains(markdown, "<!-- bench: ring -->\n**Time of a hop") {
		t.Errorf("%d\n%s", code, markdown)
	}
	// An emptied document is filled with the same content again.
	var empty strings.Builder
	for line := range strings.Lines(markdown) {
		if strings.HasPrefix(line, "<!--") {
			empty.WriteString(line)
		}
	}
	if err := os.WriteFile(doc, []byte(empty.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs = zrlbench(t, "show", file, "--into", doc)
	if text, err := os.ReadFile(doc); code != exitOK || err != nil || strings.TrimSpace(string(text)) != strings.TrimSpace(strings.ReplaceAll(markdown, " -->\n\n<!--", " -->\n<!--")) {
		t.Errorf("%d, %v\n%s\n%s", code, err, errs, text)
	}
	// If a block has no place, neither the document nor the plots change.
	lacks := strings.ReplaceAll(empty.String(), "bench: ring ", "bench: rings ")
	if err := os.WriteFile(doc, []byte(lacks), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs = zrlbench(t, "show", file, "--into", doc, "--svg", filepath.Join(dir, "other"))
	if code != exitFailure || !strings.Contains(errs, doc+" is not changed: there is no line <!-- bench: ring -->: ") {
		t.Errorf("%d\n%s", code, errs)
	}
	if text, err := os.ReadFile(doc); err != nil || string(text) != lacks {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("plots are drawn: %v", err)
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
		{"show", exitUsage, "accepts 1 arg(s)"},
		{"show /does/not/exist", exitFailure, "no such file"},
		{"pingpong --only extended-udp --steps 5:1", exitFailure, "5 bytes are not a number of words"},
	} {
		code, _, errs := zrlbench(t, strings.Fields(x.args)...)
		if code != x.code || !strings.Contains(errs, x.says) {
			t.Errorf("%q: exit code %d, %q", x.args, code, errs)
		}
	}
	if code, _, errs := zrlbench(t, bench.RankCommand, "-workload", "x"); code != exitFailure || !strings.Contains(errs, `there is no workload "x"`) {
		t.Errorf("exit code %d, %q", code, errs)
	}
	if _, help, _ := zrlbench(t, "--help"); strings.Contains(help, bench.RankCommand) || !strings.Contains(help, "zrlbench tune") {
		t.Error(help)
	}
}
