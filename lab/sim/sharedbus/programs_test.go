package sharedbus_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/lab/sim/sharedbus"
)

var processors = [...]int{1, 2, 4, 6, 8}

// source contains tables II and V of the source, in milliseconds.
var source = map[string]map[int][5]float64{
	"matvec": {
		50: {22, 12, 9, 7, 6}, 100: {88, 47, 30, 25, 23}, 150: {200, 106, 65, 53, 50},
		200: {357, 189, 118, 97, 87}, 250: {559, 296, 180, 148, 137}, 300: {806, 427, 264, 214, 196},
	},
	"backsub": {
		100: {46, 30, 20, 18, 20}, 200: {183, 116, 74, 63, 70}, 300: {414, 257, 161, 136, 151},
		400: {738, 454, 282, 263, 261}, 500: {1155, 707, 437, 364, 403}, 600: {1669, 1018, 627, 520, 575},
	},
}

// outside lists the cells that differ by more than 10 % and more than 1 ms.
var outside = map[string][][2]int{"matvec": {{50, 4}, {50, 6}, {100, 4}}}

func programs() []sharedbus.Program {
	return []sharedbus.Program{sharedbus.MatVec(), sharedbus.BackSub()}
}

// deviation returns how far a time is from the time in the source, in units of the tolerance (10 % or 1 ms).
func deviation(got, want float64) float64 { return (got - want) / max(want/10, 1) }

func run(t testing.TB, p sharedbus.Program, n, processors int) sharedbus.Result {
	t.Helper()
	r, err := p.Run(n, processors)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTables checks that all cells except three are within 10 % or 1 ms. For cells of up to 300 rows, this holds even
// if the bus is faster, or half as fast.
func TestTables(t *testing.T) {
	buses := []sim.Cycle{sharedbus.MatVec().Costs.Bus}
	if !testing.Short() {
		buses = append(buses, 1, 6)
	}
	for _, p := range programs() {
		own, word := p.Costs.Bus, p.Costs.Bus+p.Costs.Word
		for _, bus := range buses {
			p := p
			p.Costs.Bus, p.Costs.Word = bus, word-bus
			t.Run(fmt.Sprintf("%s/%d", p.Name, bus), func(t *testing.T) {
				t.Parallel()
				for n, row := range source[p.Name] {
					if bus != own && n > 300 {
						continue
					}
					for i, want := range row {
						got := run(t, p, n, processors[i]).Milliseconds()
						if within := math.Abs(deviation(got, want)) <= 1; within == slices.Contains(outside[p.Name],
							[2]int{n, processors[i]}) {
							t.Errorf("%d × %d, %d processors: %.1f ms, in the source %.1f ms", n, n, processors[i], got,
								want)
						}
					}
				}
			})
		}
	}
}

// TestFit checks that the costs of words, envelopes and elements minimize the squared deviations for one and two
// processors.
func TestFit(t *testing.T) {
	if testing.Short() {
		t.Skip("runs all columns of two processors a dozen times")
	}
	t.Parallel()
	squares := func(change sharedbus.Costs) (sum float64) {
		for _, p := range programs() {
			p.Costs.Word += change.Word
			p.Costs.Envelope += change.Envelope
			p.Costs.Element += change.Element
			for n, row := range source[p.Name] {
				for i, count := range processors[:2] {
					d := deviation(run(t, p, n, count).Milliseconds(), row[i])
					sum += d * d
				}
			}
		}
		return sum
	}
	least := squares(sharedbus.Costs{})
	for _, change := range []sharedbus.Costs{
		{Word: 1}, {Word: -1}, {Envelope: 20}, {Envelope: -20}, {Element: 2}, {Element: -2}, {Word: 1, Envelope: -30},
		{Word: -1, Envelope: 30},
	} {
		if got := squares(change); got < least {
			t.Errorf("with %+v more, the sum of squares is %.4f, and %.4f without", change, got, least)
		}
	}
}

// TestTurn checks that back substitution is fastest with 6 processors, and multiplication of a matrix by a vector with
// 8.
func TestTurn(t *testing.T) {
	for _, p := range programs() {
		fastest, least := 0, math.Inf(1)
		for _, count := range processors {
			if ms := run(t, p, 300, count).Milliseconds(); ms < least {
				fastest, least = count, ms
			}
		}
		if want := map[string]int{"matvec": 8, "backsub": 6}[p.Name]; fastest != want {
			t.Errorf("%s is fastest with %d processors, want %d", p.Name, fastest, want)
		}
	}
}

// TestEnvelopes checks that there is no optimum number of processors if envelopes cost no more than words. With more
// processors, blocks are shorter, and processor 0 examines an envelope of each other processor for every block.
func TestEnvelopes(t *testing.T) {
	p := sharedbus.BackSub()
	p.Costs.Envelope = 0
	if six, eight := run(t, p, 200, 6), run(t, p, 200, 8); eight.Cycles >= six.Cycles {
		t.Errorf("with fast envelopes 8 processors take %d cycles, 6 %d", eight.Cycles, six.Cycles)
	}
}

// TestContention checks that several processors wait for each other if the bus is slow, but two processors do not.
func TestContention(t *testing.T) {
	slow, fast := sharedbus.BackSub(), sharedbus.BackSub()
	word := fast.Costs.Bus + fast.Costs.Word
	fast.Costs.Bus, fast.Costs.Word = 1, word-1
	slow.Costs.Bus, slow.Costs.Word = 12, word-12
	ratio := func(processors int) float64 {
		return float64(run(t, slow, 100, processors).Cycles) / float64(run(t, fast, 100, processors).Cycles)
	}
	if two, eight := ratio(2), ratio(8); two > 1.01 || eight < 1.1 {
		t.Errorf("on a slow bus 2 processors take %.3f times as long, 8 %.3f times", two, eight)
	}
}

// TestOneProcessor checks that a single processor takes only the time of its elements, and does not use the bus.
func TestOneProcessor(t *testing.T) {
	for _, p := range programs() {
		want := map[string]int{"matvec": 100 * 100, "backsub": 100 * 99 / 2}[p.Name]
		if got := run(t, p, 100, 1); int(got.Cycles) != want*int(p.Costs.Element) {
			t.Errorf("%s takes %d cycles, want %d times %d", p.Name, got.Cycles, want, p.Costs.Element)
		}
	}
}

// TestSizes checks that a program completes with any number of processors, even with more processors than rows, and
// that it has the same result each time.
func TestSizes(t *testing.T) {
	for _, p := range programs() {
		for count := 1; count <= sharedbus.MaxProcessors; count++ {
			for _, n := range []int{1, 2, 7, 40} {
				if first, again := run(t, p, n, count), run(t, p, n, count); first != again || first.Cycles < 0 {
					t.Errorf("%s, %d × %d, %d processors: %+v, then %+v", p.Name, n, n, count, first, again)
				}
			}
		}
		for _, bad := range [][2]int{{0, 1}, {sharedbus.MaxSize + 1, 1}, {1, 0}, {1, sharedbus.MaxProcessors + 1}} {
			if _, err := p.Run(bad[0], bad[1]); err == nil {
				t.Errorf("%s runs with size and processors %v", p.Name, bad)
			}
		}
	}
}

func BenchmarkBackSub(b *testing.B) {
	var events uint64
	for b.Loop() {
		events += run(b, sharedbus.BackSub(), 100, 8).Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
