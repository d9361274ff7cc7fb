package bench

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFitIterations checks that a step that would far exceed its share gets fewer iterations, or none.
func TestFitIterations(t *testing.T) {
	const share = 4 * time.Second
	for _, x := range []struct {
		name                string
		p                   stepProgress
		iterations, methods int
		share               time.Duration
		want                int
	}{
		{"in time", stepProgress{4, 100, 320, time.Second}, 300, 1, share, 300},
		{"too early to judge", stepProgress{4, 1, 320, 1999 * time.Millisecond}, 300, 1, share, 300},
		{"not begun", stepProgress{4, 0, 320, time.Minute}, 300, 1, share, 300},
		{"any time", stepProgress{4, 1, 320, time.Minute}, 300, 1, 0, 300},
		{"a little late", stepProgress{4, 80, 320, 2 * time.Second}, 300, 1, share, 300},
		{"late", stepProgress{4, 79, 320, 2 * time.Second}, 300, 1, share, 138}, // 158 rounds of 2/79 s
		{"at the end", stepProgress{4, 319, 320, 9 * time.Second}, 300, 1, share, 121},
		{"just enough", stepProgress{4, 25, 320, 4 * time.Second}, 300, 1, share, 5},
		{"not enough", stepProgress{4, 24, 320, 4 * time.Second}, 300, 1, share, 0},
		{"1.2 s a round", stepProgress{4, 2, 320, 2400 * time.Millisecond}, 300, 1, share, 0},
		{"by methods", stepProgress{4, 200, 960, 2 * time.Second}, 300, 3, share, 113}, // 133 rounds of each
		{"few from the beginning", stepProgress{4, 2, 23, 2 * time.Second}, 3, 1, share, 0},
	} {
		if got := x.p.fitIterations(x.iterations, x.methods, x.share); got != x.want {
			t.Errorf("%s: %d instead of %d", x.name, got, x.want)
		}
	}
}

// TestShare checks that a step of a slower workload has more time, and that steps given by a user have no limit.
func TestShare(t *testing.T) {
	w := &workload{weight: 20, fullSteps: make([]step, 8)}
	for _, x := range []struct {
		o    Options
		w    *workload
		want time.Duration
	}{
		{Options{}, w, 10 * time.Second},
		{Options{}, &workload{weight: 1, fullSteps: make([]step, 8)}, minBudget},
		{Options{Quick: true}, w, quickShare},
		{Options{Steps: "1:1"}, w, 0},
	} {
		if got := x.o.stepBudget(x.w, Peer); got != x.want {
			t.Errorf("%+v: %v instead of %v", x.o, got, x.want)
		}
	}
	if got := (&Options{Quick: true}).stepBudget(w, Ours); got != 0 {
		t.Errorf("quick steps of ours: %v", got)
	}
}

// TestParseProgress checks that the progress printed by programs in C and Go can be parsed.
func TestParseProgress(t *testing.T) {
	want := stepProgress{4, 7, 320, 1500 * time.Millisecond}
	if got, err := parseProgress(want.String()); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "pace", "pace 4 7 320", "pace 4 8 7 1", "pace 4 -1 7 1", "pace 4 1 7 -1",
		"pace 4 1 7 NaN", "pace 4 1 7 1e300"} {
		if p, err := parseProgress(text); err == nil {
			t.Errorf("%q: %v", text, p)
		}
	}
	text, err := sources.ReadFile("c/bench.h")
	if err != nil || !strings.Contains(string(text),
		fmt.Sprintf("#define BENCH_PACE_EVERY %g\n", paceEvery.Seconds())) {
		t.Errorf("c/bench.h prints at other times: %v", err)
	}
}

// slowSide is a side whose rounds take the given times on a fake clock. A step with a time of 0 is complete
// immediately.
type slowSide struct {
	round map[int]time.Duration
	// ran lists the steps that each run was given.
	ran []string
}

func (s *slowSide) run(ctx context.Context, j job, out io.Writer) error {
	s.ran = append(s.ran, strings.Join(stepArgs(j.steps), " "))
	for _, st := range j.steps {
		all := warmup + st.iterations
		fmt.Fprintln(out, stepProgress{st.n, 0, all, 0})
		for i := 1; i < all && s.round[st.n] > 0; i++ {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintln(out, stepProgress{st.n, i, all, time.Duration(i) * s.round[st.n]})
		}
		for range j.parts {
			(&Point{N: st.n, P50: 1}).write(out)
		}
		if _, err := fmt.Fprintf(out, "memory %d\nverified %d\n", st.n, len(j.parts)*j.w.messages(st)); err != nil {
			return err
		}
	}
	return nil
}

// TestSlow checks that a slow step is cut or runs with fewer iterations, that complete steps are kept, and that the
// steps after it run.
func TestSlow(t *testing.T) {
	w := &workload{name: "things", unit: "things", messages: func(s step) int { return 2 * (warmup + s.iterations) },
		requiredFigures: []string{"p50"}}
	steps := []step{{1, 300}, {2, 300}, {3, 300}, {4, 300}, {5, 300}, {6, 300}, {7, 300}, {8, 300}}
	for _, x := range []struct {
		name    string
		round   map[int]time.Duration
		ran     []string
		points  []int
		cut     []CutStep
		reduced []step
	}{
		{
			"fast", nil, []string{"1:300 2:300 3:300 4:300 5:300 6:300 7:300 8:300"},
			[]int{1, 2, 3, 4, 5, 6, 7, 8}, nil, nil,
		},
		{
			"one cut, one reduced", map[int]time.Duration{2: 1200 * time.Millisecond, 7: 50 * time.Millisecond},
			[]string{"1:300 2:300 3:300 4:300 5:300 6:300 7:300 8:300", "3:300 4:300 5:300 6:300 7:300 8:300",
				"7:60 8:300"},
			[]int{1, 3, 4, 5, 6, 7, 8}, []CutStep{{N: 2, Message: 600e3}}, []step{{7, 60}},
		},
		{
			"three in a row", map[int]time.Duration{1: 2 * time.Second, 3: 2 * time.Second, 4: 4 * time.Second,
				5: time.Second},
			[]string{"1:300 2:300 3:300 4:300 5:300 6:300 7:300 8:300", "2:300 3:300 4:300 5:300 6:300 7:300 8:300",
				"4:300 5:300 6:300 7:300 8:300", "5:300 6:300 7:300 8:300"},
			[]int{2}, []CutStep{{N: 1, Message: 1e6}, {N: 3, Message: 1e6}, {N: 4, Message: 2e6}, {N: 5, Message: 500e3},
				{N: 6}, {N: 7}, {N: 8}}, nil,
		},
	} {
		slow := slowSide{round: x.round}
		o, err := (&side{run: slow.run}).measure(t.Context(), job{w: w, parts: make([]part, 1), budget: 4 * time.Second},
			steps)
		if err != nil {
			t.Fatal(err)
		}
		var ns []int
		for _, p := range o.points[0] {
			ns = append(ns, p.N)
		}
		if !slices.Equal(slow.ran, x.ran) || !slices.Equal(ns, x.points) || !slices.Equal(o.cut, x.cut) ||
			!slices.Equal(o.reduced, x.reduced) {
			t.Errorf("%s: %q\n%v, %v, %v", x.name, slow.ran, ns, o.cut, o.reduced)
		}
	}
}

// TestStuck checks that a side that is stuck is stopped, and that its later output has no effect.
func TestStuck(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	j := job{w: things, parts: make([]part, 1), budget: time.Second, steps: []step{{10, 1}, {20, 1}}}
	w := newWatch(j, cancel)
	const first = "pace 10 0 21 0\npoint 10 p50 1\nmemory 1\nverified 10\n"
	fmt.Fprint(w, first[:20])
	fmt.Fprint(w, first[20:]+"pace 20 0 21 0\n")
	w.onStuck()
	fmt.Fprint(w, "point 20 p50 1\nmemory 1\nverified 20\n")
	out, slow := w.finish()
	if string(out) != first || !reflect.DeepEqual(slow, &slowStep{done: 1, cut: CutStep{N: 20, Stuck: true}}) ||
		context.Cause(ctx) != errSlow {
		t.Errorf("%q, %+v, %v", out, slow, context.Cause(ctx))
	}
	// A side that has completed its steps is not stuck.
	w = newWatch(j, cancel)
	fmt.Fprint(w, first+"pace 20 0 21 0\npoint 20 p50 1\nmemory 1\nverified 20\n")
	w.onStuck()
	if out, slow := w.finish(); slow != nil || !strings.HasSuffix(string(out), "verified 20\n") {
		t.Errorf("%q, %+v", out, slow)
	}
}

// TestDoesNotEnd checks that the figures of a program are complete if it does not exit after its last step.
func TestDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &side{run: func(ctx context.Context, j job, out io.Writer) error {
			fmt.Fprint(out, "pace 10 0 21 0\npoint 10 p50 1 p99 2 p999 3 least 1 cpu 1\nmemory 1\nverified 10\n")
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		o, err := s.measure(t.Context(), job{w: things, parts: make([]part, 1), budget: time.Second}, []step{{10, 1}})
		if err != nil || len(o.points[0]) != 1 || len(o.cut) > 0 {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

// TestNothingPrinted checks that a program that prints nothing is stopped, both at its start and between steps.
func TestNothingPrinted(t *testing.T) {
	for printed, want := range map[string]slowStep{
		"": {cut: CutStep{N: 10, Stuck: true}},
		"pace 10 0 21 0\npoint 10 p50 1\nmemory 1\nverified 10\n": {done: 1, cut: CutStep{N: 20, Stuck: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			w := newWatch(job{w: things, parts: make([]part, 1), budget: time.Second, steps: []step{{10, 1}, {20, 1}}},
				cancel)
			time.Sleep(minStuckTime - time.Millisecond)
			fmt.Fprint(w, printed+"a launcher's line\n")
			time.Sleep(minStuckTime - time.Millisecond)
			if ctx.Err() != nil {
				t.Fatalf("%q: it is ended too soon", printed)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if _, slow := w.finish(); slow == nil || *slow != want || context.Cause(ctx) != errSlow {
				t.Errorf("%q: %+v, %v", printed, slow, context.Cause(ctx))
			}
		})
	}
}

// TestCutTables checks that tables show a cut in place of its figure.
func TestCutTables(t *testing.T) {
	r := testReport("ring", [2]int{2, 8}, "extended-udp", "openmpi-tcp", "x")
	sides := r.Results[0].Sides
	sides[0].removeStep(CutStep{N: 8, Message: 1.2e6})
	sides[1].removeStep(CutStep{N: 2, Stuck: true})
	sides[1].removeStep(CutStep{N: 8})
	r.computeDerived()
	var b strings.Builder
	if err := r.Print(&b, Format{}); err != nil {
		t.Fatal(err)
	}
	const want = `
ranks         extended-udp  openmpi-tcp                   x
    2   10.0 / 20.0 / 30.0        stuck  2.00 / 4.00 / 6.00
    8  cut: 1.20 s a message          cut                   –
`
	got := strings.ReplaceAll(b.String(), " ", "")
	if !strings.Contains(got, strings.ReplaceAll(want, " ", "")) {
		t.Errorf("there is no %s in\n%s", want, b.String())
	}
}
