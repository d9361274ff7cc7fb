package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

// TestMain runs a rank if the test binary is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == RankCommand {
		if err := RunRank(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// With the race detector, a rank would otherwise sleep for a second before it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(statetest.Run(m))
}

// quick runs quick steps of the sides that o selects.
func quick(t *testing.T, o Options) (*Report, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	o.Quick = true
	var progress bytes.Buffer
	r, err := Run(ctx, o, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r, progress.String()
}

// keysOf returns the keys of the sides in a family.
func keysOf(f family) []string { return f.keys }

// TestOurs measures a little over each link of zrlmpid. It checks that there are figures, and that all messages were
// verified.
func TestOurs(t *testing.T) {
	for _, w := range workloads {
		if w.name == "idle" {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			rounds := 2
			if w.isCollective { // with the race detector, many ranks are slow
				rounds = 1
			}
			r, progress := quick(t, Options{Workloads: []string{w.name}, Only: keysOf(ourFamily()), Rounds: rounds})
			res := r.result(w.name)
			want := 0
			for i := range links {
				l := &links[i]
				// A link that this version does not support is reported as missing.
				if slices.ContainsFunc(r.Missing,
					func(m string) bool { return strings.HasPrefix(m, l.key+" is missing") }) {
					continue
				}
				if l.supports(w) {
					want++
				}
				if w.methods {
					want += len(l.methods)
				}
			}
			if len(res.Sides) != want || want < 3 {
				t.Fatalf("%d sides of %d\n%s", len(res.Sides), want, progress)
			}
			for _, s := range res.Sides {
				if want := rounds * w.total(w.quickSteps); s.Verified != want {
					t.Errorf("%s: %d messages were verified of %d", s.Key, s.Verified, want)
				}
				if s.Memory < 1<<10 {
					t.Errorf("%s: %d KiB of memory", s.Key, s.Memory)
				}
				for _, p := range s.Median {
					if len(w.requiredFigures) > 0 && (p.P50 <= 0 || p.CPU <= 0 ||
						p.P99 > 0 && (p.P99 < p.P50 || p.P999 < p.P99 || p.Least > p.P50)) {
						t.Errorf("%s: %+v", s.Key, p)
					}
				}
			}
		})
	}
}

// TestIdle runs idle ranks on all links of zrlmpid at the same time.
func TestIdle(t *testing.T) {
	for _, l := range links {
		if len(l.workloads) > 0 {
			continue
		}
		t.Run(l.key, func(t *testing.T) {
			t.Parallel()
			if err := l.probe(t.TempDir()); err != nil {
				t.Skip("NOT CHECKED: ", err)
			}
			r, _ := quick(t, Options{Workloads: []string{"idle"}, Only: []string{l.key}})
			s := r.result("idle").side(l.key)
			if s.Verified != 1 || s.Median[0].N != 200 || s.Memory < 1<<10 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestRaw compiles and runs the programs that measure the raw limits.
func TestRaw(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Fatal("the tests need a C compiler: ", err)
	}
	r, progress := quick(t, Options{Workloads: []string{"pingpong", "stream"}, Only: keysOf(rawFamily())})
	if len(r.Missing) > 0 {
		t.Skip("NOT CHECKED: ", r.Missing)
	}
	sides := 0
	for _, res := range r.Results {
		sides += len(res.Sides)
		for _, s := range res.Sides {
			for _, p := range s.Median {
				if p.P50 <= 0 || s.Verified == 0 || s.Memory == 0 {
					t.Errorf("%s: %+v", s.Key, p)
				}
			}
		}
	}
	if sides != 7 { // shared memory supports both
		t.Errorf("%d sides\n%s", sides, progress)
	}
}

// TestRawMistakes checks that the raw programs reject invalid input, whichever process receives it.
func TestRawMistakes(t *testing.T) {
	dir := t.TempDir()
	compiler := newCompiler(dir, "cc")
	for _, r := range raws {
		for _, program := range r.programs {
			path, err := compiler.compile(t.Context(), program[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []string{"-1:1", "5:1", "x"} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				out, err := command(ctx, path, append(program[1:len(program):len(program)], step)...).output()
				cancel()
				if err == nil || ctx.Err() == context.DeadlineExceeded || bytes.Contains(out, []byte("point")) {
					t.Errorf("%v %s: %v\n%s", program, step, err, out)
				}
			}
		}
	}
}

// TestPeers compiles and runs the programs for the peers that are installed.
func TestPeers(t *testing.T) {
	for i := range libraries {
		l := &libraries[i]
		t.Run(l.name, func(t *testing.T) {
			if m := l.missing(); m != "" {
				needs.Missing(t, l.name, m)
			}
			// Run all workloads over one link, and a single workload over the other.
			first, second := l.modes[1].key, l.modes[0].key
			r, _ := quick(t, Options{Only: []string{first}})
			for _, w := range workloads {
				res := r.result(w.name)
				// On a loaded machine, sides that poll may time out. The report then lists them.
				slow := slices.ContainsFunc(r.Missing, func(m string) bool { return strings.HasPrefix(m, w.name+", ") })
				if len(res.Sides) == 0 && !slow && !(l.pollsOnly && w.ranks != nil) {
					t.Errorf("%s: nothing was measured", w.name)
				}
				for _, s := range res.Sides {
					if len(s.Median)+len(s.Cut) == 0 {
						t.Errorf("%s: %s has no figures", w.name, s.Key)
					}
					if !strings.HasPrefix(s.Version, l.name+" ") {
						t.Errorf("version %q", s.Version)
					}
				}
			}
			r, _ = quick(t, Options{Only: []string{second}, Workloads: []string{"pingpong"}})
			if s := r.Results[0].side(second); len(r.Missing) == 0 &&
				(s == nil || len(s.Cut) == 0 && s.Median[0].P50 <= 0) {
				t.Errorf("%+v", r.Results)
			}
		})
	}
}

// TestMissing checks that a run continues without a compiler, peers and upstream, and reports them as missing.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(EnvUpstream, "")
	var progress, out strings.Builder
	r, err := Run(t.Context(), Options{Workloads: []string{"pingpong"}, Steps: "4:1", Rounds: 1}, &progress)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Print(&out, Format{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"*** the raw limits are missing: there is no C compiler, cc. They are not measured. On Debian: apt-get " +
			"install gcc libc6-dev ***",
		"*** Open MPI is missing: mpicc.openmpi and mpirun.openmpi not found. It is not measured. On Debian: apt-get " +
			"install openmpi-bin libopenmpi-dev ***",
		"*** MPICH is missing",
		"*** the sides between two hosts are missing: ",
		"*** upstream's CPU library is not measured: ZRLMPI_UPSTREAM_PINGPONG is not set ***",
	} {
		if !strings.Contains(out.String(), want) || !strings.Contains(progress.String(), want) {
			t.Errorf("%q is not reported twice:\n%s\n%s", want, out.String(), progress.String())
		}
	}
	if r.result("pingpong").side("extended-udp") == nil {
		t.Errorf("no figures:\n%s", out.String())
	}
}

// upstreamFake returns a program that behaves like a program with upstream's library.
func upstreamFake(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pingpong")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestUpstream(t *testing.T) {
	o := Options{Workloads: []string{"pingpong"}, Only: []string{upstreamOneKey}, Steps: "4:10,4000000:100",
		Quick: true}
	// For each size, 10 messages and 20 messages of warm-up are sent in both directions.
	t.Setenv(EnvUpstream, upstreamFake(t, `test "$1 $2 $3 $5 $6" = "udp 127.0.76.$(($4+1)) 2 127.0.76.$((2-$4)) 4:10,4000000:10" || exit 3
test $4 = 1 || printf 'a banner\npoint 4 p50 9 p99 9 p999 9 least 8 cpu 2\nnoise\npoint 4000000 p50 900 p99 901 p999 901 least 800 cpu 2\nmemory 7\nverified 120\n'`))
	r, _ := quick(t, o)
	if s := r.Results[0].side(upstreamOneKey); s == nil || s.Median[1].P50 != 900 || s.Memory != 7 {
		t.Errorf("%+v", r.Results)
	}
	// If the program fails, it is reported as missing, not as a failure.
	t.Setenv(EnvUpstream, upstreamFake(t, "echo no good >&2; exit 3"))
	r, _ = quick(t, o)
	if len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "exit status 3\nno good") ||
		len(r.Results[0].Sides) != 0 {
		t.Errorf("%+v", r)
	}
	// The program may block forever.
	o.Timeout = 50 * time.Millisecond
	t.Setenv(EnvUpstream, upstreamFake(t, "exec sleep 60"))
	r, _ = quick(t, o)
	if len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "it took more than 50ms") {
		t.Errorf("%+v", r)
	}
}

// TestRunCommand checks that the error output of a program that fails is kept, up to a limit.
func TestRunCommand(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	if err := command(t.Context(), sh, "-c", "echo no good >&2; exit 3").run(); err == nil ||
		!strings.Contains(err.Error(), "exit status 3\nno good") {
		t.Error(err)
	}
	if err := command(t.Context(), "/does/not/exist").run(); err == nil ||
		!strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
	var said tail
	for range 100 {
		said.Write(bytes.Repeat([]byte("x"), 1000))
	}
	if said.Write([]byte("the end")); len(said.text) > saidLimit || !bytes.HasSuffix(said.text, []byte("xthe end")) {
		t.Errorf("%d bytes", len(said.text))
	}
}

// TestProfile checks that both ranks write profiles.
func TestProfile(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "p")
	quick(t, Options{Workloads: []string{"ring"}, Only: []string{"extended-udp"}, Steps: "2:1", CPUProfile: prefix})
	for _, rank := range []string{"0", "1"} {
		info, err := os.Stat(prefix + ".ring.extended-udp." + rank + ".pprof")
		if err != nil || info.Size() == 0 {
			t.Errorf("rank %s: %v, %v", rank, info, err)
		}
	}
}

// worlds opens two ranks in this process.
func worlds(t *testing.T) []*mpi.Comm { return worldsOf(t, 2) }

// worldsOf opens all ranks in this process.
func worldsOf(t *testing.T, n int) []*mpi.Comm {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := extendedUDP.configure(file, "", n); err != nil {
		t.Fatal(err)
	}
	all := make([]*mpi.Comm, n)
	for rank := range all {
		dev, err := node.OpenFile(file, rank)
		if err != nil {
			t.Fatal(err)
		}
		if all[rank], err = mpi.New(dev); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// The other ranks may have exited, so that messages are never acknowledged.
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			_ = all[rank].Finalize(ctx)
		})
	}
	return all
}
