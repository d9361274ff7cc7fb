package coll_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
)

func TestTransmissionOrder(t *testing.T) {
	left := []int{0, 24, 600, 512, 511, 0, 0, 0} // ranks 1 to 4 are busy
	status := make([]coll.Status, len(left))
	for i, n := range left {
		status[i] = coll.StatusOf(n)
	}
	// The source's example: the register is 10 10 10 11 10 00 01 01, the root P5.
	example := coll.UnpackStatus([]byte{0b10101011, 0b10000101}, 8)
	for _, test := range []struct {
		name   string
		root   int
		status []coll.Status
		form   coll.OrderForm
		want   []int
	}{
		{"fixed", 0, status, coll.OrderFixed, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"free first, figure 9", 0, status, coll.OrderFreeFirst, []int{0, 5, 6, 7, 1, 2, 3, 4}},
		{"by the amount left", 0, status, coll.OrderByLeft, []int{0, 5, 6, 7, 1, 4, 2, 3}},
		{"figure 15", 5, example, coll.OrderByLeft, []int{5, 6, 7, 0, 1, 2, 4, 3}},
		{"no root", 9, status, coll.OrderByLeft, nil},
	} {
		if got := coll.TransmissionOrder(test.root, test.status, test.form); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if got := coll.UnpackStatus(coll.PackStatus(status), len(status)); !slices.Equal(got, status) {
		t.Errorf("unpacked %v, packed %v", got, status)
	}
	for n, want := range map[int]coll.Status{0: 0, 1: 1, 511: 1, 512: 2, 1023: 2, 1024: 3} {
		if got := coll.StatusOf(n); got != want {
			t.Errorf("status with %d bytes left is %d, want %d", n, got, want)
		}
	}
}

// TestNoCredit checks that, without credit, the flow of even a short message is synchronized.
func TestNoCredit(t *testing.T) {
	atomic, err := coll.Find(coll.Bcast, "atomic")
	if err != nil {
		t.Fatal(err)
	}
	for _, noCredit := range []bool{false, true} {
		c := coll.Call{Collective: coll.Bcast, Rank: 1, Ranks: 4, Bytes: 64, Flows: true, NoCredit: noCredit}
		prove(t, atomic, c)
		var s coll.Schedule
		if err := atomic.Make(&s, &c); err != nil {
			t.Fatal(err)
		}
		if step, ok := s.Next(); !ok || (step.Kind == coll.StepForward) != noCredit {
			t.Errorf("without credit %v, rank 1 begins with %+v", noCredit, step)
		}
	}
}

func TestPipelineSegments(t *testing.T) {
	for _, test := range []struct {
		p, n        int
		alpha, beta float64
		want        int
	}{
		{2, 1000, 1, 1, 1}, {6, 100, 1, 1, 20}, {6, 100, 1e9, 1, 1}, {6, 100, 1e-9, 1, 100},
		{6, 100, 0, 1, 100}, {6, 100, 0, 0, 1}, {6, 0, 1, 1, 1}, {6, 100, math.NaN(), 1, 1},
		{6, 100, 1, math.Inf(1), 100},
	} {
		if got := coll.PipelineSegments(test.p, test.n, test.alpha, test.beta); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
	// The number is optimal: according to the formula of the chain, neighboring numbers are not faster.
	chain, err := coll.Find(coll.Bcast, "chain")
	if err != nil {
		t.Fatal(err)
	}
	const p, n, alpha, beta = 18, 1 << 16, 100, 0.25
	at := func(segment int) float64 {
		cost, err := chain.Cost(coll.Call{Collective: coll.Bcast, Ranks: p, Bytes: n, Segment: segment})
		if err != nil {
			t.Fatal(err)
		}
		return cost.Time(alpha, beta, 0)
	}
	best := coll.PipelineSegment(p, n, 4, alpha, beta)
	if best%4 != 0 || at(best) > at(best*2) || at(best) > at(best/2/4*4) {
		t.Errorf("segments of %d bytes take %v, of half %v, of twice %v", best, at(best), at(best/2/4*4), at(best*2))
	}
}

// TestChainsInAnyOrder proves chains with a given order.
func TestChainsInAnyOrder(t *testing.T) {
	for _, name := range []string{"chain", "atomic"} {
		a, err := coll.Find(coll.Bcast, name)
		if err != nil {
			t.Fatal(err)
		}
		c := coll.Call{Collective: coll.Bcast, Ranks: 8, Root: 5, Bytes: 64, Segment: 16,
			Order: coll.TransmissionOrder(5, coll.UnpackStatus([]byte{0xab, 0x85}, 8), coll.OrderByLeft)}
		if !prove(t, a, c) {
			t.Errorf("%s does not take the order", name)
		}
		c.Flows = true
		c.Order = []int{5, 1, 2, 3, 4, 4, 6, 7}
		if a.CheckSupport(c) == nil {
			t.Errorf("%s takes an order that has a rank twice", name)
		}
	}
}

// TestFlows checks that data beyond the eager credit flows along a chain in any order, with one message for each rank,
// and none before the last rank is ready.
func TestFlows(t *testing.T) {
	a, err := coll.Find(coll.Bcast, "atomic")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []int{2, 3, 5, 8, 17, 33, 128} {
		if race.Enabled && p > 17 {
			continue
		}
		c := coll.Call{Collective: coll.Bcast, Ranks: p, Root: p / 3, Bytes: 70_000, Segment: 7000}
		c.Order = coll.TransmissionOrder(c.Root, coll.UnpackStatus([]byte{0x1b, 0xe4, 0xff, 3}, p), coll.OrderByLeft)
		if !prove(t, a, c) {
			t.Error("it cannot be done")
		}
		c.Flows = true
		if cost, _ := byFormula(t, a, c); cost.Messages != p-1 || cost.Rounds != 2*p-1 {
			t.Errorf("%d ranks: %+v", p, cost)
		}
		// A rank that does not take part blocks all ranks.
		calls := eachRank(c)
		programs, err := collcheck.Programs(a, calls)
		if err != nil {
			t.Fatal(err)
		}
		programs[c.Order[p-1]].Steps = nil
		var wrong *collcheck.Error
		if _, err := collcheck.ProvePrograms(calls, programs); !errors.As(err, &wrong) ||
			wrong.Rank != 0 && wrong.Rank != c.Order[0] {
			t.Errorf("%d ranks, one missing: %v", p, err)
		}
	}
}
