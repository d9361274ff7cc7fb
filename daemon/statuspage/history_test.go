package statuspage

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestRing(t *testing.T) {
	r := ring{size: 3}
	for i := range 5 {
		r.push(point{value: float64(i)})
	}
	got := r.ordered()
	if len(got) != 3 || got[0].value != 2 || got[2].value != 4 {
		t.Errorf("%v", got)
	}
	if got := (*ring)(nil).ordered(); got != nil {
		t.Errorf("%v", got)
	}
}

func TestRates(t *testing.T) {
	r := ring{size: 10}
	var m mark
	for _, step := range []struct {
		seconds  float64
		messages uint64
		started  time.Time
		points   int
		last     float64
	}{
		{0, 100, noon, 0, 0}, {1, 150, noon, 1, 50},
		{1.2, 160, noon, 1, 50},        // too soon: counts for the next point
		{2, 160, noon, 2, 10},          // together with the previous ten
		{3, 5, noon, 2, 10},            // the counter was reset
		{4, 10, noon, 3, 5},            // continues from there
		{5, 11, noon.Add(1), 3, 5},     // another run
		{7, 31, noon.Add(1), 4, 10},    // continues from there
		{17, 31, noon.Add(1), 5, 0},    // no change
		{18, 131, noon.Add(1), 6, 1e2}, // and a change again
	} {
		m = r.addRate(m, mark{noon.Add(time.Duration(step.seconds * float64(time.Second))), step.started, step.messages},
			time.Second/2)
		all := r.ordered()
		if len(all) != step.points || len(all) > 0 && all[len(all)-1].value != step.last {
			t.Errorf("%+v: %v", step, all)
		}
	}
}

func TestTripsAreBounded(t *testing.T) {
	p := newHistory()
	for i := range 2 * maxRTTPairs {
		p.addRoundTrip(pair{0, i}, point{noon, 1e-3})
		p.addRoundTrip(pair{0, i}, point{noon, 0}) // unknown
	}
	if len(p.roundTrips) != maxRTTPairs || len(p.roundTrips[pair{0, 5}].ordered()) != 1 {
		t.Errorf("%d pairs", len(p.roundTrips))
	}
}

func TestChart(t *testing.T) {
	at := func(seconds int, value float64) point {
		return point{noon.Add(time.Duration(seconds) * time.Second), value}
	}
	now := noon.Add(100 * time.Second)
	if c := newChart([]point{at(99, 1)}, now, 100*time.Second, time.Second); c.Line != "" || c.Area != "" {
		t.Errorf("a line of one point: %+v", c)
	}
	c := newChart([]point{at(-5, 3), at(90, 0), at(91, 10), at(99, 5), at(100, 5)}, now, 100*time.Second, time.Second)
	if c.Line != "M432 71.0L437 1.0M475 36.0L480 36.0" || c.Max != "10" || c.Last != "5" || c.Top != "10" ||
		c.Middle != "5" {
		t.Errorf("%+v", c)
	}
	if c.Area != "M432 71.0L437 1.0L437 72L432 72ZM475 36.0L480 36.0L480 72L475 72Z" {
		t.Errorf("%s", c.Area)
	}
	if c.Points != "432:0;437:10;475:5;480:5" || c.Span != 100 || c.End != now.UnixMilli() || len(c.Times) != 5 ||
		c.Times[2] != "−50 s" || c.Times[4] != "now" {
		t.Errorf("%+v", c)
	}
	if c := newChart([]point{at(99, 0), at(100, 0)}, now, 100*time.Second, time.Second); strings.Contains(c.Line,
		"NaN") || c.Max != "0" {
		t.Errorf("%+v", c)
	}
}

func TestAxis(t *testing.T) {
	for highest, want := range map[float64]float64{0: 1, .3: .5, 1: 1, 1.01: 2, 4.9: 5, 5.1: 10, 612: 1000, 1e6: 1e6} {
		if got := axisMax(highest); got != want {
			t.Errorf("%v: %v, want %v", highest, got, want)
		}
	}
	if got := strings.Join(axisLabels(time.Hour), " "); got != "−60 min −45 min −30 min −15 min now" {
		t.Error(got)
	}
}

func TestTrace(t *testing.T) {
	if tr := newTrace([]point{{value: 1}}); tr.Line != "" {
		t.Errorf("%+v", tr)
	}
	if tr := newTrace([]point{{value: 1e-3}, {value: 3e-3}, {value: 2e-3}}); tr.Line != "M74 16L76 2L78 9" ||
		tr.Min != "1 ms" || tr.Max != "3 ms" {
		t.Errorf("%+v", tr)
	}
	if tr := newTrace([]point{{value: 2}, {value: 2}}); tr.Line != "M76 9L78 9" {
		t.Errorf("%+v", tr)
	}
}
