package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/lab/chart"
)

// testReport returns a report with two steps of a workload and three sides, of which one is zrlmpid's.
func testReport(workload string, ns [2]int, ours, theirs, others string) *Report {
	points := func(a, b float64) []Point {
		return []Point{
			{N: ns[0], P50: a, P99: 2 * a, P999: 3 * a, Unload: 10 * a, CPU: a / 2},
			{N: ns[1], P50: b, P99: 2 * b, P999: 3 * b, Unload: 10 * b, CPU: b / 2},
		}
	}
	side := func(key string, kind Kind, g Group, rounds ...[]Point) Measured {
		return Measured{Side: Side{Key: key, Kind: kind, Group: g, Version: "Version of " + key}, Verified: 1000,
			Memory: 2048, Figures: Figures{Rounds: rounds}}
	}
	w, err := workloadNamed(workload)
	if err != nil {
		panic(err)
	}
	r := &Report{
		Rounds: 3, Machine: Machine{CPU: "Abacus", Cores: 2, LoadBefore: "0.5 1 1"},
		Results: []Result{{Workload: workload, Unit: w.unit, Sides: []Measured{
			side(ours, Ours, Network, points(10, 30), points(20, 10), points(9, 20)),
			side(theirs, Peer, Network, points(5, 50), points(5, 50), points(5, 50)),
			side(others, Limit, Network, points(2, 4000)[:1]),
		}}},
		Missing: []string{"One side is missing"}, Failed: []string{"ring, x: no"},
	}
	r.computeDerived()
	return r
}

func TestPrintQueues(t *testing.T) {
	var b strings.Builder
	if err := testReport("queues", [2]int{0, 30000}, "extended-udp", "openmpi-tcp", "x").Print(&b, Format{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 × Abacus",
		"load average 0.5 1 1 before",
		"\nVersion of openmpi-tcp\n3 000 messages, all verified\n*** One side is missing ***\n*** FAILED: ring, x: no ***\n",
		"== Posted receives (queues) ==\n",
		`
posted              extended-udp               openmpi-tcp                         x
     0  10.0 / 20.0 / 30.0 ×1.00  5.00 / 10.0 / 15.0 ×1.00  2.00 / 4.00 / 6.00 ×1.00
30 000  20.0 / 40.0 / 60.0 ×2.00   50.0 / 100 / 150 ×10.00                         –
`, `
posted  extended-udp  openmpi-tcp  x
     0             –            –  –
30 000         0.200        0.500  –
`,
		"posted  extended-udp ÷ openmpi-tcp\n     0                        2.00\n30 000                        0.40\n",
		"Peak memory of a process, in MiB\nextended-udp  openmpi-tcp     x\n        2.00         2.00  2.00\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
}

func TestPrintPingPong(t *testing.T) {
	var b strings.Builder
	if err := testReport("pingpong", [2]int{4, millionWords}, "cloudfpga", "upstream", rawPoll).Print(&b,
		Format{Markdown: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Ping-pong\n\n**Half round trip in µs, p50 / p99 / p99.9: over the network**\n\n",
		"|   message |          cloudfpga |           upstream |       raw-udp-poll |\n| --------: | -----------------: | -----------------: | -----------------: |\n",
		"|       4 B | 10.0 / 20.0 / 30.0 | 5.00 / 10.0 / 15.0 | 2.00 / 4.00 / 6.00 |\n",
		"| 4000000 B |    200000 |    80000 |            – |\n",
		"| cloudfpga ÷ (4 × raw-udp-poll) | cloudfpga ÷ upstream |",
		"|                           1.25 |                 2.00 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
}

// TestPrintIdle checks that the table of idle ranks has a row for each side.
func TestPrintIdle(t *testing.T) {
	r := testReport("idle", [2]int{1, 2}, "attached", "openmpi", "x")
	for i := range r.Results[0].Sides {
		r.Results[0].Sides[i].Rounds = [][]Point{{{N: 3000, Resting: 0.25, Waiting: float64(i * 100)}}}
	}
	r.computeDerived()
	var b strings.Builder
	if err := r.Print(&b, Format{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		" openmpi  0.25              100.00\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
}

// TestPrintTargets checks that a verdict contains the figure, whether the target was met, and where the figure is
// worst.
func TestPrintTargets(t *testing.T) {
	idle := testReport("idle", [2]int{1, 2}, "attached", "openmpi", "x")
	for i := range idle.Results[0].Sides {
		idle.Results[0].Sides[i].Rounds = [][]Point{{{N: 3000, Resting: 0.25, Waiting: float64(i * 100)}}}
	}
	idle.computeDerived()
	for _, x := range []struct {
		r    *Report
		want []string
	}{
		{testReport("queues", [2]int{0, 30000}, "extended-udp", "openmpi-tcp", "x"), []string{
			"missed: posted receives: half round trip at the deepest queue by that at none: 2.00 (extended-udp, 30 000); target: at most 1.25\n",
			"missed: posted receives: time to unload the deepest queue by the better peer's: 0.400 (extended-udp, 30 000); target: at most 0.1\n",
		}},
		{testReport("pingpong", [2]int{4, millionWords}, "cloudfpga", "upstream", rawPoll), []string{
			"met: cloudfpga, 1 word: time by two raw round trips, polling: 1.25; target: at most 1.25, 1.4 where a wake-up takes 10 µs or more\n",
			"missed: cloudfpga, 1 word: time of upstream's library, sleeping, by ours: 0.500; target: at least 5\n",
			"missed: cloudfpga, 1,000,000 words: bandwidth by upstream's: 2.50; target: at least 100\n",
			"not measured: extended over UDP, up to 4 KiB: latency by Open MPI's over TCP; target: at most 0.9, goal 0.8\n",
		}},
		{idle, []string{"met: idle: processor time of a rank after a second: 0.250 (attached); target: at most 0.5 %"}},
	} {
		var out strings.Builder
		if err := x.r.PrintTargets(func(line string) error { _, err := fmt.Fprintln(&out, line); return err }); err != nil {
			t.Error(err)
		}
		for _, want := range x.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("there is no %q in\n%s", want, out.String())
			}
		}
	}
}

// drawn returns all plots, with their names as keys.
func (r *Report) drawn() map[string]*chart.Chart {
	all := map[string]*chart.Chart{}
	for i := range r.Results {
		for _, d := range r.plots(&r.Results[i]) {
			all[d.name] = d.chart
		}
	}
	return all
}

// TestPlots checks that plots show the medians, with bars over all rounds.
func TestPlots(t *testing.T) {
	p := testReport("queues", [2]int{0, 30000}, "extended-udp", "openmpi-tcp", "x").drawn()
	got := p["queues-latency-network"].Series[0].Points
	if len(got) != 2 || got[0].Y != 10 || got[0].Low != 9 || got[0].High != 20 || got[1].X != 30000 {
		t.Errorf("%+v", got)
	}
	if got := p["queues-unload-network"].Series[0].Points; got[0].Y != 0 || got[1].Y != 200 {
		t.Errorf("%+v", got)
	}
	p = testReport("pingpong", [2]int{4, 1 << 20}, "extended-udp", "openmpi-tcp", "x").drawn()
	if got := p["pingpong-bandwidth-network"].Series[1].Points[0].Y; got != 800e3 {
		t.Errorf("%v B/s", got)
	}
	if len(p) != 2 {
		t.Errorf("there are plots of nothing: %d", len(p))
	}
}

func TestFormats(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{formatFigure(123.4), "123"}, {formatFigure(12.34), "12.3"}, {formatFigure(1.234), "1.23"}, {formatFigure(0.0268),
			"0.027"},
		{formatDuration(1.2e6), "1.20 s"}, {formatDuration(417167), "417 ms"}, {formatDuration(9.5), "9.50 µs"},
		{formatSigned(-1.234), "-1.23"}, {formatSigned(12), "12.0"},
		{formatCount(0), "0"}, {formatCount(999), "999"}, {formatCount(1000), "1 000"}, {formatCount(1234567), "1 234 567"},
		{formatSize(4), "4 B"}, {formatSize(1388), "1388 B"}, {formatSize(16384), "16 KiB"}, {formatSize(4 << 20), "4 MiB"},
	} {
		if x.got != x.want {
			t.Errorf("%q instead of %q", x.got, x.want)
		}
	}
}

// TestTimeLeft checks that a measurement is expected to take as long as last time, and that other times are estimated
// by the weights.
func TestTimeLeft(t *testing.T) {
	one, three := &workload{weight: 1}, &workload{weight: 3}
	r := &runner{Options: Options{Rounds: 2}, measurements: []*measurement{{w: one}, {w: three}, {w: three, failed: true}}}
	var rest []scheduled
	for range 2 {
		for _, m := range r.measurements {
			rest = append(rest, scheduled{measurement: m})
		}
	}
	if got := r.estimateRemaining(rest); got != 0 {
		t.Errorf("%v is left, of which nothing is known", got)
	}
	r.measurements[0].took = 10
	if got := r.estimateRemaining(rest[1:]); got != 10+2*30 {
		t.Errorf("%d is left", got)
	}
	r.measurements[1].took = 50
	if got := r.estimateRemaining(rest[3:]); got != 10+50 {
		t.Errorf("%d is left", got)
	}
}

// TestUsageOfMachine checks that this process has used processor time and memory.
func TestUsageOfMachine(t *testing.T) {
	for range 1000 {
		_ = make([]byte, 1<<20)
	}
	if processorTime() <= 0 {
		t.Error("no time was used")
	}
	if _, err := os.Stat("/proc/self/status"); err == nil {
		if kib := peakMemory("self"); kib < 1<<10 {
			t.Errorf("%d KiB", kib)
		}
		if threadsTime(os.Getpid()) <= 0 {
			t.Error("the threads have used no time")
		}
	}
	if peakMemory("0") != 0 || threadsTime(0) != 0 {
		t.Error("a process that does not exist has used something")
	}
}

// TestProfileOnFullDisk checks that it is an error if a profile cannot be written.
func TestProfileOnFullDisk(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("NO TEST OF PROFILES ON A FULL DISK: ", err)
	}
	stop, err := startProfile(full)
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}

// TestDaemonFails checks that an error that the daemon of attached ranks reports when it exits is an error of the
// measurement.
func TestDaemonFails(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("NO TEST OF A DAEMON THAT FAILS: ", err)
	}
	dir := t.TempDir()
	self := filepath.Join(dir, "self")
	script := "#!" + sh + "\nif [ \"$2\" = " + daemonCommand +
		" ]; then echo ready; read x; echo it broke >&2; exit 3; fi\n"
	if err := os.WriteFile(self, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := workloadNamed("pingpong")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(links, func(l link) bool { return l.attached })
	if err := links[i].run(t.Context(), self, job{w: w, ranks: 2, dir: dir}, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "it broke") {
		t.Errorf("%v", err)
	}
}

// TestColours checks that all sides of zrlmpid have different colours.
func TestColours(t *testing.T) {
	for key, v := range variants {
		if n := chart.Ours.Colours(); v >= n {
			t.Errorf("%s is number %d, and there are %d colours", key, v, n)
		}
	}
}
