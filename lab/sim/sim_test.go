package sim_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

func TestClock(t *testing.T) {
	var c sim.Clock
	var got []int
	var at []sim.Cycle
	note := func(n int) func() {
		return func() { got, at = append(got, n), append(at, c.Now()) }
	}
	c.After(3, note(3))
	c.After(1, note(1))
	c.After(3, note(4))
	c.After(-1, func() {
		note(0)()
		c.After(1, note(2)) // in the same cycle as event 1, but scheduled later
	})
	c.Run()
	if want := []int{0, 1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("events happened in the order %v, want %v", got, want)
	}
	if want := []sim.Cycle{0, 1, 1, 3, 3}; !slices.Equal(at, want) {
		t.Errorf("events happened at %v, want %v", at, want)
	}
	if c.Events() != 5 {
		t.Errorf("%d events have happened, want 5", c.Events())
	}
}

// TestClockOrder checks that events at random times are executed in the order of a stable sort.
func TestClockOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var c sim.Clock
	var want, got [][2]int
	for i := range 1000 {
		e := [2]int{random.IntN(50), i}
		want = append(want, e)
		c.After(sim.Cycle(e[0]), func() { got = append(got, e) })
	}
	slices.SortStableFunc(want, func(a, b [2]int) int { return a[0] - b[0] })
	c.Run()
	if !slices.Equal(got, want) {
		t.Error("events did not happen by time, and by the order in which they were scheduled")
	}
}

func TestFIFO(t *testing.T) {
	var q sim.FIFO[int]
	for i := range 4 {
		q.Push(i)
	}
	for i := range 4 {
		if q.Len() != 4-i || q.Head() != i {
			t.Fatalf("%d items, the first %d, want %d and %d", q.Len(), q.Head(), 4-i, i)
		}
		if got := q.Pop(); got != i {
			t.Errorf("got %d, want %d", got, i)
		}
	}
}

func BenchmarkClock(b *testing.B) {
	var c sim.Clock
	left := b.N
	var again func()
	again = func() {
		if left--; left > 0 {
			c.After(sim.Cycle(left%7), again)
		}
	}
	for range min(64, b.N) { // the number of events that are pending at any time
		c.After(0, again)
	}
	b.ReportAllocs()
	b.ResetTimer()
	c.Run()
	b.ReportMetric(float64(c.Events())/b.Elapsed().Seconds(), "events/s")
}
