package choice

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// small is a table in which every rule of Choose has something to show.
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

func load(t testing.TB, text string) *Table {
	t.Helper()
	table, err := Load(strings.NewReader(text), "t.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestChoose(t *testing.T) {
	table := load(t, small)
	sizes := coll.Layout{Sizes: []int{0, 300, 0, 0}}
	for _, x := range []struct {
		name  string
		class Class
		call  coll.Call
		want  string
	}{
		{"short", Memory, coll.Call{Collective: coll.Allreduce, Ranks: 4, Bytes: 1024}, "recursive-doubling"},
		{"longer than a bound", Memory, coll.Call{Collective: coll.Allreduce, Ranks: 4, Bytes: 1025}, "ring"},
		{"ordered", Memory, coll.Call{Collective: coll.Allreduce, Ranks: 4, Bytes: 1025, Ordered: true}, "rabenseifner"},
		{"more ranks than measured", Memory, coll.Call{Collective: coll.Bcast, Ranks: 100, Bytes: 8}, "flat"},
		{"between numbers of ranks", Memory, coll.Call{Collective: coll.Bcast, Ranks: 7, Bytes: 8}, "scatter-allgather"},
		{"fewer ranks than measured", Memory, coll.Call{Collective: coll.Bcast, Ranks: 2, Bytes: 8}, "scatter-allgather"},
		{"flows", Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 4096, Flows: true}, "atomic:100"},
		{"no flows", Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 4096}, "chain:7"},
		{"whole elements", Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 4096, Elem: 8, Flows: true}, "atomic:96"},
		{"one element at least", Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 4096, Elem: 8}, "chain:8"},
		{"by formula", Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 1 << 20}, "chain:41944"}, // √(6·2^20/10^4) = 25.08
		{"by formula, whole elements", Memory, coll.Call{Collective: coll.Bcast, Ranks: 8, Bytes: 1 << 20, Elem: 16}, "chain:41952"},
		{"no power of two", Memory, coll.Call{Collective: coll.Allgather, Ranks: 6, Bytes: 10}, "bruck"},
		{"blocks that differ, and all know", Memory, coll.Call{Collective: coll.Allgather, Ranks: 4, Vector: true, Recv: sizes}, "ring"},
		{"mean of the parts", Memory, coll.Call{Collective: coll.ReduceScatter, Ranks: 4, Vector: true, Recv: sizes, Bytes: 300}, "recursive-halving"},
		{"blocks that others do not know", Memory, coll.Call{Collective: coll.Gather, Ranks: 4, Vector: true, Bytes: 10}, "flat"},
		{"blocks that differ", Memory, coll.Call{Collective: coll.Alltoall, Ranks: 4, Vector: true, Recv: sizes}, "pairwise"},
		{"not in the table", Memory, coll.Call{Collective: coll.Scan, Ranks: 4, Bytes: 10}, "doubling"},
		{"class not in the table", Network, coll.Call{Collective: coll.Bcast, Ranks: 4, Bytes: 10}, "binomial"},
		{"alone", Memory, coll.Call{Collective: coll.Bcast, Ranks: 1, Bytes: 10}, "binomial"},
		{"no collective", Memory, coll.Call{Collective: 77, Ranks: 4}, ""},
	} {
		if got := table.Choose(x.class, &x.call).String(); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
	var none *Table
	if got := none.Choose(Memory, &coll.Call{Collective: coll.Bcast, Ranks: 3}).String(); got != "binomial" || none.Hash() != 0 {
		t.Errorf("no table: %s", got)
	}
}

// TestFits: whatever the call, the choice can carry it out, is the same on all ranks,
// and allocates nothing.
func TestFits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tables := []*Table{Default(), load(t, small)}
	for range 20000 {
		c := randomCall(rng)
		for _, table := range tables {
			for _, class := range []Class{Memory, Network} {
				choice := table.Choose(class, &c)
				mine := c
				mine.Segment = choice.Segment
				a, err := coll.Find(c.Collective, choice.Algorithm)
				if err == nil {
					err = a.Fits(mine)
				}
				if err != nil {
					t.Fatalf("%+v: %v: %v", c, choice, err)
				}
				if choice.Segment%max(c.Elem, 1) != 0 {
					t.Fatalf("%+v: %v is no whole number of elements", c, choice)
				}
				for r := range c.Ranks {
					theirs := c
					theirs.Rank, theirs.InPlace = r, !c.InPlace
					if r != c.Root && c.Vector && (c.Collective == coll.Gather || c.Collective == coll.Scatter) {
						theirs.Send, theirs.Recv, theirs.Bytes = coll.Layout{}, coll.Layout{}, 4*r
					}
					if got := table.Choose(class, &theirs); got != choice {
						t.Fatalf("%+v: rank %d has %v, and rank %d %v", c, c.Rank, choice, r, got)
					}
				}
				if n := testing.AllocsPerRun(1, func() { table.Choose(class, &c) }); n > 0 {
					t.Fatalf("%+v: %v allocations", c, n)
				}
			}
		}
	}
}

// randomCall is a valid call, of the root where only that has layouts.
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

// TestHash: what decides counts, and nothing else.
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
	// The order of entries is no decision either.
	entries := strings.Split(small, "\n    - ")
	entries[1], entries[2] = entries[2], entries[1]
	if load(t, strings.Join(entries, "\n    - ")).Hash() != base.Hash() {
		t.Error("the order of entries counts")
	}
}

// TestDefault: the table of those who have none has all collectives of both classes,
// and is what Write writes.
func TestDefault(t *testing.T) {
	if Default().Hash() != Shipped().Hash() {
		t.Error("it depends on the medians")
	}
	for _, e := range Default().Document().Memory.Collectives {
		if e.Bytes != nil || e.Medians != nil {
			t.Fatalf("%+v has medians", e)
		}
	}
	d := Shipped().Document()
	for _, class := range []*ClassTable{d.Memory, d.Network} {
		if class == nil {
			t.Fatal("a class is missing")
		}
		has := map[coll.Collective]int{}
		for _, e := range class.Collectives {
			has[coll.Collective(e.Collective)]++
			if len(e.Medians) == 0 {
				t.Errorf("%v of %d ranks has no medians", Name(coll.Collective(e.Collective)), e.Ranks)
			}
		}
		for c := coll.Barrier; c <= coll.Exscan; c++ {
			if has[c] < 3 {
				t.Errorf("%v has %d entries", c, has[c])
			}
		}
	}
	var b bytes.Buffer
	if err := Shipped().Write(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), defaultTable) {
		t.Error("default.yaml is not what Write writes: have zrlbench tune write it, and change nothing")
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
				Default().Choose(Network, &c)
			}
		})
	}
}
