package coll_test

import (
	"errors"
	"math"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
)

func TestBadCalls(t *testing.T) {
	good := coll.Call{Collective: coll.Gather, Ranks: 4, Bytes: 8, Elem: 4}
	for name, change := range map[string]func(c *coll.Call){
		"no ranks":        func(c *coll.Call) { c.Ranks = 0 },
		"too many ranks":  func(c *coll.Call) { c.Ranks = math.MaxInt },
		"rank":            func(c *coll.Call) { c.Rank = 4 },
		"root":            func(c *coll.Call) { c.Root = -1 },
		"length":          func(c *coll.Call) { c.Bytes = -4 },
		"huge":            func(c *coll.Call) { c.Bytes = math.MaxInt - 3 },
		"half an element": func(c *coll.Call) { c.Bytes = 6 },
		"element":         func(c *coll.Call) { c.Elem = -1 },
		"segment":         func(c *coll.Call) { c.Segment = 6 },
		"order form":      func(c *coll.Call) { c.OrderForm = 3 },
		"token":           func(c *coll.Call) { c.Token = -1 },
		"collective":      func(c *coll.Call) { c.Collective = 99 },
		"few sizes":       func(c *coll.Call) { c.Vector, c.Recv.Sizes = true, []int{4} },
		"negative size":   func(c *coll.Call) { c.Vector, c.Recv.Sizes = true, []int{4, 4, -4, 4} },
		"offsets overflow": func(c *coll.Call) {
			c.Vector, c.Recv.Sizes = true,
				[]int{math.MaxInt &^ 3, math.MaxInt &^ 3, 4, 4}
		},
	} {
		c := good
		change(&c)
		if _, err := collcheck.Choose(c, 1, 1, 1); !errors.Is(err, coll.ErrCall) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := coll.Find(coll.Bcast, "none"); !errors.Is(err, coll.ErrCall) {
		t.Error(err)
	}
	a := coll.Algorithms(coll.Bcast)[0]
	if err := a.Make(new(coll.Schedule), &good); !errors.Is(err, coll.ErrCall) {
		t.Error(err)
	}
}

// TestChoose checks that short vectors use algorithms with few messages, and that long vectors use algorithms that
// send few bytes.
func TestChoose(t *testing.T) {
	for _, test := range []struct {
		c    coll.Call
		want string
	}{
		{coll.Call{Collective: coll.Allreduce, Ranks: 16, Bytes: 8}, "recursive-doubling"},
		{coll.Call{Collective: coll.Allreduce, Ranks: 16, Bytes: 1 << 20}, "rabenseifner"},
		{coll.Call{Collective: coll.Allreduce, Ranks: 12, Bytes: 1 << 24}, "ring"},
		{coll.Call{Collective: coll.Allreduce, Ranks: 12, Bytes: 1 << 24, Ordered: true}, "rabenseifner"},
		{coll.Call{Collective: coll.Bcast, Ranks: 16, Bytes: 8}, "binomial"},
		{coll.Call{Collective: coll.Bcast, Ranks: 16, Bytes: 1 << 24, Segment: 1 << 16, Flows: true}, "atomic"},
		{coll.Call{Collective: coll.Bcast, Ranks: 16, Bytes: 1 << 24, Segment: 1 << 16}, "chain"},
		{coll.Call{Collective: coll.Alltoall, Ranks: 16, Bytes: 8}, "bruck"},
		{coll.Call{Collective: coll.Alltoall, Ranks: 16, Bytes: 1 << 20}, "pairwise"},
	} {
		a, err := collcheck.Choose(test.c, 10e-6, 1e-9, 0.2e-9)
		if err != nil || a.Name != test.want {
			t.Errorf("%+v: %v, %v, want %s", test.c, a, err, test.want)
		}
	}
}

// TestScheduleIsMadeAsItIsRead checks that a long schedule is not kept in memory: reading half a million steps
// allocates about as often as reading four.
func TestScheduleIsMadeAsItIsRead(t *testing.T) {
	a, err := coll.Find(coll.Bcast, "chain")
	if err != nil {
		t.Fatal(err)
	}
	read := func(n int) (steps int, allocs float64) {
		allocs = testing.AllocsPerRun(5, func() {
			var s coll.Schedule
			if err := a.Make(&s, &coll.Call{Collective: coll.Bcast, Rank: 1, Ranks: 3, Bytes: n,
				Segment: 4096}); err != nil {
				t.Fatal(err)
			}
			steps = 0
			for _, ok := s.Next(); ok; _, ok = s.Next() {
				steps++
			}
		})
		return steps, allocs
	}
	_, few := read(8192)
	steps, many := read(1 << 30)
	if steps != 2*(1<<30)/4096 || many > few+100 {
		t.Errorf("%d steps with %v allocations; a short schedule has %v", steps, many, few)
	}
}

// TestContributionIsNotCopied checks that commutative reductions by halving combine the caller's contribution where it
// is: no rank copies more than the result of Reduce_scatter.
func TestContributionIsNotCopied(t *testing.T) {
	for _, test := range []struct {
		collective  coll.Collective
		name        string
		bytes, most int // of the call, and copied
	}{
		{coll.Reduce, "rabenseifner", 24, 0},
		{coll.Allreduce, "rabenseifner", 24, 0},
		{coll.ReduceScatter, "recursive-halving", 4, 4},
	} {
		a, err := coll.Find(test.collective, test.name)
		if err != nil {
			t.Fatal(err)
		}
		for rank := range 6 { // ranks 0 to 3 combine their vectors with a neighbor first
			var s coll.Schedule
			if err := a.Make(&s, &coll.Call{Collective: test.collective, Rank: rank, Ranks: 6, Root: 1, Elem: 4,
				Bytes: test.bytes}); err != nil {
				t.Fatal(err)
			}
			copied := 0
			for step, ok := s.Next(); ok; step, ok = s.Next() {
				if step.Kind == coll.StepCopy {
					copied += step.Len
				}
			}
			if copied > test.most {
				t.Errorf("%v by %s: rank %d copies %d bytes, want %d", test.collective, test.name, rank, copied, test.most)
			}
		}
	}
}

// FuzzSchedules proves arbitrary schedules.
func FuzzSchedules(f *testing.F) {
	f.Add(uint8(3), uint8(0), uint8(5), uint8(2), uint16(20), uint8(3), uint8(4))
	f.Add(uint8(4), uint8(1), uint8(13), uint8(2), uint16(52), uint8(1), uint8(0))
	f.Add(uint8(9), uint8(0), uint8(6), uint8(1), uint16(3), uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, collective, algorithm, ranks, root uint8, n uint16, bits, segment uint8) {
		c := coll.Call{
			Collective: coll.Collective(collective), Ranks: int(ranks) % 40, Root: int(root), Bytes: int(n) % 400,
			InPlace: bits&1 != 0, Ordered: bits&2 != 0, Elem: 1 + int(bits>>2&3), Segment: int(segment),
			Token: int(bits >> 6),
		}
		list := coll.Algorithms(c.Collective)
		if len(list) == 0 || c.Ranks == 0 {
			return
		}
		c.FPGAs = upstreamFPGAs(c.Ranks, c.Root)
		c.Flows = true
		if c.Root >= 0 && c.Root < c.Ranks { // in an arbitrary order
			c.Order = coll.TransmissionOrder(c.Root, coll.UnpackStatus([]byte{byte(n), bits, root, segment}, c.Ranks),
				coll.OrderForm(segment%3))
		}
		a := list[int(algorithm)%len(list)]
		if a.CheckSupport(c) != nil {
			return
		}
		if _, err := collcheck.Prove(a, eachRank(c)); err != nil {
			t.Fatalf("%v by %s, %+v: %v", c.Collective, a.Name, c, err)
		}
	})
}
