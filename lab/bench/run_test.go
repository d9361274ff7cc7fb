package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestUsage(t *testing.T) {
	for _, x := range []struct {
		o    Options
		says string
	}{
		{Options{Workloads: []string{"latency"}}, `there is no workload "latency"; there are pingpong, rate,`},
		{Options{Workloads: []string{"ring", "ring"}}, "ring is named twice"},
		{Options{Rounds: -1}, "-1 rounds: there is at least 1"},
		{Options{Only: []string{"zrlmpid"}}, `there is no side "zrlmpid"; there are raw-udp-poll,`},
		{Options{Only: []string{""}}, `there is no side ""`},
		{Options{Steps: "4:1"}, "steps are of one workload"},
		{Options{Workloads: []string{"ring"}, Steps: "10"}, `"10": a step is N:ITERATIONS`},
		{Options{Workloads: []string{"ring"}, Steps: "1:0"}, `"1:0": a step is`},
		{Options{Workloads: []string{"ring"}, Steps: "1:1x"}, `"1:1x": a step is`},
		{Options{Workloads: []string{"queues"}, Only: []string{"cloudfpga"}},
			"none of the sides does any of the workloads"},
	} {
		_, err := Run(t.Context(), x.o, &strings.Builder{})
		if _, ok := errors.AsType[*UsageError](err); !ok || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%+v: %v", x.o, err)
		}
	}
}

// TestFailure checks that a side that fails is reported, and that the other sides are still measured.
func TestFailure(t *testing.T) {
	var progress strings.Builder
	r, err := Run(t.Context(),
		Options{Workloads: []string{"pingpong"}, Steps: "5:1", Only: []string{"extended-udp"}, Rounds: 2}, &progress)
	if err != nil {
		t.Fatal(err)
	}
	const says = "5 bytes are not a number of words"
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), says) ||
		!strings.Contains(progress.String(), "*** FAILED: pingpong, extended-udp: ") {
		t.Errorf("%v\n%s", err, progress.String())
	}
	if len(r.Failed) != 1 || len(r.Results[0].Sides) != 0 {
		t.Errorf("%+v", r)
	}
	r, err = Run(t.Context(),
		Options{Workloads: []string{"pingpong"}, Steps: "4:1", Only: []string{"extended-udp"}, Timeout: 1}, &progress)
	if err != nil || r.Err() == nil || !strings.Contains(r.Err().Error(), "it took more than 1ns") {
		t.Errorf("%v, %+v", err, r)
	}
}

// watcher is a writer that cancels a context when a certain text is written.
type watcher struct {
	on     string
	cancel func()
}

func (w watcher) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(w.on)) {
		w.cancel()
	}
	return len(b), nil
}

// TestInterrupt checks that an interrupted run ends immediately, together with its programs.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	_, err := Run(ctx, Options{Workloads: []string{"pingpong"}, Steps: "4:100000000", Only: []string{"extended-udp"}},
		watcher{"extended-udp", cancel})
	if !errors.Is(err, context.Canceled) || time.Since(start) > time.Minute {
		t.Error(err)
	}
}

// TestOrphan checks that a rank exits when its parent process does.
func TestOrphan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := extendedUDP.configure(file, "", 2); err != nil {
		t.Fatal(err)
	}
	err := RunRank(t.Context(), []string{"-config", file, "-rank", "0", "-workload", "ring", "2:1"},
		strings.NewReader(""), &strings.Builder{})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestRankMistakes(t *testing.T) {
	for _, x := range []struct{ args, says string }{
		{"-workload x", `there is no workload "x"`},
		{"-workload queues -config /does/not/exist", "no such file"},
		{"-workload queues -attach /does/not/exist", "/does/not/exist"},
		{"-workload queues 3", `"3": a step is`},
		{"-workload queues warm:x 3:1", `"warm:x": it is warm:MILLISECONDS`},
		{"-depth 3", "-depth"},
		{"daemon /does/not/exist", "no such file"},
	} {
		stdin, _ := newPipe(t)
		err := RunRank(t.Context(), strings.Fields(x.args), stdin, &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.args, err)
		}
	}
}

func newPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
