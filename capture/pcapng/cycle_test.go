package pcapng

import "testing"

func TestParseCycle(t *testing.T) {
	want := Cycle{Rank: 1, Simulation: 2, Cycle: 1<<64 - 1}
	if got, ok := ParseCycle(want.String()); !ok || got != want {
		t.Errorf("%q is read as %+v, %v", want, got, ok)
	}
	if text := "rank 1: cycle 18446744073709551615 of simulation 2"; want.String() != text { // other versions read it
		t.Errorf("%q, want %q", want, text)
	}
	for _, comment := range []string{
		"", "rank 1: dropped, stale", "rank 1: cycle 3 of simulation", "rank 1: cycle 3 of simulation 1, and more",
		"rank -1: cycle 3 of simulation 1", "rank 1: cycle -3 of simulation 1",
		"rank 1: cycle 18446744073709551616 of simulation 1",
	} {
		if got, ok := ParseCycle(comment); ok {
			t.Errorf("%q is read as %+v", comment, got)
		}
	}
}
