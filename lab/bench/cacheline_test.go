package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestSlowLine(t *testing.T) {
	for _, x := range []struct {
		before, after, least float64
		want                 bool
	}{
		{50, 50, 50, false},
		{75, 75, 50, false},
		{76, 50, 50, true},
		{50, 76, 50, true},
		{160, 160, 160, false}, // no faster transfer was seen
		{50, 0, 50, false},     // the second cache line time is unknown
		{0, 0, 0, false},
	} {
		if got := (&Attempt{LineBefore: x.before, LineAfter: x.after}).isSlow(x.least); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// lineRun runs two sides, of which the second has two methods. The time of a measurement is its number. lines are the
// cache line times: before the first measurement, after it, before the second, and so on.
func lineRun(t *testing.T, o Options, lines ...float64) (*Report, string) {
	t.Helper()
	o.Workloads, o.Steps = []string{"ring"}, "2:1"
	tasks, err := o.planTasks()
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	run := func(_ context.Context, j job, out io.Writer) error {
		runs++
		for range j.parts {
			(&Point{N: 2, P50: float64(runs), P99: 1, P999: 1, Least: 1, CPU: 1}).write(out)
		}
		_, err := fmt.Fprintf(out, "verified %d\n", len(j.parts)*j.w.total(j.steps))
		return err
	}
	one := side{Side: Side{Key: "one"}, run: run}
	two := side{Side: Side{Key: "two"}, run: run, parts: func(*workload) []part {
		return []part{{Side: Side{Key: "two"}}, {Side: Side{Key: "two-chain", With: "two"}}}
	}}
	var progress strings.Builder
	r := &runner{Options: o, sides: []side{one, two}, out: &progress, report: &Report{Rounds: o.Rounds}}
	measured := 0
	r.moveLine = func() (float64, error) {
		if measured == len(lines) {
			return 0, errors.New("no affinity")
		}
		measured++
		return lines[measured-1], nil
	}
	r.prepare(tasks)
	if err := r.measureAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.clock.done != r.clock.all || r.clock.all != runs {
		t.Errorf("%d measurements were announced, %d were done of %d", r.clock.all, r.clock.done, runs)
	}
	if err := r.report.Err(); err != nil {
		t.Fatal(err)
	}
	r.report.computeDerived()
	return r.report, progress.String()
}

// p50s returns the p50 of each round of a side.
func p50s(r *Report, key string) (all []float64) {
	for _, round := range r.result("ring").side(key).Rounds {
		all = append(all, round[0].P50)
	}
	return all
}

// TestMeasuredAgain checks that measurements with a slow cache line are made again at the end, at most three times, and
// that none is lost.
func TestMeasuredAgain(t *testing.T) {
	near, far, slowly := []float64{50, 50}, []float64{50, 160}, []float64{160, 160, 160, 160, 160, 160}
	of := func(all ...[]float64) []float64 { return slices.Concat(all...) }
	for _, x := range []struct {
		name     string
		o        Options
		lines    []float64
		one, two []float64 // numbers of the measurements that are their rounds
	}{
		{"fast", Options{Rounds: 2}, of(near, near, near, near), []float64{1, 3}, []float64{2, 4}},
		{"slow after", Options{Rounds: 2}, of(far, near, near, near, near), []float64{5, 3}, []float64{2, 4}},
		{"slow before", Options{Rounds: 2}, of(near, []float64{76, 50}, near, near, near), []float64{1, 3},
			[]float64{5, 4}},
		{"slow from the beginning", Options{Rounds: 2}, of(slowly, near, near, near, near), []float64{5, 7},
			[]float64{6, 4}},
		{"always slow", Options{Rounds: 1}, of(far, far, far, far, far, far, far, far), []float64{7}, []float64{8}},
		{"quick", Options{Rounds: 1, Quick: true}, of(far, far), []float64{1}, []float64{2}},
		{"unknown", Options{Rounds: 2}, make([]float64, 8), []float64{1, 3}, []float64{2, 4}},
		{"unknown later", Options{Rounds: 2}, near, []float64{1, 3}, []float64{2, 4}},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, progress := lineRun(t, x.o, x.lines...)
			if one, two := p50s(r, "one"),
				p50s(r, "two"); !slices.Equal(one, x.one) || !slices.Equal(two, x.two) ||
				!slices.Equal(p50s(r, "two-chain"), two) {
				t.Errorf("%v, %v\n%s", one, two, progress)
			}
		})
	}
	r, progress := lineRun(t, Options{Rounds: 1}, of(near, far, near)...)
	want := []Attempt{
		{Round: 1, LineBefore: 50, LineAfter: 160, Discarded: true,
			Points: []Point{{N: 2, P50: 2, P99: 1, P999: 1, Least: 1, CPU: 1}}},
		{Round: 1, LineBefore: 50, LineAfter: 50},
	}
	for _, key := range []string{"two", "two-chain"} {
		if got := r.result("ring").side(key).Attempts; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", key, got)
		}
	}
	if m := r.Machine; m.LineLeast != 50 || m.LineP50 != 50 {
		t.Errorf("%+v", m)
	}
	if want := "measured again, since a cache line took over 1.5 times its least, 50.0 ns: 1 of 2\n"; strings.Count(progress, want) != 1 {
		t.Errorf("there is no %q in\n%s", want, progress)
	}
}

// TestCutLater checks that a step that is cut is also removed from earlier measurements, but not from discarded ones.
// It also checks that rounds are in order, including those measured again.
func TestCutLater(t *testing.T) {
	w, err := workloadNamed("ring")
	if err != nil {
		t.Fatal(err)
	}
	made := func(round int, discarded bool, us float64, ns ...int) *attempt {
		var points []Point
		for _, n := range ns {
			points = append(points, Point{N: n, P50: us})
		}
		return &attempt{Attempt{Round: round, LineBefore: 50, LineAfter: 50, Discarded: discarded}, [][]Point{points}}
	}
	r := &runner{out: io.Discard, report: &Report{Results: []Result{{Workload: "ring", Sides: make([]Measured, 1)}}}}
	m := &measurement{
		w: w, side: &side{}, parts: make([]part, 1), steps: []step{{2, 1}, {8, 1}},
		attempts: []*attempt{made(1, true, 1, 2, 8), made(2, false, 2, 2, 8), made(1, false, 3, 2)},
	}
	r.applyCuts(m, outcome{cut: []CutStep{{N: 8}}})
	r.collect(m)
	f := &r.report.Results[0].Sides[0].Figures
	if want := [][]Point{{{N: 2, P50: 3}}, {{N: 2, P50: 2}}}; !reflect.DeepEqual(f.Rounds, want) ||
		len(f.Attempts[0].Points) != 2 || len(f.Cut) != 1 {
		t.Errorf("%+v", f)
	}
	if len(m.steps) != 1 || m.failed {
		t.Errorf("%+v", m)
	}
	if r.applyCuts(m, outcome{cut: []CutStep{{N: 2}}}); !m.failed {
		t.Error("a side without steps is measured again")
	}
}

// TestLineUnknown checks that a report does not mention cache lines if their times are unknown, and that an error is
// reported only once.
func TestLineUnknown(t *testing.T) {
	r, _ := lineRun(t, Options{Rounds: 2}, make([]float64, 8)...)
	if r.Machine.LineLeast != 0 || r.result("ring").side("one").Attempts != nil || r.lineNotes(r.Results) != nil {
		t.Errorf("%+v", r)
	}
	r, _ = lineRun(t, Options{Rounds: 2}, 50)
	if want := []string{"the time to move a cache line is unknown from now on: no affinity"}; !slices.Equal(r.Missing,
		want) || r.Machine.LineLeast != 50 {
		t.Errorf("%+v", r)
	}
}

// TestLineNotes checks that a report lists measurements with a slow cache line, even after it was saved and loaded.
func TestLineNotes(t *testing.T) {
	r, _ := lineRun(t, Options{Rounds: 2}, 160, 160, 50, 50, 50, 50, 50, 160, 50, 50, 50, 90, 50, 90, 50, 90)
	one := r.result("ring").side("one")
	one.Disturbed = &Figures{Rounds: one.Rounds,
		Attempts: []Attempt{{Round: 1, LineBefore: 76, LineAfter: 50}, {Round: 2, LineBefore: 75, LineAfter: 50}}}
	r.computeDerived()
	file := filepath.Join(t.TempDir(), "out.json")
	if err := r.Save(file); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Machine != r.Machine || !reflect.DeepEqual(loaded.Results, r.Results) {
		t.Errorf("%+v\n%+v", loaded, r)
	}
	const says = "a cache line from one processor to another: at least 50.0 ns, median 50.0 ns; measurements done " +
		"again since it was slow: 4\n" +
		"rounds of ring while a cache line took over 1.5 times the least: one disturbed 1; two 2\n"
	if text := printed(loaded); !strings.Contains(text, says) {
		t.Errorf("there is no %q in\n%s", says, text)
	}
}

// printed returns the report as it is printed on a terminal.
func printed(r *Report) string {
	var b strings.Builder
	_ = r.Print(&b, Format{}) // writing to a Builder never fails
	return b.String()
}
