package bench

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// things is a workload whose steps have n messages.
var things = &workload{unit: "things", messages: func(s step) int { return s.n },
	requiredFigures: []string{"p50", "cpu"}}

func TestParseOutput(t *testing.T) {
	steps := []step{{10, 1}, {20, 1}}
	const good = "point 10 p50 1.5 p99 2.25 unload 0\npoint 20 p50 3 p99 4 unload 5.5 cpu 7\nmemory 100\nverified 30\n"
	want := outcome{points: [][]Point{{{N: 10, P50: 1.5, P99: 2.25}, {N: 20, P50: 3, P99: 4, Unload: 5.5, CPU: 7}}},
		verified: 30, memory: 100}
	each := "pace 10 0 9 0.000\n" + strings.Replace(good, "point 20", "memory 100\nverified 10\npoint 20", 1)
	each = strings.Replace(each, "memory 100\nverified 30", "memory 50\nverified 20", 1)
	for _, text := range []string{good, each, strings.ReplaceAll(good, "\n", "\r\n"),
		"a launcher's banner\n\n" + good + "\nand its end\n"} {
		got, err := parseOutput([]byte(text), things, steps, 1)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	want.notes = []string{"twice the usual"}
	if got, err := parseOutput([]byte("note twice the usual\n"+good), things, steps, 1); err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, x := range []struct{ text, says string }{
		{"", "0 figures for 2 steps"},
		{strings.Replace(good, "verified 30", "", 1), "0 messages were verified of 30"},
		{strings.Replace(good, "30", "29", 1), "29 messages were verified of 30"},
		{strings.Replace(good, "point 20", "point 21", 1), "figure 2 is of 21 things and not of 20"},
		{strings.Replace(good, "point 20", "point x", 1), `line "point x p50`},
		{strings.Replace(good, "1.5", "x", 1), `line "point 10 p50 x`},
		{strings.Replace(good, "1.5", "0", 1), "takes no time"},
		{strings.Replace(good, "1.5", "-1", 1), "a figure is 0 or more"},
		{strings.Replace(good, "2.25", "NaN", 1), "a figure is 0 or more"},
		{strings.Replace(good, "5.5", "+Inf", 1), "a figure is 0 or more"},
		{strings.Replace(good, "p99", "p98", 1), `there is no figure "p98"`},
		{strings.Replace(good, " cpu 7", " cpu", 1), `there is no figure "cpu"`},
		{strings.Replace(good, "100", "-100", 1), `line "memory -100"`},
		{good + "point 30 p50 1 p99 1 unload 0\n", "3 figures for 2 steps"},
		{good + "verified many\n", `line "verified many`},
	} {
		if got, err := parseOutput([]byte(x.text), things, steps, 1); err == nil ||
			!strings.Contains(err.Error(), x.says) {
			t.Errorf("%q: %v, %v", x.text, got, err)
		}
	}
}

// TestWrite checks that a rank's output can be parsed.
func TestWrite(t *testing.T) {
	var b strings.Builder
	want := Point{N: 3, P50: 1.25, P99: 17, P999: 18, Least: 1, Unload: 0.5, Resting: 2, Waiting: 3, CPU: 4}
	want.write(&b)
	got, err := parseOutput([]byte(b.String()+"verified 3\n"), things, []step{{3, 1}}, 1)
	if err != nil || len(got.points) != 1 || got.points[0][0] != want {
		t.Errorf("%v, %v", got, err)
	}
}

func TestNewPoint(t *testing.T) {
	var times []time.Duration
	for i := range 2000 {
		times = append(times, time.Duration(2000-i)*time.Microsecond)
	}
	if got := newPoint(step{7, 2000}, times); got != (Point{N: 7, P50: 1001, P99: 1981, P999: 1999, Least: 1}) {
		t.Errorf("%+v", got)
	}
	if got := newPoint(step{7, 1},
		[]time.Duration{1500}); got != (Point{N: 7, P50: 1.5, P99: 1.5, P999: 1.5, Least: 1.5}) {
		t.Errorf("%+v", got)
	}
}

func TestMedians(t *testing.T) {
	rounds := [][]Point{{{N: 1, P50: 5, P99: 1, Unload: 30}}, {{N: 1, P50: 4, P99: 9, Unload: 10}},
		{{N: 1, P50: 6, P99: 2, Unload: 20}}}
	if got := medians(rounds); !slices.Equal(got, []Point{{N: 1, P50: 5, P99: 2, Unload: 20}}) {
		t.Error(got)
	}
	if got := medians(rounds[:2]); !slices.Equal(got, []Point{{N: 1, P50: 4.5, P99: 5, Unload: 20}}) {
		t.Error(got)
	}
}

func FuzzParseOutput(f *testing.F) {
	f.Add([]byte("point 10 p50 1.5 p99 2.25 unload 0\nmemory 3\nverified 10\n"))
	f.Add([]byte("point 10 p50 1e999 p99 nan unload -0\nverified 99999999999999999999\n"))
	f.Add([]byte("point 10 p50\npoint\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		o, err := parseOutput(out, things, []step{{10, 1}}, 1)
		if err == nil && (len(o.points) != 1 || o.points[0][0].N != 10 || !(o.points[0][0].P50 > 0) ||
			o.verified != 10) {
			t.Errorf("%q: %v", out, o)
		}
	})
}
