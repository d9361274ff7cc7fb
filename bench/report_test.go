package main

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// sideOf returns a side with rounds, made of p50 and unload of each step.
func sideOf(s side, rounds ...[]point) measured {
	return measured{side: s, Verified: 1000, Rounds: rounds}
}

func testReport(workload string, ns [2]int) *report {
	points := func(a, b float64) []point {
		return []point{{ns[0], a, 2 * a, 10 * a}, {ns[1], b, 2 * b, 10 * b}}
	}
	r := &report{
		Workload: workload, Unit: workloads[workload].unit, Rounds: 3,
		Machine: machine{CPU: "Abacus", Cores: 2, LoadBefore: "0.5 1 1"},
		Sides: []measured{
			sideOf(side{Key: extendedUDP.key, Name: "Ours"}, points(10, 30), points(20, 10), points(9, 20)),
			sideOf(side{Key: openMPITCP, Name: "Theirs", Peer: true, Version: "Theirs 1.0"}, points(5, 50), points(5, 50), points(5, 50)),
			sideOf(side{Key: "mpich", Name: "Others", Peer: true, Version: "Others 2.0"}, points(2, 4000), points(2, 4000), points(2, 4000)),
		},
		Missing: []string{"Somebody is missing"},
	}
	r.finish()
	return r
}

func TestMedians(t *testing.T) {
	rounds := [][]point{{{1, 5, 1, 30}}, {{1, 4, 9, 10}}, {{1, 6, 2, 20}}}
	if got := medians(rounds); !reflect.DeepEqual(got, []point{{1, 5, 2, 20}}) {
		t.Error(got)
	}
	if got := medians(rounds[:2]); !reflect.DeepEqual(got, []point{{1, 4.5, 5, 20}}) {
		t.Error(got)
	}
}

func TestNewPoint(t *testing.T) {
	var half []time.Duration
	for i := range 200 {
		half = append(half, time.Duration(200-i)*time.Microsecond)
	}
	if got := newPoint(step{7, 200}, half, time.Millisecond); got != (point{7, 101, 199, 1000}) {
		t.Error(got)
	}
	if got := newPoint(step{7, 1}, []time.Duration{1500}, 0); got != (point{7, 1.5, 1.5, 0}) {
		t.Error(got)
	}
}

func TestPrintQueues(t *testing.T) {
	var b strings.Builder
	if err := testReport("queues", [2]int{0, 30000}).print(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 × Abacus",
		"load average 0.5 1 1 before",
		"Theirs 1.0\nOthers 2.0\n",
		`
posted        Ours       Theirs         Others
     0  10.0 ×1.00   5.00 ×1.00     2.00 ×1.00
30 000  20.0 ×2.00  50.0 ×10.00  4000 ×2000.00
`, `
posted   Ours  Theirs  Others  zrlmpid / better peer
30 000  0.200   0.500    40.0                  0.400

`,
		"\n3 000 messages, all verified.\n",
		"zrlmpid's half round trip at 30 000 posted receives is 2.00 times that at 0; the aim is about 1.",
		"zrlmpid unloads 30 000 in 0.4000 times the better peer's time; the aim is less than 0.1.",
		"*** Somebody is missing ***",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
}

func TestPrintPingPong(t *testing.T) {
	var b strings.Builder
	if err := testReport("pingpong", [2]int{4, 1 << 20}).print(&b, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| message |        Ours |      Theirs |      Others |\n| ------: | ----------: | ----------: | ----------: |\n",
		"|     4 B | 10.0 / 20.0 | 5.00 / 10.0 | 2.00 / 4.00 |\n",
		"|   1 MiB | 52429 |  20972 |    262 |\n",
		"**Half round trip (p50) as a multiple of that of Theirs**",
		"|     4 B | 2.00 |   1.00 |   0.40 |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
}

// TestPlots: what is drawn are the medians, with whiskers over all rounds.
func TestPlots(t *testing.T) {
	p := testReport("queues", [2]int{0, 30000}).plots()
	got := p["queues-latency"].Series[0].Points
	if len(got) != 2 || got[0].Y != 10 || got[0].Low != 9 || got[0].High != 20 || got[1].X != 30000 {
		t.Errorf("%+v", got)
	}
	if got := p["queues-unload"].Series[0].Points; got[0].Y != 0 || got[1].Y != 200 {
		t.Errorf("%+v", got)
	}
	if got := testReport("pingpong", [2]int{4, 1 << 20}).plots()["pingpong-bandwidth"].Series[1].Points[0].Y; got != 800e3 {
		t.Errorf("%v B/s", got)
	}
}

func TestFormats(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{figure(123.4), "123"}, {figure(12.34), "12.3"}, {figure(1.234), "1.23"}, {figure(0.0268), "0.027"},
		{count(0), "0"}, {count(999), "999"}, {count(1000), "1 000"}, {count(1234567), "1 234 567"},
		{size(4), "4 B"}, {size(1344), "1344 B"}, {size(16388), "16388 B"}, {size(16384), "16 KiB"}, {size(4 << 20), "4 MiB"},
	} {
		if x.got != x.want {
			t.Errorf("%q instead of %q", x.got, x.want)
		}
	}
}
