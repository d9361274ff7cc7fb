package twolevel_test

import (
	"math/rand/v2"
	"testing"

	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/lab/sim/twolevel"
	"github.com/zrlmpi/zrlmpid/mpe/match"
)

// ceil returns the number of elements in the longest list.
func ceil(n, lists int) int { return (n + lists - 1) / lists }

// TestPreposted checks that a search takes one cycle up to the size of the CAM, and three more for each element
// in a list.
func TestPreposted(t *testing.T) {
	for _, d := range twolevel.Designs() {
		for _, depth := range []int{1, 2, 255, 256, 257, 300, 320, 321, 1000, 10000, 30000, twolevel.MaxDepth} {
			got, err := d.Preposted(depth)
			if err != nil {
				t.Fatal(err)
			}
			want := sim.Cycle(1 + 3*ceil(max(depth-twolevel.CAMEntries, 0), d.Lists))
			if got.Cycles != want {
				t.Errorf("%s, depth %d: %d cycles, want %d", d.Name, depth, got.Cycles, want)
			}
		}
	}
}

func TestUnload(t *testing.T) {
	for _, d := range twolevel.Designs() {
		for _, depth := range []int{1, 256, 257, 1000, 3000} {
			got, err := d.Unload(depth)
			if err != nil {
				t.Fatal(err)
			}
			want := sim.Cycle(depth)
			for listed := depth - twolevel.CAMEntries; listed > 0; listed-- {
				want += sim.Cycle(3 * ceil(listed, d.Lists))
			}
			if got.Cycles != want {
				t.Errorf("%s, depth %d: %d cycles, want %d", d.Name, depth, got.Cycles, want)
			}
		}
	}
	if _, err := twolevel.Designs()[0].Unload(twolevel.MaxDepth + 1); err == nil {
		t.Error("a queue takes more entries than it has")
	}
	if _, err := (twolevel.Design{Lists: 0}).Unload(1); err == nil {
		t.Error("a queue has no list")
	}
}

// TestRefill checks that entries move up while the oldest entries are matched. They move in parallel with the next
// commands, so the CAM always has the next entry.
func TestRefill(t *testing.T) {
	const depth = 1000
	for _, d := range twolevel.Designs() {
		q, err := twolevel.New(d.Lists)
		if err != nil {
			t.Fatal(err)
		}
		var commands []twolevel.Command
		for i := range depth {
			commands = append(commands, twolevel.Command{Insert: true, Header: uint64(i)})
		}
		for i := range depth {
			commands = append(commands, twolevel.Command{Header: uint64(i)})
		}
		for i, o := range q.Execute(commands...) {
			if !o.OK || o.Cycles != 1 {
				t.Fatalf("%s: command %d took %d cycles, %v", d.Name, i, o.Cycles, o.OK)
			}
		}
	}
}

// TestStall checks that an insertion waits while an entry is moving up, and that a search without success compares all
// elements of the longest list.
func TestStall(t *testing.T) {
	q, err := twolevel.New(1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(twolevel.CAMEntries + 10) {
		q.Execute(twolevel.Command{Insert: true, Header: i})
	}
	got := q.Execute(twolevel.Command{Header: 3}, twolevel.Command{Insert: true, Header: 999},
		twolevel.Command{Header: 12345}, twolevel.Command{Header: 999})
	for i, want := range []twolevel.Outcome{{1, true}, {2, true}, {1 + 3*10, false}, {1 + 3*10, true}} {
		if got[i] != want {
			t.Errorf("command %d: %+v, want %+v", i, got[i], want)
		}
	}
}

func TestFull(t *testing.T) {
	q, err := twolevel.New(4)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(twolevel.MaxDepth + 1) {
		if o := q.Execute(twolevel.Command{Insert: true, Header: i}); o[0].OK != (i < twolevel.MaxDepth) {
			t.Fatalf("entry %d: %+v", i, o)
		}
	}
}

// TestDifferential checks that a queue finds a header if and only if the engine's matching finds it.
func TestDifferential(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for _, lists := range []int{1, 4, 64} {
		q, err := twolevel.New(lists)
		if err != nil {
			t.Fatal(err)
		}
		m := match.New[int, int](match.Limits{})
		for i := range 20000 {
			header := random.IntN(2000)
			if random.IntN(2) == 0 && m.Posted() < 1500 {
				if _, _, _, err := m.Post(0, int32(header), i); err != nil {
					t.Fatal(err)
				}
				if o := q.Execute(twolevel.Command{Insert: true, Header: uint64(header)}); !o[0].OK {
					t.Fatal("the queue is full")
				}
				continue
			}
			_, want := m.Match(0, int32(header))
			if o := q.Execute(twolevel.Command{Header: uint64(header)}); o[0].OK != want {
				t.Fatalf("%d lists, step %d: the queue has a receive %v, the engine %v", lists, i, o[0].OK, want)
			}
		}
	}
}

func BenchmarkUnload(b *testing.B) {
	var events uint64
	for b.Loop() {
		m, err := twolevel.Designs()[2].Unload(1000)
		if err != nil {
			b.Fatal(err)
		}
		events += m.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
