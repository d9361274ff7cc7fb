package capi

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

var combinerNames = [...]string{
	datatype.Named: "NAMED", datatype.CombinerDup: "DUP", datatype.CombinerContiguous: "CONTIGUOUS",
	datatype.CombinerVector:  "VECTOR",
	datatype.CombinerHvector: "HVECTOR", datatype.CombinerIndexed: "INDEXED", datatype.CombinerHindexed: "HINDEXED",
	datatype.CombinerIndexedBlock: "INDEXED_BLOCK", datatype.CombinerHindexedBlock: "HINDEXED_BLOCK",
	datatype.CombinerStruct:   "STRUCT",
	datatype.CombinerSubarray: "SUBARRAY", datatype.CombinerDarray: "DARRAY", datatype.CombinerResized: "RESIZED",
}

// construction describes how a datatype was constructed, for MPI_Type_get_envelope and MPI_Type_get_contents (MPI 4.0,
// section 5.1.13).
type construction struct {
	combiner                   string
	integers, addresses, large []int64
	types                      []*datatype.Type
}

// constructionOf describes a datatype with the constants of the ABI.
func (a *args) constructionOf(t *dtype) construction {
	if t.combiner != "" {
		return construction{combiner: t.combiner, integers: toInt64s(t.integers)}
	}
	made := t.Contents()
	d := construction{"COMBINER_" + combinerNames[made.Combiner], slices.Clone(made.Integers), made.Addresses, nil,
		made.Types}
	a.translateConstants(made.Combiner, d.integers)
	if !t.IsLarge() {
		return d
	}
	integers := d.integers
	switch made.Combiner {
	case datatype.CombinerSubarray: // dimensions, sizes, subsizes, starts, order
		n := int(integers[0])
		d.integers, d.large = []int64{integers[0], integers[1+3*n]}, integers[1:1+3*n]
	case datatype.CombinerDarray: // ranks, rank, dimensions, sizes, and the rest
		n := int(integers[2])
		d.integers, d.large = slices.Concat(integers[:3], integers[3+n:]), integers[3:3+n]
	default:
		d.integers, d.addresses, d.large = nil, nil, slices.Concat(integers, d.addresses)
	}
	return d
}

// construction describes the datatype in argument 0.
func (a *args) construction() (t *dtype, d construction) {
	t = a.datatype(0)
	if t.IsLarge() && !a.largeCounts {
		panic(failf(mpi.ErrType, "the datatype was made by a call with large counts: use MPI_%s_c", a.name))
	}
	return t, a.constructionOf(t)
}

// getEnvelope implements MPI_Type_get_envelope(datatype, num_integers, num_addresses, num_datatypes, combiner).
// The form with large counts has num_large_counts before num_datatypes.
func (a *args) getEnvelope() {
	_, d := a.construction()
	lengths := []int{len(d.integers), len(d.addresses), len(d.large), len(d.types)}
	if !a.largeCounts {
		lengths = slices.Delete(lengths, 2, 3)
	}
	for i, n := range lengths {
		a.setCount(1+i, int64(n))
	}
	a.setInt(1+len(lengths), int(a.lib.abi.constants[d.combiner]))
}

// getContents implements MPI_Type_get_contents(datatype, max_integers, max_addresses, max_datatypes, array_of_integers,
// array_of_addresses, array_of_datatypes). The form with large counts has the large counts before the datatypes.
func (a *args) getContents() {
	t, d := a.construction()
	if d.combiner == "COMBINER_NAMED" {
		panic(failf(mpi.ErrType, "%s is predefined and has no contents", t.name))
	}
	words, kinds := [][]int64{d.addresses}, []string{"integers", "addresses", "datatypes"}
	if a.largeCounts {
		words, kinds = append(words, d.large), slices.Insert(kinds, 2, "large counts")
	}
	have := []int{len(d.integers)}
	for _, list := range words {
		have = append(have, len(list))
	}
	have = append(have, len(d.types))
	for i, n := range have {
		if room := a.count(1 + i); int64(n) > room {
			panic(failf(mpi.ErrArg, "the datatype has %d %s, but the array holds only %d", n, kinds[i], room))
		}
	}
	to := 1 + len(have)
	integers := make([]int, len(d.integers))
	for i, v := range d.integers {
		integers[i] = int(v)
	}
	a.setInts(to, integers)
	for i, list := range words {
		a.setWords(to+1+i, list)
	}
	a.setTypes(to+1+len(words), d.types)
}

// setWords writes an array of 64-bit integers.
func (a *args) setWords(i int, list []int64) {
	if len(list) == 0 {
		return
	}
	p := a.checkedPointer(i)
	copy(unsafe.Slice((*int64)(p), len(list)), list)
}

// setTypes writes an array of datatype handles. setTypes allocates a handle for a datatype without one; the program
// must free it.
func (a *args) setTypes(i int, types []*datatype.Type) {
	if len(types) == 0 {
		return
	}
	p := a.checkedPointer(i)
	for k, of := range types {
		handle, known := a.lib.typeHandles[of]
		if !known {
			handle, known = a.lib.fortranTypes.handle(of)
		}
		if !known {
			d, h, err := a.lib.types.alloc()
			if err != nil {
				for given := range k {
					a.lib.types.remove(a.lib.handleAt(p, given))
				}
				check(err)
			}
			d.Type, d.handle, handle = of, h, h
		}
		a.lib.setHandleAt(p, k, handle)
	}
}

// translateConstants replaces the constants of package datatype with the constants of the ABI.
func (a *args) translateConstants(combiner datatype.Combiner, integers []int64) {
	c := a.lib.abi.constants
	last := len(integers) - 1
	order := func() {
		name := "ORDER_C"
		if datatype.Order(integers[last]) == datatype.OrderFortran {
			name = "ORDER_FORTRAN"
		}
		integers[last] = c[name]
	}
	switch combiner {
	case datatype.CombinerSubarray:
		order()
	case datatype.CombinerDarray:
		order()
		n := int(integers[2])
		for i := range n {
			d := &integers[3+n+i]
			*d = c[[...]string{datatype.Block: "DISTRIBUTE_BLOCK", datatype.Cyclic: "DISTRIBUTE_CYCLIC",
				datatype.None: "DISTRIBUTE_NONE"}[*d]]
			if d := &integers[3+2*n+i]; *d == datatype.DefaultArgument {
				*d = c["DISTRIBUTE_DFLT_DARG"]
			}
		}
	}
}

// matchSize implements MPI_Type_match_size(typeclass, size, datatype).
func (a *args) matchSize() {
	var names string
	switch c := a.lib.abi.constants; int64(a.int(0)) {
	case c["TYPECLASS_REAL"]:
		names = "FLOAT DOUBLE LONG_DOUBLE"
	case c["TYPECLASS_INTEGER"]:
		names = "SIGNED_CHAR SHORT INT LONG"
	case c["TYPECLASS_COMPLEX"]:
		names = "COMPLEX DOUBLE_COMPLEX C_LONG_DOUBLE_COMPLEX"
	default:
		panic(failf(mpi.ErrArg, "type class %d does not exist", a.int(0)))
	}
	for _, name := range strings.Fields(names) {
		h := a.lib.abi.handle(kindDatatype, a.lib.abi.constants[name])
		if t := a.lib.types.get(h); t != nil && t.Size() == int64(a.int(1)) {
			a.setHandle(2, h)
			return
		}
	}
	panic(failf(mpi.ErrArg, "there is no datatype of %d bytes in the class", a.int(1)))
}
