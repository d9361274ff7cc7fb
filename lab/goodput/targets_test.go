package goodput

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
)

var figures = flag.String("figures", "", "compare the figures in these `files`, which zrlbench goodput --save has "+
	"written, with the targets; separated by commas")

// TestTargetsOfRun compares the figures of a measurement with the targets of the project, and prints which targets are
// met. It fails only if it cannot read the figures, since missing a target may be due to the machine. `make
// goodput-targets` runs it.
func TestTargetsOfRun(t *testing.T) {
	if *figures == "" {
		t.Skip("no -figures: nothing to compare")
	}
	r, err := Load(strings.Split(*figures, ",")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("targets:\n%s", strings.Join(r.verdicts(), "\n"))
}

// Targets of the project.
const (
	leastRatio   = 0.95
	leastReorder = 0.5 // relative to the goodput without reordering and duplicates
	leastShare   = 0.4
)

// verdicts compares the worst cell of each kind with its target.
func (r *Report) verdicts() []string {
	return []string{
		verdict("extended over UDP: goodput by that of TCP CUBIC", leastRatio,
			r.worst(partLoss, func(c *Cell) (float64, bool) { return c.ratio(extendedUDP) })),
		verdict("extended over TCP: goodput by that of TCP CUBIC", leastRatio,
			r.worst(partLoss, func(c *Cell) (float64, bool) { return c.ratio(extendedTCP) })),
		verdict("extended over UDP: goodput with 5 % reordered or duplicated by that without", leastReorder,
			r.worst(partReorder, func(c *Cell) (float64, bool) {
				for i := range r.Cells {
					clean := &r.Cells[i]
					if base, ok := clean.findRun(extendedUDP).median(flowGoodput(0)); ok && base > 0 &&
						clean.Part != partReorder && clean.RTT == c.RTT && clean.Loss == 0 && clean.MTU == c.MTU {
						v, ok := c.findRun(extendedUDP).median(flowGoodput(0))
						return v / base, ok
					}
				}
				return 0, false
			})),
		verdict("two flows of extended over UDP: share of the smaller one", leastShare,
			r.worst(partShares, smaller(extendedUDP, extendedUDP))),
		verdict("extended over UDP beside TCP CUBIC: share of the smaller one", leastShare,
			r.worst(partShares, smaller(extendedUDP, tcpCubic))),
		verdict("extended over UDP: bytes of 100 MB received as they were sent", intactBytes,
			r.worst(partIntact, func(c *Cell) (float64, bool) {
				return c.findRun(extendedUDP).median(func(r *Round) float64 { return float64(r.Flows[0].Bytes) })
			})),
	}
}

// smaller returns a function that returns the smaller one of the shares of two flows.
func smaller(flows ...string) func(*Cell) (float64, bool) {
	return func(c *Cell) (float64, bool) {
		return c.findRun(flows...).median(func(r *Round) float64 { return min(firstShare(r), 1-firstShare(r)) })
	}
}

// worst is the smallest value of a figure in all cells of a part. cell is nil if the part has no cells.
type worst struct {
	value float64
	cell  *Cell
}

func (r *Report) worst(part string, figure func(*Cell) (float64, bool)) worst {
	w := worst{value: math.Inf(1)}
	for i := range r.Cells {
		c := &r.Cells[i]
		if v, ok := figure(c); ok && c.Part == part && v < w.value {
			w = worst{v, c}
		}
	}
	return w
}

func verdict(name string, least float64, w worst) string {
	target := fmt.Sprintf("target: at least %g", least)
	switch {
	case w.cell == nil:
		return fmt.Sprintf("- not measured: %s; %s", name, target)
	case w.value >= least:
		return fmt.Sprintf("- met: %s: %.3g (worst: %s); %s", name, w.value, w.cell.path(), target)
	}
	return fmt.Sprintf("- missed: %s: %.3g (worst: %s); %s", name, w.value, w.cell.path(), target)
}

func TestVerdicts(t *testing.T) {
	r := testReport()
	got := strings.Join(r.verdicts(), "\n")
	want := `- missed: extended over UDP: goodput by that of TCP CUBIC: 0.5 (worst: 20 ms, 1 %, MTU 1500); target: at least 0.95
- met: extended over TCP: goodput by that of TCP CUBIC: 1.11 (worst: 20 ms, 0 %, MTU 1500); target: at least 0.95
- missed: extended over UDP: goodput with 5 % reordered or duplicated by that without: 0.1 (worst: 20 ms, 0 %, MTU 1500, reorder 5 %); target: at least 0.5
- not measured: two flows of extended over UDP: share of the smaller one; target: at least 0.4
- missed: extended over UDP beside TCP CUBIC: share of the smaller one: 0.25 (worst: 20 ms, 0 %, MTU 1500); target: at least 0.4
- met: extended over UDP: bytes of 100 MB received as they were sent: 1e+08 (worst: 20 ms, 0.1 %, MTU 1500, reorder 1 %, duplicate 1 %); target: at least 1e+08`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
