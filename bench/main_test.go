package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be a rank, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == rankCommand {
		main()
	}
	os.Exit(m.Run())
}

// bench runs the program, and returns its code and what it has printed.
func bench(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// TestQuick measures a little in every way of ours: there are figures, all
// messages are verified, and the files that were asked for can be read.
func TestQuick(t *testing.T) {
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			var keys []string
			for _, l := range w.links {
				keys = append(keys, l.key)
			}
			file, folder := filepath.Join(t.TempDir(), "new", "out.json"), t.TempDir()
			code, out, errs := bench(t, w.name, "-quick", "-rounds", "2", "-only", strings.Join(keys, ","), "-json", file, "-svg", folder)
			if code != 0 {
				t.Fatalf("exit code %d\n%s%s", code, out, errs)
			}
			r, err := load(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Sides) != len(w.links) {
				t.Fatalf("%d sides of %d", len(r.Sides), len(w.links))
			}
			for _, s := range r.Sides {
				if s.Verified != 2*w.total(w.quick) {
					t.Errorf("%s: %d messages were verified of %d", s.Name, s.Verified, 2*w.total(w.quick))
				}
				for _, p := range s.Median {
					if p.P50 <= 0 || p.P99 < p.P50 || (p.Unload > 0) != (w.name == "queues") {
						t.Errorf("%s: %+v", s.Name, p)
					}
				}
			}
			for name := range r.plots() {
				if _, err := os.Stat(filepath.Join(folder, name+".svg")); err != nil {
					t.Error(err)
				}
			}
			if code, again, _ := bench(t, "show", file); code != 0 || again != out {
				t.Errorf("show prints something else: %d\n%s\n%s", code, again, out)
			}
		})
	}
}

// TestPeers compiles and runs the programs of the peers that are installed.
func TestPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a second")
	}
	for i := range libraries {
		l := &libraries[i]
		t.Run(l.name, func(t *testing.T) {
			if m := l.missing(); m != "" {
				if os.Getenv("CI") == "true" {
					t.Fatal(m)
				}
				t.Skip("NOT CHECKED: " + m)
			}
			for _, w := range workloads {
				sides, err := l.sides(t.Context(), w, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				out, err := sides[0].run(ctx, w.quick)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := parseOutput(out, w, w.quick); err != nil {
					t.Errorf("%s: %v\n%s", w.name, err, out)
				}
				if !strings.HasPrefix(sides[0].Version, l.name+" ") {
					t.Errorf("version %q", sides[0].Version)
				}
				// What the program says of it is lost at times by MPICH's launcher.
				if _, err := sides[0].run(ctx, []step{{-1, 1}}); err == nil {
					t.Errorf("%s: a step that makes no sense is no error", w.name)
				}
			}
		})
	}
}

// TestMissing: without the peers the run goes on, and nobody can overlook it.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, out, errs := bench(t, "queues", "-steps", "1:1", "-rounds", "1")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	for _, want := range []string{
		"*** Open MPI is missing: mpicc.openmpi and mpirun.openmpi not found. It is not measured. On Debian: apt-get install openmpi-bin libopenmpi-dev ***",
		"*** MPICH is missing",
	} {
		if !strings.Contains(out, want) || !strings.Contains(errs, want) {
			t.Errorf("%q is not told twice:\n%s\n%s", want, out, errs)
		}
	}
	if !strings.Contains(out, "zrlmpid, extended, UDP") {
		t.Errorf("no figures:\n%s", out)
	}
}

func TestUsage(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"workload": "queues", "sides": [{"name": "x", "median": [{"n": 1}]}, {"name": "y"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args string
		code int
		says string
	}{
		{"", 2, "usage: bench"},
		{"latency", 2, "usage: bench"},
		{"queues -depth 3", 2, "-depth"},
		{"queues 3", 2, "queues takes 0 arguments besides its flags, and not 1"},
		{"queues -rounds 0", 1, "-rounds 0: there is at least 1"},
		{"queues -only zrlmpid-tcp", 1, `there is no side "zrlmpid-tcp"; there are mpich, openmpi, openmpi-tcp, zrlmpid-udp`},
		{"queues -steps 10", 1, `"10": a step is N:ITERATIONS`},
		{"queues -steps 1:0", 1, `"1:0": a step is`},
		{"queues -steps 1:1x", 1, `"1:1x": a step is`},
		{"pingpong -only zrlmpid-udp -steps 5:1", 1, "5 bytes are not a number of words"},
		{"pingpong -only zrlmpid-udp -steps 4:1 -timeout 1ns", 1, "took more than 1ns"},
		{"show", 2, "show takes 1 arguments"},
		{"show /does/not/exist", 1, "no such file"},
		{"show " + broken, 1, "y has 0 medians for 1 steps"},
		{"rank -workload x", 1, `there is no workload "x"`},
		{"rank -workload queues -config /does/not/exist", 1, "no such file"},
	} {
		code, _, errs := bench(t, strings.Fields(x.args)...)
		if code != x.code || !strings.Contains(errs, x.says) {
			t.Errorf("%q: exit code %d, %q", x.args, code, errs)
		}
	}
}

// TestRunCommand: what a program says when it fails is not lost.
func TestRunCommand(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	if err := runCommand(command(t.Context(), sh, "-c", "echo no good >&2; exit 3")); err == nil || !strings.Contains(err.Error(), "exit status 3\nno good") {
		t.Error(err)
	}
}

// TestProfile writes profiles of both ranks.
func TestProfile(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "p")
	if code, _, errs := bench(t, "queues", "-only", extendedUDP.key, "-steps", "1:1", "-rounds", "1", "-cpuprofile", prefix); code != 0 {
		t.Fatal(errs)
	}
	for _, rank := range []string{"0", "1"} {
		info, err := os.Stat(prefix + ".zrlmpid-udp." + rank + ".pprof")
		if err != nil || info.Size() == 0 {
			t.Errorf("rank %s: %v, %v", rank, info, err)
		}
	}
}
