package bcast_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/lab/sim/bcast"
)

func run(t testing.TB, setup bcast.Setup, v bcast.Variant) bcast.Result {
	t.Helper()
	if setup.Word == 0 {
		setup.Word = 4
	}
	result, err := bcast.Run(setup, v)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestTable2 reproduces the cells of table 2 in the source.
func TestTable2(t *testing.T) {
	rows, err := bcast.Table2()
	if err != nil {
		t.Fatal(err)
	}
	want := [][4]int{{4, 32, 210, 190}, {8, 32, 290, 230}, {16, 128, 690, 550}, {32, 128, 1010, 710}}
	ratios := []string{"1.105", "1.261", "1.255", "1.423"}
	for i, r := range rows {
		if got := [4]int{r.Nodes, r.BusyBytes, r.Atomic, r.Changed}; got != want[i] || r.Bytes != 4 {
			t.Errorf("%v, the source has %v", got, want[i])
		}
		if got := fmt.Sprintf("%.3f", r.Ratio); got != ratios[i] {
			t.Errorf("%d nodes: the ratio is %s, the source has %s", r.Nodes, got, ratios[i])
		}
	}
}

// formula computes the time of an atomic broadcast in closed form. Each node is first needed one cycle after the node
// before it, not counting the root.
func formula(order []int, setup bcast.Setup, changes bool) sim.Cycle {
	words := func(bytes int) int { return (bytes + 3) / 4 }
	wait := 0
	for position, r := range order {
		busy := words(setup.BusyBytes[r])
		if changes {
			busy -= max(position-1, 0)
		}
		wait = max(wait, busy)
	}
	return sim.Cycle(wait + 2*len(order) + 4 + words(setup.Bytes))
}

func TestFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for range 2000 {
		setup := bcast.Setup{Nodes: 2 + random.IntN(40), Bytes: 1 + random.IntN(300), BusyBytes: map[int]int{}}
		setup.Root = random.IntN(setup.Nodes)
		for range random.IntN(6) {
			setup.BusyBytes[random.IntN(setup.Nodes)] = random.IntN(2000)
		}
		for _, v := range []bcast.Variant{bcast.Atomic, bcast.InitialOrder, bcast.FullOrder} {
			got := run(t, setup, v)
			if want := formula(got.Order, setup, v != bcast.Atomic); got.Cycles != want {
				t.Fatalf("%v of %+v takes %d cycles, by the formula %d", v, setup, got.Cycles, want)
			}
		}
	}
}

func TestNobodyBusy(t *testing.T) {
	for _, nodes := range []int{2, 3, 8, 32} {
		setup := bcast.Setup{Nodes: nodes, Bytes: 64}
		fixed, changed := run(t, setup, bcast.Atomic), run(t, setup, bcast.FullOrder)
		if fixed.Cycles != changed.Cycles || !slices.Equal(fixed.Order, changed.Order) {
			t.Errorf("%d nodes: %d cycles, with a change of the order %d", nodes, fixed.Cycles, changed.Cycles)
		}
	}
}

// TestSaving checks that the saving is at most N − 2 cycles, and reaches this if P1 is busy for at least as long.
func TestSaving(t *testing.T) {
	for _, nodes := range []int{3, 4, 8, 16, 32} {
		for left := 4; left <= 2048; left *= 2 {
			setup := bcast.Setup{Nodes: nodes, Bytes: 64, BusyBytes: map[int]int{1: left}}
			saving := run(t, setup, bcast.Atomic).Cycles - run(t, setup, bcast.FullOrder).Cycles
			if want := sim.Cycle(min(left/4, nodes-2)); saving != want {
				t.Errorf("%d nodes, %d bytes in flight: %d cycles are saved, want %d", nodes, left, saving, want)
			}
		}
	}
}

// TestSeveralBusy checks broadcasts with several busy nodes. The full change of the order is better than the initial
// change if the bytes left on the nodes fall into different classes of the status register. Otherwise, both are equal.
func TestSeveralBusy(t *testing.T) {
	for _, test := range []struct {
		left   map[int]int
		better bool
	}{
		{map[int]int{1: 1100, 2: 600, 3: 40}, true},
		{map[int]int{1: 2000, 2: 1100, 3: 40, 4: 24}, true},
		{map[int]int{1: 400, 2: 40, 3: 24}, false},
		{map[int]int{1: 24, 2: 600, 3: 1100}, false},
	} {
		setup := bcast.Setup{Nodes: 8, Bytes: 4, BusyBytes: test.left}
		fixed, initial, full := run(t, setup, bcast.Atomic), run(t, setup, bcast.InitialOrder),
			run(t, setup, bcast.FullOrder)
		if initial.Cycles > fixed.Cycles || full.Cycles > initial.Cycles ||
			(full.Cycles < initial.Cycles) != test.better {
			t.Errorf("%v left: %d cycles, with the initial change of the order %d, with the full one %d", test.left,
				fixed.Cycles, initial.Cycles, full.Cycles)
		}
	}
}

// TestOrderFigures reproduces figures 8 to 14 in the source: the number of cycles for which a broadcast waits for data
// in flight. The source has 2, 0 and 1 in figures 11, 12 and 14.
func TestOrderFigures(t *testing.T) {
	busy := map[int]int{1: 12, 2: 12, 3: 8, 4: 8} // at most 3 cycles of 4 bytes
	busier := map[int]int{1: 24, 2: 12, 3: 8, 4: 8}
	one := map[int]int{1: 32}
	free := run(t, bcast.Setup{Nodes: 8, Bytes: 4}, bcast.Atomic).Cycles
	for _, test := range []struct {
		figure  int
		left    map[int]int
		variant bcast.Variant
		waits   sim.Cycle
		order   []int
	}{
		{8, busy, bcast.Atomic, 3, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{9, busy, bcast.InitialOrder, 0, []int{0, 5, 6, 7, 1, 2, 3, 4}},
		{10, busier, bcast.Atomic, 6, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{11, busier, bcast.InitialOrder, 3, []int{0, 5, 6, 7, 1, 2, 3, 4}},
		{12, busier, bcast.FullOrder, 3, []int{0, 5, 6, 7, 1, 2, 3, 4}},
		{13, one, bcast.Atomic, 8, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{14, one, bcast.FullOrder, 2, []int{0, 2, 3, 4, 5, 6, 7, 1}},
	} {
		got := run(t, bcast.Setup{Nodes: 8, Bytes: 4, BusyBytes: test.left}, test.variant)
		if got.Cycles-free != test.waits || !slices.Equal(got.Order, test.order) {
			t.Errorf("figure %d: waits for %d cycles in the order %v, want %d and %v", test.figure, got.Cycles-free,
				got.Order, test.waits, test.order)
		}
	}
	classes := bcast.Setup{Nodes: 8, Bytes: 4, BusyBytes: map[int]int{1: 1100, 2: 600, 3: 40, 4: 40}}
	if got, want := run(t, classes, bcast.FullOrder).Order, []int{0, 5, 6, 7, 3, 4, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("figure 12: the order is %v, want %v", got, want)
	}
}

// TestHeadline checks the ratio of a pipelined to an atomic broadcast of 64 bytes to 32 nodes, which is 4.113 in the
// source.
func TestHeadline(t *testing.T) {
	setup := bcast.Setup{Nodes: 32, Bytes: 64}
	pipelined, atomic := run(t, setup, bcast.Pipelined), run(t, setup, bcast.Atomic)
	if ratio := float64(pipelined.Cycles) / float64(atomic.Cycles); ratio < 4.113*0.98 || ratio > 4.113*1.02 {
		t.Errorf("%d cycles by %d is %.3f, not within 2 %% of 4.113", pipelined.Cycles, atomic.Cycles, ratio)
	}
	if pipelined.Segments != 8 || pipelined.SyncCycles != 64 {
		t.Errorf("%d segments with %d cycles of synchronisation, by equations 1 and 2 8 and 64", pipelined.Segments,
			pipelined.SyncCycles)
	}
}

// TestPipelined checks that a conventional broadcast is a pipeline of N − 2 + k steps, each of which synchronizes.
// The last node takes part in no further step, so it does not wait until its sender has read its message.
func TestPipelined(t *testing.T) {
	for _, nodes := range []int{3, 4, 8, 32} {
		for bytes := 4; bytes <= 2048; bytes *= 2 {
			r := run(t, bcast.Setup{Nodes: nodes, Bytes: bytes}, bcast.Pipelined)
			if bytes/4%r.Segments != 0 {
				continue // the last segment is shorter
			}
			step := sim.Cycle(bytes / 4 / r.Segments)
			want := sim.Cycle(nodes-1)*(7+step) + sim.Cycle(r.Segments-1)*(8+step) + 1
			if r.Cycles != want {
				t.Errorf("%d nodes, %d bytes in %d segments: %d cycles, want %d", nodes, bytes, r.Segments, r.Cycles,
					want)
			}
		}
	}
}

// TestFigures checks the statements of the source about figures 18 to 21: the ratio is not much greater than in table
// 2, and decreases as messages get longer.
func TestFigures(t *testing.T) {
	points, err := bcast.Figures()
	if err != nil {
		t.Fatal(err)
	}
	best := map[int]bcast.Cell{}
	for i, p := range points {
		if p.Ratio <= 1 {
			t.Errorf("%+v: the change of the order saves nothing", p)
		}
		if i > 0 && points[i-1].BusyBytes == p.BusyBytes && points[i-1].Nodes == p.Nodes && p.Ratio >= points[i-1].Ratio {
			t.Errorf("%+v: the ratio does not fall with the length of the message", p)
		}
		if p.Ratio > best[p.Nodes].Ratio {
			best[p.Nodes] = p
		}
	}
	rows, err := bcast.Table2()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if best[r.Nodes] != r {
			t.Errorf("the best ratio is at %+v, in table 2 at %+v", best[r.Nodes], r)
		}
	}
}

func TestSetup(t *testing.T) {
	good := bcast.Setup{Nodes: 4, Bytes: 4, Word: 4}
	for _, change := range []func(*bcast.Setup){
		func(s *bcast.Setup) { s.Nodes = 1 },
		func(s *bcast.Setup) { s.Nodes = bcast.MaxNodes + 1 },
		func(s *bcast.Setup) { s.Root = 4 },
		func(s *bcast.Setup) { s.Root = -1 },
		func(s *bcast.Setup) { s.Bytes = 0 },
		func(s *bcast.Setup) { s.Bytes = bcast.MaxBytes + 1 },
		func(s *bcast.Setup) { s.Word = 0 },
		func(s *bcast.Setup) { s.BusyBytes = map[int]int{4: 4} },
		func(s *bcast.Setup) { s.BusyBytes = map[int]int{1: -4} },
	} {
		s := good
		change(&s)
		if _, err := bcast.Run(s, bcast.Atomic); !errors.Is(err, bcast.ErrSetup) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestDeterministic(t *testing.T) {
	setup := bcast.Setup{Nodes: 32, Bytes: 2000, BusyBytes: map[int]int{1: 1100, 5: 600, 7: 40, 9: 24}}
	for _, v := range bcast.Variants() {
		first := run(t, setup, v)
		for range 10 {
			if again := run(t, setup, v); !reflect.DeepEqual(again, first) {
				t.Fatalf("%+v, then %+v", first, again)
			}
		}
	}
}

func BenchmarkAtomic(b *testing.B) {
	setup := bcast.Setup{Nodes: 32, Bytes: 2048, BusyBytes: map[int]int{1: 128}}
	var events uint64
	for b.Loop() {
		events += run(b, setup, bcast.FullOrder).Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
