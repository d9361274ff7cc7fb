package datatype

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// model is a type as defined in the standard: a list of basic elements and their displacements.
type model struct {
	entries      []entry
	lb, ub       int64
	lbSet, ubSet bool
	align        int64
}

type entry struct{ displ, size int64 }

func (m *model) extent() int64 { return m.ub - m.lb }

// put adds count elements of another model at a displacement.
func (m *model) put(count, displ int64, of *model, first *bool) {
	for i := range count {
		at := displ + i*of.extent()
		for _, e := range of.entries {
			m.entries = append(m.entries, entry{e.displ + at, e.size})
		}
		lb, ub := of.lb+at, of.ub+at
		switch {
		case *first || of.lbSet && !m.lbSet:
			m.lb = lb
		case m.lbSet == of.lbSet:
			m.lb = min(m.lb, lb)
		}
		switch {
		case *first || of.ubSet && !m.ubSet:
			m.ub = ub
		case m.ubSet == of.ubSet:
			m.ub = max(m.ub, ub)
		}
		m.lbSet, m.ubSet = m.lbSet || of.lbSet, m.ubSet || of.ubSet
		m.align = max(m.align, of.align)
		*first = false
	}
}

// trueBounds returns the bounds of the data.
func (m *model) trueBounds() (lb, ub int64) {
	for i, e := range m.entries {
		if i == 0 || e.displ < lb {
			lb = e.displ
		}
		if i == 0 || e.displ+e.size > ub {
			ub = e.displ + e.size
		}
	}
	return lb, ub
}

// bytes returns the displacements of all bytes of count elements, in order.
func (m *model) bytes(count int64) (list []int64) {
	for i := range count {
		for _, e := range m.entries {
			for b := range e.size {
				list = append(list, e.displ+i*m.extent()+b)
			}
		}
	}
	return list
}

// both is a type and its model.
type both struct {
	t *Type
	m *model
}

var basics = []struct {
	size, align int64
	element     op.Type
}{{1, 1, op.Int8}, {2, 2, op.Int16}, {4, 4, op.Int32}, {8, 8, op.Float64}, {16, 8, op.Complex128}, {3, 1, 0}}

// generator makes random types.
type generator struct {
	*rand.Rand
	t *testing.T
}

func (g *generator) list(n int, most int64) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = g.Int64N(most)
	}
	return list
}

func (g *generator) make(depth int) both {
	if depth == 0 {
		b := basics[g.IntN(len(basics))]
		return both{Basic("b", b.size, b.align, b.element),
			&model{[]entry{{0, b.size}}, 0, b.size, false, false, b.align}}
	}
	of := g.make(g.IntN(depth))
	ex := of.m.extent()
	m, first := &model{align: 1}, true
	var t *Type
	var err error
	switch g.IntN(11) {
	case 0:
		n := g.Int64N(5)
		t, err = Contiguous(n, of.t)
		m.put(n, 0, of.m, &first)
	case 1, 2:
		n, length, stride := g.Int64N(5), g.Int64N(4), g.Int64N(9)-3
		unit := ex
		if g.IntN(2) == 0 {
			t, err = Vector(n, length, stride, of.t)
		} else {
			unit = 1
			stride *= 5
			t, err = Hvector(n, length, stride, of.t)
		}
		for i := range n {
			m.put(length, i*stride*unit, of.m, &first)
		}
	case 3:
		n := g.IntN(5)
		lengths, displs := g.list(n, 4), g.list(n, 20)
		t, err = Indexed(lengths, displs, of.t)
		for i := range n {
			m.put(lengths[i], displs[i]*ex, of.m, &first)
		}
	case 4:
		n := g.IntN(5)
		lengths, displs := g.list(n, 4), g.list(n, 99)
		t, err = Hindexed(lengths, displs, of.t)
		for i := range n {
			m.put(lengths[i], displs[i], of.m, &first)
		}
	case 5:
		n := g.IntN(5)
		displs := g.list(n, 20)
		t, err = IndexedBlock(2, displs, of.t)
		for i := range n {
			m.put(2, displs[i]*ex, of.m, &first)
		}
	case 6:
		n := g.IntN(5)
		displs := g.list(n, 50)
		t, err = HindexedBlock(1, displs, of.t)
		for i := range n {
			m.put(1, displs[i], of.m, &first)
		}
	case 7:
		n := g.IntN(4)
		lengths, displs := g.list(n, 4), g.list(n, 99)
		var types []*Type
		for i := range n {
			part := g.make(g.IntN(depth))
			types = append(types, part.t)
			m.put(lengths[i], displs[i], part.m, &first)
		}
		if rest := m.extent() % m.align; rest != 0 && !m.ubSet {
			m.ub += m.align - rest
		}
		t, err = Struct(lengths, displs, types)
	case 8:
		lb, extent := g.Int64N(20)-10, g.Int64N(90)-20
		t, err = Resized(of.t, lb, extent)
		*m = *of.m
		m.lb, m.ub, m.lbSet, m.ubSet = lb, lb+extent, true, true
	case 9:
		t, *m = Dup(of.t), *of.m
	case 10:
		t, err = g.array(of, m)
	}
	if err != nil {
		g.t.Fatalf("%v", err)
	}
	return both{t, m}
}

// array makes a part of an array of up to 3 dimensions.
func (g *generator) array(of both, m *model) (*Type, error) {
	n := 1 + g.IntN(3)
	order := Order(g.IntN(2))
	sizes := g.list(n, 5)
	owned := make([][]int64, n) // the indices of each dimension
	for d := range sizes {
		sizes[d]++
	}
	var t *Type
	var err error
	if g.IntN(2) == 0 {
		subsizes, starts := make([]int64, n), make([]int64, n)
		for d, size := range sizes {
			subsizes[d] = 1 + g.Int64N(size)
			starts[d] = g.Int64N(size - subsizes[d] + 1)
			for i := range subsizes[d] {
				owned[d] = append(owned[d], starts[d]+i)
			}
		}
		t, err = Subarray(sizes, subsizes, starts, order, of.t)
	} else {
		grid := &Grid{Ranks: 1, Sizes: sizes, Order: order}
		for _, size := range sizes {
			how, argument, processes := Distribution(g.IntN(3)), int64(DefaultArgument), 1+g.Int64N(3)
			switch {
			case how == None:
				processes = 1
			case g.IntN(2) == 0 && how == Cyclic:
				argument = 1 + g.Int64N(3)
			case g.IntN(2) == 0 && how == Block:
				argument = (size-1)/processes + 1 + g.Int64N(2)
			}
			grid.Distributions, grid.Arguments, grid.Processes = append(grid.Distributions, how),
				append(grid.Arguments, argument), append(grid.Processes, processes)
			grid.Ranks *= processes
		}
		grid.Rank = g.Int64N(grid.Ranks)
		rest := grid.Rank
		for d := n - 1; d >= 0; d-- {
			at := rest % grid.Processes[d]
			rest /= grid.Processes[d]
			length := grid.Arguments[d]
			switch {
			case grid.Distributions[d] == None:
				length = sizes[d]
			case length == DefaultArgument && grid.Distributions[d] == Block:
				length = (sizes[d] + grid.Processes[d] - 1) / grid.Processes[d]
			case length == DefaultArgument:
				length = 1
			}
			for i := range sizes[d] {
				if i/length%grid.Processes[d] == at {
					owned[d] = append(owned[d], i)
				}
			}
		}
		t, err = Darray(grid, of.t)
	}
	// The dimension that varies fastest comes first.
	if order == OrderC {
		slices.Reverse(sizes)
		slices.Reverse(owned)
	}
	places := []int64{0}
	unit := of.m.extent()
	for d, size := range sizes {
		var next []int64
		for _, i := range owned[d] {
			for _, place := range places {
				next = append(next, place+i*unit)
			}
		}
		places, unit = next, unit*size
	}
	first := true
	m.align = of.m.align
	for _, place := range places {
		m.put(1, place, of.m, &first)
	}
	m.lb, m.ub, m.lbSet, m.ubSet = 0, unit, true, true
	return t, err
}

// mostBytes limits the size of a model.
const mostBytes = 20_000

// TestModel checks types of any depth against the model.
func TestModel(t *testing.T) {
	for seed := range uint64(30_000) {
		check(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { check(t, seed) })
}

func check(t *testing.T, seed uint64) {
	g := &generator{rand.New(rand.NewPCG(seed, 1)), t}
	x := g.make(1 + g.IntN(4))
	count := g.Int64N(4)
	list := x.m.bytes(count)
	if len(list) > mostBytes {
		return
	}
	lb, extent := x.t.Bounds()
	if int64(len(x.m.bytes(1))) != x.t.Size() || lb != x.m.lb || extent != x.m.extent() {
		t.Errorf("size %d, bounds %d, %d; want %d, %d, %d", x.t.Size(), lb, extent, len(x.m.bytes(1)), x.m.lb,
			x.m.extent())
		return
	}
	trueLB, trueUB := x.m.trueBounds()
	if lb, extent := x.t.TrueBounds(); lb != trueLB || extent != trueUB-trueLB {
		t.Errorf("true bounds %d, %d; want %d, %d", lb, extent, trueLB, trueUB-trueLB)
	}
	checkElements(t, g, x)
	begin, end, err := x.t.Span(count)
	if len(list) == 0 {
		if n := x.t.Pack(make([]byte, 1), nil, count, 0); n != 0 {
			t.Errorf("%d bytes of none", n)
		}
		return
	}
	if err != nil || begin != slices.Min(list) || end != slices.Max(list)+1 {
		t.Errorf("uses %d to %d, %v; want %d to %d", begin, end, err, slices.Min(list), slices.Max(list)+1)
		return
	}
	if offset, ok := x.t.Contiguous(count); ok &&
		(offset != begin || end-begin != int64(len(list)) || !slices.IsSorted(list)) {
		t.Errorf("contiguous at %d, and uses %d to %d for %d bytes", offset, begin, end, len(list))
	}
	begin, end = min(begin, 0), max(end, 1) // includes displacement 0, so that its pointer is valid
	memory := make([]byte, end-begin)
	for i := range memory {
		memory[i] = byte(g.Uint32())
	}
	origin := unsafe.Pointer(&memory[-begin])
	var want []byte
	for _, at := range list {
		want = append(want, memory[at-begin])
	}
	from := g.Int64N(int64(len(want)))
	for _, piece := range []int64{int64(len(want)), 1 + g.Int64N(int64(len(want)))} {
		var got []byte
		for at := from; at < int64(len(want)); {
			b := make([]byte, piece)
			n := x.t.Pack(b, origin, count, at)
			got, at = append(got, b[:n]...), at+int64(n)
		}
		if !slices.Equal(got, want[from:]) {
			t.Errorf("packed from %d in pieces of %d: %v, want %v", from, piece, got, want[from:])
		}
	}
	unpack(t, g, x, count, list, begin, end)
}

// unpack checks the bytes that Unpack writes, if no two of them have the same displacement.
func unpack(t *testing.T, g *generator, x both, count int64, list []int64, begin, end int64) {
	sorted := slices.Sorted(slices.Values(list))
	if len(slices.Compact(sorted)) != len(list) {
		return
	}
	memory, want := make([]byte, end-begin), make([]byte, end-begin)
	packed := make([]byte, len(list))
	for i := range packed {
		packed[i] = byte(1 + g.IntN(255))
	}
	from, to := int64(0), int64(len(list))
	if g.IntN(2) == 0 {
		from = g.Int64N(to)
		to = from + g.Int64N(to-from+1)
	}
	for i := from; i < to; i++ {
		want[list[i]-begin] = packed[i]
	}
	origin := unsafe.Pointer(&memory[-begin])
	step := 1 + g.Int64N(int64(len(list)))
	for at := from; at < to; {
		at += int64(x.t.Unpack(origin, count, packed[at:min(to, at+step)], at))
	}
	if !slices.Equal(memory, want) {
		t.Errorf("unpacked %d to %d in pieces of %d: %v, want %v", from, to, step, memory, want)
	}
}

// checkElements checks the number of basic elements in a part of the data.
func checkElements(t *testing.T, g *generator, x both) {
	var whole, bytes int64
	n := g.Int64N(2*x.t.Size() + 1)
	ok := bytes == n
	for !ok && x.t.Size() > 0 {
		e := x.m.entries[whole%int64(len(x.m.entries))]
		if bytes += e.size; bytes > n {
			break
		}
		whole++
		ok = bytes == n
	}
	if got, gotOK := x.t.Elements(n); got != whole || gotOK != ok {
		t.Errorf("%d bytes of elements of %d are %d basic ones, %v; want %d, %v", n, x.t.Size(), got, gotOK, whole, ok)
	}
}
