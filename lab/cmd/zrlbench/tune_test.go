package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

func TestTune(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.yaml")
	code, out, errs := zrlbench(t, "tune", "--quick", "--ranks", "2,3", "--transports", "udp", "--collectives",
		"barrier,allreduce", "--max-bytes", "512", "--output", file)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	// The widths of columns depend on the measurements.
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"network, over udp: ", " barrier RANKS ",
		" allreduce RANKS BYTES recursive-doubling rabenseifner ring flat TAKEN 2 8 ", " 3 512 "} {
		if !strings.Contains(words, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if !strings.Contains(errs, "[2/2") || strings.Contains(out, "memory") {
		t.Errorf("%s\n%s", errs, out)
	}
	if code, again, errs := zrlbench(t, "tune", "show", file); code != exitOK || again != out {
		t.Errorf("show prints something else: %d\n%s\n%s", code, again, errs)
	}
	var d collectives.Document
	if code, text, _ := zrlbench(t, "tune", "show", file, "--json"); code != exitOK ||
		json.Unmarshal([]byte(text), &d) != nil {
		t.Errorf("%d\n%s", code, text)
	}
	entries := 0
	d.ForEachClass(func(_ choice.Class, c *collectives.ClassTable) { entries += len(c.Collectives) })
	if entries != 4 {
		t.Errorf("%d entries", entries)
	}
	if s, err := os.Stat(file); err != nil || s.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", s, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || left != nil {
		t.Errorf("%v, %v", left, err)
	}
	// Without a file, the command shows the built-in table.
	if code, out, _ := zrlbench(t, "tune", "show"); code != exitOK ||
		!strings.Contains(out, "== oversubscribed_memory, over shm: ") || !strings.Contains(out, "\nexscan\n") {
		t.Errorf("%d\n%s", code, out)
	}
}

func TestTuneMistakes(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("version: 1\nmemory:\n  colectives: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args string
		code int
		says string
	}{
		{"--ranks 1", exitUsage, "1 ranks: a collective has 2 to 128 here"},
		{"--collectives brodcast", exitUsage, `unknown collective "brodcast" (did you mean "bcast"?)`},
		{"--transports udp,tcp", exitUsage, "udp and tcp are both of the class network"},
		{"--max-bytes 4kb", exitUsage, `--max-bytes "4kb": give a size, as in 64KiB or 16MiB`},
		{"--max-bytes 0", exitUsage, `--max-bytes "0": give a size`},
		{"--rounds 0", exitUsage, "--rounds 0: give more than 0"},
		{"--limit 0s", exitUsage, "--limit 0s: give more than 0"},
		{"--limit 1ns --quick --transports udp", exitFailure,
			"the deadline expired before everything was measured once"},
		{"table.yaml", exitUsage, `unknown command "table.yaml"`},
		{"show " + filepath.Join(dir, "none.yaml"), exitFailure, "no such file"},
		{"show " + bad, exitFailure, bad + `:3: memory: unknown key "colectives" (did you mean "collectives"?)`},
		{"--quick --transports udp --ranks 2 --collectives barrier --output " + filepath.Join(dir, "no", "table.yaml"),
			exitFailure, "no such file"},
	} {
		code, _, errs := zrlbench(t, append([]string{"tune"}, strings.Fields(x.args)...)...)
		if code != x.code || !strings.Contains(errs, x.says) {
			t.Errorf("%s: exit code %d, %s", x.args, code, errs)
		}
	}
}
