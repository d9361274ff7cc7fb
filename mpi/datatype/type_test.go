package datatype

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

var double = Basic("double", 8, 8, op.Float64)

// TestArguments checks that arguments that the standard forbids or that do not fit into 64 bits are rejected.
func TestArguments(t *testing.T) {
	const most = math.MaxInt64
	huge := resized(double, 0, most/2)
	for name, f := range map[string]func() (*Type, error){
		"a count of -1":             func() (*Type, error) { return Contiguous(-1, double) },
		"a count of -2":             func() (*Type, error) { return Vector(1, -2, 1, double) },
		"a count of -3":             func() (*Type, error) { return Hvector(-3, 1, 1, double) },
		"a count of -4":             func() (*Type, error) { return Indexed([]int64{-4}, []int64{0}, double) },
		"2 lengths of blocks and 1": func() (*Type, error) { return Hindexed([]int64{1, 1}, []int64{0}, double) },
		"1 displacements, 0 types":  func() (*Type, error) { return Struct([]int64{1}, []int64{0}, nil) },
		"1 sizes, 2 subsizes": func() (*Type,
			error) {
			return Subarray([]int64{1}, []int64{1, 1}, []int64{0}, OrderC, double)
		},
		"3 elements from 2 on": func() (*Type,
			error) {
			return Subarray([]int64{4}, []int64{3}, []int64{2}, OrderC, double)
		},
		"9 elements at 0: that is":    func() (*Type, error) { return Contiguous(9, huge) },
		"elements at 0: that is more": func() (*Type, error) { return Contiguous(most/4, double) },
		"a stride of":                 func() (*Type, error) { return Vector(2, 1, most/2, double) },
		"displacements in units":      func() (*Type, error) { return Indexed([]int64{1}, []int64{most / 4}, double) },
		"a lower bound":               func() (*Type, error) { return Resized(double, most, 1) },
		"an array of elements": func() (*Type, error) {
			return Subarray([]int64{most, most}, []int64{1, 1}, []int64{0, 0}, OrderC, double)
		},
		"a grid of [2]": func() (*Type, error) {
			return Darray(&Grid{3, 0, []int64{4}, []Distribution{Block}, []int64{-1}, []int64{2}, OrderC}, double)
		},
		"rank 2 of 2": func() (*Type, error) {
			return Darray(&Grid{2, 2, []int64{4}, []Distribution{Block}, []int64{-1}, []int64{2}, OrderC}, double)
		},
		"distribution 0 of 4 elements": func() (*Type, error) {
			return Darray(&Grid{2, 0, []int64{4}, []Distribution{Block}, []int64{1}, []int64{2}, OrderC}, double)
		},
		"distribution 1 of 4 elements in blocks of 0": func() (*Type, error) {
			return Darray(&Grid{2, 0, []int64{4}, []Distribution{Cyclic}, []int64{0}, []int64{2}, OrderC}, double)
		},
		"distribution 2 of 4 elements": func() (*Type, error) {
			return Darray(&Grid{2, 0, []int64{4}, []Distribution{None}, []int64{-1}, []int64{2}, OrderC}, double)
		},
		"distribution 7": func() (*Type, error) {
			return Darray(&Grid{1, 0, []int64{4}, []Distribution{7}, []int64{-1}, []int64{1}, OrderC}, double)
		},
		"2 sizes, 1 distributions": func() (*Type, error) {
			return Darray(&Grid{1, 0, []int64{4, 4}, []Distribution{None}, []int64{-1}, []int64{1}, OrderC}, double)
		},
	} {
		made, err := f()
		if !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v, %v", name, made, err)
		}
	}
	if _, _, err := huge.Span(9); !errors.Is(err, ErrArgument) {
		t.Error(err)
	}
}

// TestContents checks that a type reports how it was constructed, in the order of the standard.
func TestContents(t *testing.T) {
	for _, x := range []struct {
		make func() (*Type, error)
		want Contents
	}{
		{func() (*Type, error) { return Contiguous(3, double) },
			Contents{CombinerContiguous, []int64{3}, nil, []*Type{double}}},
		{func() (*Type, error) { return Vector(3, 1, 2, double) },
			Contents{CombinerVector, []int64{3, 1, 2}, nil, []*Type{double}}},
		{func() (*Type, error) { return Hvector(3, 1, 20, double) },
			Contents{CombinerHvector, []int64{3, 1}, []int64{20}, []*Type{double}}},
		{func() (*Type, error) { return Indexed([]int64{1, 2}, []int64{3, 4}, double) },
			Contents{CombinerIndexed, []int64{2, 1, 2, 3, 4}, nil, []*Type{double}}},
		{func() (*Type, error) { return Hindexed([]int64{1, 2}, []int64{3, 4}, double) },
			Contents{CombinerHindexed, []int64{2, 1, 2}, []int64{3, 4}, []*Type{double}}},
		{func() (*Type, error) { return IndexedBlock(5, []int64{3, 4}, double) },
			Contents{CombinerIndexedBlock, []int64{2, 5, 3, 4}, nil, []*Type{double}}},
		{func() (*Type, error) { return HindexedBlock(5, []int64{3, 4}, double) },
			Contents{CombinerHindexedBlock, []int64{2, 5}, []int64{3, 4}, []*Type{double}}},
		{func() (*Type, error) { return Struct([]int64{1, 2}, []int64{3, 4}, []*Type{double, double}) },
			Contents{CombinerStruct, []int64{2, 1, 2}, []int64{3, 4}, []*Type{double, double}}},
		{func() (*Type, error) { return Resized(double, -1, 9) },
			Contents{CombinerResized, nil, []int64{-1, 9}, []*Type{double}}},
		{func() (*Type, error) { return Dup(double), nil }, Contents{CombinerDup, nil, nil, []*Type{double}}},
		{func() (*Type, error) {
			return Subarray([]int64{4, 5}, []int64{1, 2}, []int64{3, 0}, OrderFortran, double)
		},
			Contents{CombinerSubarray, []int64{2, 4, 5, 1, 2, 3, 0, 1}, nil, []*Type{double}}},
		{func() (*Type, error) {
			return Darray(&Grid{6, 4, []int64{4, 5}, []Distribution{Block, Cyclic}, []int64{-1, 2}, []int64{2, 3},
				OrderC}, double)
		}, Contents{CombinerDarray, []int64{6, 4, 2, 4, 5, 0, 1, -1, 2, 2, 3, 0}, nil, []*Type{double}}},
	} {
		made, err := x.make()
		if err != nil || !reflect.DeepEqual(made.Contents(), x.want) {
			t.Errorf("%+v, %v, want %+v", made, err, x.want)
		}
	}
	if c := double.Contents(); c.Combiner != Named || double.Name() != "double" || double.Element() != op.Float64 {
		t.Errorf("%+v", c)
	}
}

// TestLarge checks that the memory of a type does not depend on the number of its elements.
func TestLarge(t *testing.T) {
	const n = 1 << 40
	v, err := Vector(n, 1, 2, double)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Struct([]int64{n, n}, []int64{0, 8 << 50}, []*Type{double, Basic("char", 1, 1, op.Int8)})
	if err != nil {
		t.Fatal(err)
	}
	if v.Size() != 8*n || v.Extent() != 16*n-8 || s.Size() != 9*n {
		t.Errorf("%d, %d, %d", v.Size(), v.Extent(), s.Size())
	}
	if got, ok := s.Elements(8*n + 5); got != n+5 || !ok {
		t.Errorf("%d elements, %v", got, ok)
	}
}

// BenchmarkPack packs 1 MiB of data in the cache, and compares it with copy.
func BenchmarkPack(b *testing.B) {
	const size = 1 << 20
	must := func(t *Type, err error) *Type {
		if err != nil {
			b.Fatal(err)
		}
		return t
	}
	float := Basic("float", 4, 4, op.Float32)
	for _, x := range []struct {
		name string
		of   *Type
	}{
		{"contiguous", double},
		{"every second double", must(Vector(size/8, 1, 2, double))},
		{"every second float", must(Vector(size/4, 1, 2, float))},
		{"columns of 512 lines", must(Vector(512, 256, 512, double))},
		{"a face of a cube", must(Subarray([]int64{64, 64, 64}, []int64{64, 64, 1}, []int64{0, 0, 3}, OrderC, double))},
		{"int and double", must(Struct([]int64{1, 1}, []int64{0, 8}, []*Type{Basic("int", 4, 4, op.Int32), double}))},
		{"indexed blocks of 1 to 7", must(Indexed([]int64{1, 3, 7, 2, 5}, []int64{0, 3, 9, 21, 30}, double))},
	} {
		count := max(size/x.of.Size(), 1)
		_, end, err := x.of.Span(count)
		if err != nil {
			b.Fatal(err)
		}
		memory, packed := make([]byte, end), make([]byte, count*x.of.Size())
		for _, way := range []struct {
			name string
			do   func()
		}{
			{"pack", func() { x.of.Pack(packed, unsafe.Pointer(&memory[0]), count, 0) }},
			{"unpack", func() { x.of.Unpack(unsafe.Pointer(&memory[0]), count, packed, 0) }},
			{"copy", func() { copy(packed, memory) }},
		} {
			b.Run(x.name+"/"+way.name, func(b *testing.B) {
				b.SetBytes(int64(len(packed)))
				b.ReportAllocs()
				for b.Loop() {
					way.do()
				}
			})
		}
	}
}
