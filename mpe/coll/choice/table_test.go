package choice_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// small is a table that exercises every rule of Choose.
const small = `
version: 1
memory:
  link: {alpha: 1000, beta: 0.1}
  collectives:
    - collective: allreduce
      ranks: 4
      choose:
        - {up_to: 1KiB, by: [recursive-doubling]}
        - {by: [ring, rabenseifner, recursive-doubling]}
    - collective: bcast
      ranks: 8
      choose:
        - {up_to: 8, by: [flat]}
        - {up_to: 4096, by: ['atomic:100', 'chain:7', binomial]}
        - {by: ['chain:auto']}
    - collective: bcast
      ranks: 3
      choose: [{by: [scatter-allgather]}]
    - collective: allgather
      ranks: 4
      choose:
        - {up_to: 100, by: [recursive-doubling, bruck, ring]}
        - {by: [ring]}
    - collective: reduce_scatter
      ranks: 2
      choose:
        - {up_to: 100, by: [recursive-halving, pairwise]}
        - {by: [pairwise]}
    - collective: gather
      ranks: 2
      choose: [{by: [binomial]}]
    - collective: alltoall
      ranks: 2
      choose: [{by: [bruck]}]
`

func load(t testing.TB, text string) *choice.Table {
	t.Helper()
	table, err := collectives.Load(strings.NewReader(text), "t.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return table.Table
}

func TestChoose(t *testing.T) {
	table := load(t, small)
	sizes := coll.Layout{Sizes: []int{0, 300, 0, 0}}
	for _, x := range []struct {
		name  string
		class choice.Class
		call  coll.Call
		want  string
	}{
		{"short", choice.Memory, coll.Call{Collective: coll.Allreduce, Ranks: 4, Bytes: 1024}, "recursive-doubling"},
		{"longer than a bound", choice.Memory, coll.Call{Collective: coll.Allreduce, Ranks: 4, Bytes: 1025}, "ring"},
		{"ordered", choice.Memory, coll.Call{Collective: coll.Allreduce, Ranks: 4, Bytes: 1025, Ordered: true},
			"rabenseifner"},
		{"more ranks than measured", choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 100, Bytes: 8}, "flat"},
		{"between numbers of ranks", choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 7, Bytes: 8},
			"scatter-allgather"},
		{"fewer ranks than measured", choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 2, Bytes: 8},
			"scatter-allgather"},
		{"flows", choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 4096, Flows: true}, "atomic:100"},
		{"no flows", choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 4096}, "chain:7"},
		{"whole elements", choice.Memory,
			coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 4096, Elem: 8, Flows: true}, "atomic:96"},
		{"one element at least", choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 4096, Elem: 8},
			"chain:8"},
		// √(6·2^20/10^4) = 25.08
		{"by formula", choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 1 << 20}, "chain:41944"},
		{"by formula, whole elements", choice.Memory,
			coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 1 << 20, Elem: 16}, "chain:41952"},
		{"no power of two", choice.Memory, coll.Call{Collective: coll.Allgather, Ranks: 6, Bytes: 10}, "bruck"},
		{"blocks that differ, and all know", choice.Memory,
			coll.Call{Collective: coll.Allgather, Ranks: 4, Vector: true, Recv: sizes}, "ring"},
		{"mean of the parts", choice.Memory,
			coll.Call{Collective: coll.ReduceScatter, Ranks: 4, Vector: true, Recv: sizes, Bytes: 300},
			"recursive-halving"},
		{"blocks that others do not know", choice.Memory,
			coll.Call{Collective: coll.Gather, Ranks: 4, Vector: true, Bytes: 10}, "flat"},
		{"blocks that differ", choice.Memory, coll.Call{Collective: coll.Alltoall, Ranks: 4, Vector: true, Recv: sizes},
			"pairwise"},
		{"not in the table", choice.Memory, coll.Call{Collective: coll.Scan, Ranks: 4, Bytes: 10}, "doubling"},
		{"fewer cores than the table's", choice.OversubscribedMemory,
			coll.Call{Collective: coll.Bcast, Ranks: 100, Bytes: 8}, "flat"},
		{"class not in the table", choice.Network, coll.Call{Collective: coll.Bcast, Ranks: 4, Bytes: 10}, "binomial"},
		{"alone", choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 1, Bytes: 10}, "binomial"},
		{"no collective", choice.Memory, coll.Call{Collective: 77, Ranks: 4}, ""},
	} {
		if got := table.Choose(x.class, &x.call).String(); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
	var none *choice.Table
	if got := none.Choose(choice.Memory, &coll.Call{Collective: coll.Bcast, Ranks: 3}).String(); got != "binomial" ||
		none.Hash() != 0 {
		t.Errorf("no table: %s", got)
	}
}

// TestChoicesAreSupported checks that every choice supports the call, is the same on all ranks, and allocates nothing.
func TestChoicesAreSupported(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tables := []*choice.Table{choice.Default(), load(t, small)}
	for range 20000 {
		c := randomCall(rng)
		for _, table := range tables {
			for _, class := range choice.Classes {
				by := table.Choose(class, &c)
				mine := c
				mine.Segment = by.Segment
				a, err := coll.Find(c.Collective, by.Algorithm)
				if err == nil {
					err = a.CheckSupport(mine)
				}
				if err != nil {
					t.Fatalf("%+v: %v: %v", c, by, err)
				}
				if by.Segment%max(c.Elem, 1) != 0 {
					t.Fatalf("%+v: %v is no whole number of elements", c, by)
				}
				for r := range c.Ranks {
					theirs := c
					theirs.Rank, theirs.InPlace = r, !c.InPlace
					if r != c.Root && c.Vector && (c.Collective == coll.Gather || c.Collective == coll.Scatter) {
						theirs.Send, theirs.Recv, theirs.Bytes = coll.Layout{}, coll.Layout{}, 4*r
					}
					if got := table.Choose(class, &theirs); got != by {
						t.Fatalf("%+v: rank %d has %v, and rank %d %v", c, c.Rank, by, r, got)
					}
				}
				if n := testing.AllocsPerRun(1, func() { table.Choose(class, &c) }); n > 0 {
					t.Fatalf("%+v: %v allocations", c, n)
				}
			}
		}
	}
}

// randomCall returns a valid call, of the root if only the root has layouts.
func randomCall(rng *rand.Rand) coll.Call {
	c := coll.Call{
		Collective: coll.Barrier + coll.Collective(rng.IntN(int(coll.Exscan))),
		Ranks:      1 + rng.IntN(20), Elem: rng.IntN(17), Ordered: rng.IntN(2) == 0, Flows: rng.IntN(2) == 0,
	}
	c.Rank = rng.IntN(c.Ranks)
	c.Root = c.Rank
	blocks := func() coll.Layout {
		l := coll.Layout{Sizes: make([]int, c.Ranks), Offsets: make([]int, c.Ranks)}
		end := 0
		for i := range l.Sizes {
			l.Sizes[i], l.Offsets[i] = rng.IntN(500)*max(c.Elem, 1), end
			end += l.Sizes[i]
		}
		return l
	}
	switch {
	case c.Collective == coll.Barrier:
		return c
	case rng.IntN(3) > 0:
		c.Bytes = max(c.Elem, 1) * rng.IntN(1<<rng.IntN(22))
		return c
	}
	switch c.Collective {
	case coll.Gather, coll.Allgather:
		c.Vector, c.Recv = true, blocks()
	case coll.Scatter:
		c.Vector, c.Send = true, blocks()
	case coll.Alltoall:
		c.Vector, c.Send, c.Recv = true, blocks(), blocks()
	case coll.ReduceScatter:
		c.Vector, c.Recv = true, blocks()
		c.Recv.Offsets = nil
		for _, n := range c.Recv.Sizes {
			c.Bytes += n
		}
	}
	return c
}

// TestHash checks that the hash covers everything that affects choices, and nothing else.
func TestHash(t *testing.T) {
	base := load(t, small)
	for _, x := range []struct {
		from, to string
		same     bool
	}{
		{"version: 1", "version: 1\nestimated: true\nmeasured: {cpu: other, rounds: 3}", true},
		{"  link:", "  over: shm\n  link:", true},
		{"ranks: 3\n", "ranks: 3\n      bytes: [8]\n      medians: [{by: flat, us: [1.5]}]\n", true},
		{"'chain:7'", "'chain:7B'", true},
		{"up_to: 4096", "up_to: 4KiB", true},
		{"memory:", "network:", false},
		{"memory:", "oversubscribed_memory:", false},
		{"up_to: 4096", "up_to: 4095", false},
		{"'chain:7'", "'chain:8'", false},
		{"[flat]", "[binomial]", false},
		{"ranks: 3", "ranks: 2", false},
		{"alpha: 1000", "alpha: 1001", false},
		{"collective: gather", "collective: scatter", false},
	} {
		if !strings.Contains(small, x.from) {
			t.Fatal(x.from)
		}
		changed := load(t, strings.Replace(small, x.from, x.to, 1))
		if same := changed.Hash() == base.Hash(); same != x.same {
			t.Errorf("%s -> %s: the same: %v", x.from, x.to, same)
		}
	}
	// The order of entries does not matter.
	entries := strings.Split(small, "\n    - ")
	entries[1], entries[2] = entries[2], entries[1]
	if load(t, strings.Join(entries, "\n    - ")).Hash() != base.Hash() {
		t.Error("the order of entries counts")
	}
}

// TestDefault checks that the default table chooses by measurements, and by the formulas.
func TestDefault(t *testing.T) {
	for _, x := range []struct {
		class choice.Class
		call  coll.Call
		want  string
	}{
		{choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 4, Bytes: 100}, "binomial"},
		{choice.Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 1 << 20, Flows: true}, "flat"},
		{choice.Memory, coll.Call{Collective: coll.Allreduce, Ranks: 8, Bytes: 8}, "recursive-doubling"},
		{choice.OversubscribedMemory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 100}, "flat"},
		{choice.OversubscribedMemory, coll.Call{Collective: coll.Alltoall, Ranks: 8, Bytes: 64}, "gather-scatter"},
		{choice.OversubscribedNetwork, coll.Call{Collective: coll.Allreduce, Ranks: 8, Bytes: 8}, "flat"},
		{choice.OversubscribedNetwork, coll.Call{Collective: coll.Alltoall, Ranks: 8, Bytes: 128 << 10}, "pairwise"},
		{choice.OversubscribedNetwork, coll.Call{Collective: coll.Alltoall, Ranks: 16, Bytes: 19968}, "pairwise"},
		{choice.Network, coll.Call{Collective: coll.Bcast, Ranks: 16, Bytes: 172 << 10, Flows: true}, "binomial"},
		{choice.Network, coll.Call{Collective: coll.Bcast, Ranks: 16, Bytes: 172<<10 + 1, Flows: true},
			"scatter-allgather"},
		{choice.Network, coll.Call{Collective: coll.Bcast, Ranks: 16, Bytes: 448<<10 + 1, Flows: true}, "atomic:8KiB"},
		{choice.Network, coll.Call{Collective: coll.Reduce, Ranks: 16, Bytes: 40 << 10}, "binomial"},
		{choice.Network, coll.Call{Collective: coll.Reduce, Ranks: 16, Bytes: 40<<10 + 1}, "rabenseifner"},
		{choice.Network, coll.Call{Collective: coll.Allreduce, Ranks: 3, Bytes: 14<<10 + 1}, "ring"},
		{choice.Network, coll.Call{Collective: coll.Alltoall, Ranks: 8, Bytes: 19968}, "bruck"},
	} {
		if got := choice.Default().Choose(x.class, &x.call); got.String() != x.want {
			t.Errorf("%v, %+v: %v, want %s", x.class, x.call, got, x.want)
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, c := range []coll.Call{
		{Collective: coll.Bcast, Ranks: 8, Bytes: 1 << 16, Elem: 4},
		{Collective: coll.Allreduce, Ranks: 4, Bytes: 8, Elem: 8},
	} {
		b.Run(fmt.Sprint(c.Collective), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				choice.Default().Choose(choice.Network, &c)
			}
		})
	}
}
