package bench

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestVerdicts checks that bandwidths are compared as the inverse of times, and that the best of several sides counts.
func TestVerdicts(t *testing.T) {
	side := func(key string, times ...float64) Measured {
		var round []Point
		for i, n := range []int{4, 64 << 10, millionWords} {
			if i < len(times) && times[i] > 0 {
				round = append(round, Point{N: n, P50: times[i], P99: times[i] * times[i]})
			}
		}
		return Measured{Side: Side{Key: key, Kind: Ours}, Figures: Figures{Rounds: [][]Point{round}}}
	}
	r := &Report{Results: []Result{
		{Workload: "pingpong", Sides: []Measured{
			side("cloudfpga", 10, 50, 1000), side("upstream", 100, 0, 170000), side("upstream-one", 15),
			side("raw-udp-poll", 2),
			side("extended-udp", 4, 30, 500), side("openmpi-tcp", 5, 33, 700), side("raw-shm", 0.2, 5),
			side("attached", 5, 110),
			side("extended-shm", 0.6, 6, 400), side("openmpi", 0.4, 5, 300), side("mpich", 0.3, 6, 350),
		}},
		{Workload: "stream", Sides: []Measured{side("raw-udp-gro", 1, 1, 700)}},
		{Workload: "rate", Sides: []Measured{side("extended-udp", 3), side("openmpi-tcp", 6)}},
	}}
	r.computeDerived()
	r.Results[0].Sides[0].Disturbed = &Figures{Rounds: [][]Point{{{N: 4, P50: 20}, {N: millionWords, P50: 1100}}}}
	r.computeDerived()
	for name, want := range map[string]string{
		"cloudfpga, 1 word: time by two raw round trips, polling":                                     "met: 1.25",
		"cloudfpga, up to 64 KiB: time by that of the next longer or shorter message, the larger one": "met: 0.200 (4 B)",
		"cloudfpga, 1 word: time of upstream's library, sleeping, by ours":                            "met: 10.0",
		"cloudfpga, 1 word: time of upstream's library at its best by ours":                           "missed: 1.50",
		"cloudfpga, 1,000,000 words: bandwidth by a raw stream's with UDP_SEGMENT and UDP_GRO":        "met: 0.700",
		"cloudfpga, 1,000,000 words: bandwidth by upstream's":                                         "met: 170",
		"extended over UDP, up to 4 KiB: latency by Open MPI's over TCP":                              "met: 0.800 (4 B)",
		"extended over UDP, from 64 KiB: bandwidth by Open MPI's over TCP":                            "met: 1.10 (64 KiB)",
		"extended over UDP: message rate by Open MPI's over TCP, 64 in flight":                        "met: 2.00 (4 B)",
		"extended over UDP, up to 16 KiB: p99 by Open MPI's over TCP":                                 "met: 0.640 (4 B)",
		"shared memory, 4 B: latency by a raw ring's":                                                 "missed: 3.00",
		"shared memory, up to 4 KiB: latency by the better peer's":                                    "met: 2.00 (4 B)",
		"shared memory, from 64 KiB: bandwidth by the better peer's":                                  "missed: 0.750 (4000000 B)",
		"attached, two programs, up to 1 MiB: time that attaching adds by a round trip of a raw ring": "missed: 8.00 (64 KiB)",
		"attached, two programs, up to 1 MiB: latency by that in process":                             "missed: 3.67 (64 KiB)",
		"attached, one program, up to 1 MiB: latency by that in process":                              "not measured",
		"Ping-pong, a neighbour takes a fifth of each processor: p50 by that without it":              "missed: 2.00 (cloudfpga, 4 B)",
		"Message rate, a neighbour takes a fifth of each processor: p50 by that without it":           "not measured",
	} {
		if got := verdictOf(r, name); got != want {
			t.Errorf("%s: %s instead of %s", name, got, want)
		}
	}
	// If wake-ups are slow, another bound applies.
	r.Results[0].side("cloudfpga").Rounds[0][0].P50 = 11
	for wakeUp, want := range map[float64]string{9: "missed: 1.38", 10: "met: 1.38"} {
		r.Machine.WakeUp = wakeUp
		r.computeDerived()
		if got := verdictOf(r, targets[0].name); got != want {
			t.Errorf("where a wake-up takes %v µs: %s instead of %s", wakeUp, got, want)
		}
	}
}

// verdictOf returns the verdict on the target with the given name.
func verdictOf(r *Report, name string) string {
	for _, v := range r.verdicts() {
		if v.Name == name {
			return strings.Replace(strings.TrimSuffix(v.String(), "; target: "+v.Target), ": "+name, "", 1)
		}
	}
	return "there is no target " + name
}

// TestTargets checks that every target is complete, and that its workload exists.
func TestTargets(t *testing.T) {
	for _, x := range targets {
		if _, err := workloadNamed(x.workload); err != nil || x.name == "" || x.measure == nil {
			t.Errorf("%+v: %v", x, err)
		}
	}
	for _, x := range pictures {
		if _, err := workloadNamed(x.workload); err != nil {
			t.Error(err)
		}
	}
	for _, x := range sheets {
		if _, err := workloadNamed(x.workload); err != nil {
			t.Error(err)
		}
	}
	var keys []string
	for _, f := range []family{rawFamily(), ourFamily(), hostsFamily(), libraries[0].family(),
		libraries[1].family(), upstreamFamily()} {
		keys = append(keys, f.keys...)
	}
	for _, c := range comparisons {
		for _, key := range append(c.bases, c.side) {
			if !slices.Contains(keys, key) {
				t.Errorf("%s: there is no side %q", c.name(), key)
			}
		}
	}
}

func TestFit(t *testing.T) {
	for _, x := range []struct {
		name string
		x, y []float64
		want fit
	}{
		{"line", []float64{0, 10, 1000}, []float64{5, 25, 2005}, fit{5, 2, 0}},
		{"level", []float64{1, 2, 3}, []float64{7, 7, 7}, fit{7, 0, 0}},
		// The points at 1 are 10 % away from the line, the points at 2 only 5 %.
		{"off", []float64{1, 1, 2, 2}, []float64{9, 11, 19, 21}, fit{}},
	} {
		got, ok := fitLine(x.x, x.y)
		if x.name == "off" {
			if !ok || got.deviation < 0.05 || got.deviation > 0.1 || math.Abs(got.valueAt(2)-20) > 0.5 ||
				math.Abs(got.valueAt(1)-10) > 0.5 {
				t.Errorf("%s: %+v", x.name, got)
			}
			continue
		}
		if !ok || math.Abs(got.intercept-x.want.intercept) > 1e-9 || math.Abs(got.slope-x.want.slope) > 1e-9 ||
			got.deviation > 1e-9 {
			t.Errorf("%s: %+v", x.name, got)
		}
	}
	// Sizes and times span many orders of magnitude, but small ones count as much as large ones.
	if got, ok := fitLine([]float64{4, 400, 4e6}, []float64{5.1, 5.3, 2100}); !ok || got.intercept < 4.5 ||
		got.intercept > 5.5 {
		t.Errorf("%+v", got)
	}
	for _, bad := range [][2][]float64{
		{nil, nil}, {{1, 2}, {1, 2}}, {{3, 3, 3}, {1, 2, 3}}, {{1, 2, 3}, {1, 0, 3}}, {{1, 2, 3}, {1, math.NaN(), 3}},
	} {
		if got, ok := fitLine(bad[0], bad[1]); ok {
			t.Errorf("%v: %+v", bad, got)
		}
	}
}

// TestGrowth checks that the line of a side is in the report, in the table and in the plot.
func TestGrowth(t *testing.T) {
	r := testReport("ring", [2]int{2, 4}, "extended-udp", "openmpi-tcp", "x")
	for i := range r.Results[0].Sides {
		r.Results[0].Sides[i].Rounds = [][]Point{{{N: 2, P50: 3}, {N: 4, P50: 4}, {N: 8, P50: 6}}}
	}
	r.computeDerived()
	g := r.findGrowth("ring", "extended-udp", "p50")
	if g == nil || math.Abs(g.Intercept-2) > 1e-9 || math.Abs(g.Slope-500) > 1e-6 {
		t.Fatalf("%+v", r.Growth)
	}
	var b strings.Builder
	if err := r.Print(&b, Format{}); err != nil {
		t.Fatal(err)
	}
	if want := "extended-udp           2.00            500             0\n"; !strings.Contains(b.String(), want) {
		t.Errorf("there is no %q in\n%s", want, b.String())
	}
	p := r.drawn()["ring-network"]
	if p.Series[0].Fit == nil || math.Abs(p.Series[0].Fit(8)-6) > 1e-9 || p.Series[1].Fit != nil {
		t.Errorf("%+v", p.Series)
	}
}
