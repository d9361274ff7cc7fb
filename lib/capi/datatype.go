package capi

import (
	"cmp"
	"strings"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/caching"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// dtype is a datatype together with the state that only C programs use.
type dtype struct {
	*datatype.Type
	handle uint64
	// name is the result of MPI_Type_get_name, which the program may change. predefined is the ABI's name of a
	// predefined datatype or of a duplicate of it, and empty for other datatypes.
	name, predefined string
	// combiner and integers are set for predefined datatypes that MPI_Type_get_envelope reports as constructed.
	combiner string
	integers []int
	// reductionType is the type that predefined operations use for an element. It is set only if it differs from Type,
	// as for pairs with padding at the end.
	reductionType *datatype.Type
	committed     bool
	attributes    caching.Attributes[object]
}

// bytesForElements returns the number of bytes of n basic elements of the datatype.
func (t *dtype) bytesForElements(n int64) int64 {
	per, _ := t.Elements(t.Size())
	if per == 0 {
		return 0
	}
	bytes := n / per * t.Size()
	// The remaining basic elements are only a part of the next element. Find the shortest beginning that contains them.
	low, high := int64(0), t.Size()
	for low < high {
		mid := (low + high) / 2
		if k, _ := t.Elements(mid); k >= n%per {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return bytes + low
}

var _ = add(map[string]implementation{
	"Type_size":              (*args).typeSize,
	"Type_size_x":            func(a *args) { a.largeCounts = true; a.typeSize() },
	"Type_get_extent":        func(a *args) { a.typeBounds((*datatype.Type).Bounds) },
	"Type_get_extent_x":      func(a *args) { a.typeBounds((*datatype.Type).Bounds) },
	"Type_get_true_extent":   func(a *args) { a.typeBounds((*datatype.Type).TrueBounds) },
	"Type_get_true_extent_x": func(a *args) { a.typeBounds((*datatype.Type).TrueBounds) },
	"Type_extent":            func(a *args) { a.typeBound(func(_, extent int64) int64 { return extent }) },
	"Type_lb":                func(a *args) { a.typeBound(func(lb, _ int64) int64 { return lb }) },
	"Type_ub":                func(a *args) { a.typeBound(func(lb, extent int64) int64 { return lb + extent }) },
	"Type_commit":            func(a *args) { a.typeIn(0).committed = true },
	"Type_free":              (*args).typeFree,
	"Type_dup":               (*args).typeDup,
	"Type_set_name":          func(a *args) { a.datatype(0).name = a.cString(1) },
	"Type_get_name":          (*args).typeGetName,

	"Type_contiguous": func(a *args) {
		a.setDatatype(2,
			mustType(datatype.Contiguous(a.count(0), a.datatype(1).Type)))
	},
	"Type_vector":         (*args).vector,
	"Type_create_hvector": (*args).hvector,
	"Type_hvector":        (*args).hvector,
	"Type_indexed": func(a *args) {
		lengths, displs := a.lengthsAndDispls(a.countArray)
		a.setDatatype(4, mustType(datatype.Indexed(lengths, displs, a.datatype(3).Type)))
	},
	"Type_create_hindexed": (*args).hindexed,
	"Type_hindexed":        (*args).hindexed,
	"Type_create_indexed_block": func(a *args) {
		displs := toInt64s(a.countArray(2, a.firstCount()))
		a.setDatatype(4, mustType(datatype.IndexedBlock(a.count(1), displs, a.datatype(3).Type)))
	},
	"Type_create_hindexed_block": func(a *args) {
		displs := toInt64s(a.addressArray(2, a.firstCount()))
		a.setDatatype(4, mustType(datatype.HindexedBlock(a.count(1), displs, a.datatype(3).Type)))
	},
	"Type_create_struct": (*args).structure,
	"Type_struct":        (*args).structure,
	"Type_create_resized": func(a *args) {
		a.setDatatype(3,
			mustType(datatype.Resized(a.datatype(0).Type, a.count(1), a.count(2))))
	},
	"Type_create_subarray": (*args).subarray,
	"Type_create_darray":   (*args).darray,

	"Type_get_envelope": (*args).getEnvelope,
	"Type_get_contents": (*args).getContents,
	"Type_match_size":   (*args).matchSize,

	"Pack":               (*args).pack,
	"Unpack":             (*args).unpack,
	"Pack_size":          (*args).packSize,
	"Pack_external":      (*args).packExternal,
	"Unpack_external":    (*args).unpackExternal,
	"Pack_external_size": (*args).packExternalSize,
})

// basicTypes lists the predefined datatypes of the ABIs, with their size and alignment in bytes and their type in
// reductions.
var basicTypes = []struct {
	names       string
	size, align int64
	element     op.Type
}{
	{"CHAR SIGNED_CHAR INT8_T INTEGER1 CHARACTER", 1, 1, op.Int8},
	{"UNSIGNED_CHAR BYTE UINT8_T C_BOOL CXX_BOOL PACKED LOGICAL1", 1, 1, op.Uint8},
	{"SHORT INT16_T INTEGER2 LOGICAL2", 2, 2, op.Int16},
	{"UNSIGNED_SHORT UINT16_T", 2, 2, op.Uint16},
	{"INT INT32_T INTEGER INTEGER4 LOGICAL LOGICAL4 WCHAR", 4, 4, op.Int32},
	{"UNSIGNED UINT32_T", 4, 4, op.Uint32},
	{"LONG LONG_LONG_INT LONG_LONG INT64_T INTEGER8 AINT COUNT OFFSET LOGICAL8", 8, 8, op.Int64},
	{"UNSIGNED_LONG UNSIGNED_LONG_LONG UINT64_T", 8, 8, op.Uint64},
	{"FLOAT REAL REAL4", 4, 4, op.Float32},
	{"DOUBLE DOUBLE_PRECISION REAL8", 8, 8, op.Float64},
	{"C_COMPLEX C_FLOAT_COMPLEX CXX_FLOAT_COMPLEX COMPLEX COMPLEX8", 8, 4, op.Complex64},
	{"C_DOUBLE_COMPLEX CXX_DOUBLE_COMPLEX DOUBLE_COMPLEX COMPLEX16", 16, 8, op.Complex128},
	{"REAL2", 2, 2, 0}, {"COMPLEX4", 4, 2, 0}, {"LOGICAL16 INTEGER16", 16, 16, 0},
	{"LONG_DOUBLE REAL16", 16, 16, 0},
	{"C_LONG_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX COMPLEX32", 32, 16, 0},
	{"2INT 2INTEGER", 8, 4, op.Int32Loc}, {"FLOAT_INT", 8, 4, op.Float32Loc},
	{"2REAL", 8, 4, 0}, {"2DOUBLE_PRECISION", 16, 8, 0},
	{"LB UB", 0, 1, 0},
}

// pairTypes lists the datatypes that consist of a value and an int and contain padding.
var pairTypes = []struct {
	name        string
	value, size int64 // size of the value, and of the pair including padding
	element     op.Type
}{
	{"DOUBLE_INT", 8, 16, op.Float64Loc}, {"LONG_INT", 8, 16, op.Int64Loc}, {"SHORT_INT", 2, 8, op.Int16Loc},
	{"LONG_DOUBLE_INT", 16, 32, 0},
}

// defineDatatypes defines the ABI's datatypes: numbers, and the pairs for MPI_MAXLOC and MPI_MINLOC.
func (l *Library) defineDatatypes() {
	l.byteType, l.typeHandles = datatype.Basic("bytes", 1, 1, op.Uint8), map[*datatype.Type]uint64{}
	for _, b := range basicTypes {
		for _, name := range strings.Fields(b.names) {
			l.defineDatatype(name, datatype.Basic(name, b.size, b.align, b.element), nil)
		}
	}
	for _, p := range pairTypes {
		t, err := datatype.Pair(p.name, p.value, p.size)
		if err != nil {
			panic(err) // cannot happen with these constants
		}
		l.defineDatatype(p.name, t, datatype.Basic(p.name, p.size, min(p.value, 16), p.element))
	}
}

// defineDatatype defines a datatype, unless the ABI lacks it. combined, if not nil, is its reductionType.
func (l *Library) defineDatatype(name string, t, combined *datatype.Type) {
	v, ok := l.abi.constants[name]
	if !ok || l.abi.handle(kindDatatype, v) == l.abi.null[kindDatatype] {
		return
	}
	h := l.abi.handle(kindDatatype, v)
	if l.types.get(h) == nil { // otherwise it already has a name
		l.typeHandles[t] = h
		l.types.define(h, &dtype{Type: t, handle: h, name: "MPI_" + name, predefined: name, reductionType: combined,
			committed: true})
	}
}

// mustType returns a new datatype. If the datatype cannot be made, mustType fails the call.
func mustType(t *datatype.Type, err error) *datatype.Type {
	if err != nil {
		panic(failf(mpi.ErrArg, "%v", err))
	}
	return t
}

// setDatatype stores a handle for a datatype.
func (a *args) setDatatype(i int, made *datatype.Type) {
	t, handle := newObject(a, a.lib.types, i)
	if a.largeCounts {
		made.MarkLarge()
	}
	t.Type, t.handle = made, handle
}

// firstCount returns the first argument of a call, which is the length of the arrays in the other arguments.
func (a *args) firstCount() int { return max(int(a.count(0)), 0) }

// lengthsAndDispls reads the arrays in arguments 1 and 2. Their length is in argument 0.
func (a *args) lengthsAndDispls(displacements func(i, n int) []int) (lengths, displs []int64) {
	if a.count(0) < 0 {
		panic(failf(mpi.ErrArg, "the count is %d", a.count(0)))
	}
	return toInt64s(a.countArray(1, a.firstCount())), toInt64s(displacements(2, a.firstCount()))
}

func (a *args) vector() {
	a.setDatatype(4, mustType(datatype.Vector(a.count(0), a.count(1), a.count(2), a.datatype(3).Type)))
}

func (a *args) hvector() {
	a.setDatatype(4, mustType(datatype.Hvector(a.count(0), a.count(1), a.count(2), a.datatype(3).Type)))
}

func (a *args) hindexed() {
	lengths, displs := a.lengthsAndDispls(a.addressArray)
	a.setDatatype(4, mustType(datatype.Hindexed(lengths, displs, a.datatype(3).Type)))
}

func (a *args) structure() {
	lengths, displs := a.lengthsAndDispls(a.addressArray)
	a.setDatatype(4, mustType(datatype.Struct(lengths, displs, a.datatypes(3, a.firstCount()))))
}

// order decodes MPI_ORDER_C or MPI_ORDER_FORTRAN.
func (a *args) order(i int) datatype.Order {
	switch int64(a.int(i)) {
	case a.lib.abi.constants["ORDER_C"]:
		return datatype.OrderC
	case a.lib.abi.constants["ORDER_FORTRAN"]:
		return datatype.OrderFortran
	}
	panic(failf(mpi.ErrArg, "the order is %d, not MPI_ORDER_C or MPI_ORDER_FORTRAN", a.int(i)))
}

// subarray implements MPI_Type_create_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order,
// oldtype, newtype).
func (a *args) subarray() {
	n := a.firstCount()
	var lists [3][]int64
	for i := range lists {
		lists[i] = toInt64s(a.countArray(1+i, n))
	}
	order := a.order(4)
	a.setDatatype(6, mustType(datatype.Subarray(lists[0], lists[1], lists[2], order, a.datatype(5).Type)))
}

// darray implements MPI_Type_create_darray(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs,
// array_of_psizes, order, oldtype, newtype). Only the global sizes have 64 bits in MPI_Type_create_darray_c.
func (a *args) darray() {
	n := max(a.int(2), 0)
	sizes := a.countArray(3, n)
	var lists [3][]int
	for i := range lists {
		lists[i] = a.intArray(4+i, n)
	}
	order := a.order(7)
	c := a.lib.abi.constants
	grid := datatype.Grid{Ranks: int64(a.int(0)), Rank: int64(a.int(1)), Sizes: toInt64s(sizes),
		Processes: toInt64s(lists[2]),
		Order:     order}
	for i, how := range lists[0] {
		distribution := datatype.Distribution(-1)
		switch int64(how) {
		case c["DISTRIBUTE_BLOCK"]:
			distribution = datatype.Block
		case c["DISTRIBUTE_CYCLIC"]:
			distribution = datatype.Cyclic
		case c["DISTRIBUTE_NONE"]:
			distribution = datatype.None
		}
		grid.Distributions = append(grid.Distributions, distribution)
		argument := int64(lists[1][i])
		if argument == c["DISTRIBUTE_DFLT_DARG"] {
			argument = datatype.DefaultArgument
		}
		grid.Arguments = append(grid.Arguments, argument)
	}
	a.setDatatype(9, mustType(datatype.Darray(&grid, a.datatype(8).Type)))
}

func (a *args) typeSize() {
	a.setCount(1, a.datatype(0).Size())
}

// typeBound writes one of the bounds of MPI-1.
func (a *args) typeBound(of func(lb, extent int64) int64) {
	t := a.datatype(0)
	a.setWord(1, of(t.Bounds()))
}

// typeBounds implements MPI_Type_get_extent(datatype, lb, extent) and its variants, whose results always have 64 bits.
func (a *args) typeBounds(of func(*datatype.Type) (lb, extent int64)) {
	t := a.datatype(0)
	lb, extent := of(t.Type)
	a.setWord(1, lb)
	a.setWord(2, extent)
}

// typeIn returns the datatype whose handle argument i points to.
func (a *args) typeIn(i int) *dtype { return a.lib.datatype(a.handleIn(i)) }

// typeFree implements MPI_Type_free(datatype). Messages in progress and derived types keep the datatype.
func (a *args) typeFree() {
	t := a.typeIn(0)
	if a.lib.types.slot(t.handle) == nil || t.combiner != "" {
		panic(failf(mpi.ErrType, "%s is predefined and cannot be freed",
			cmp.Or(t.name, "a datatype of MPI_Type_create_f90_integer, real or complex")))
	}
	check(t.attributes.Clear(t))
	removeObject(a, a.lib.types, 0, t.handle)
}

// typeDup implements MPI_Type_dup(oldtype, newtype). If a copy callback fails, the new datatype is freed again.
func (a *args) typeDup() {
	t := a.datatype(0)
	d, handle := newObject(a, a.lib.types, 1)
	d.Type, d.handle, d.name, d.predefined, d.reductionType, d.committed = datatype.Dup(t.Type), handle, "", t.predefined,
		t.reductionType, t.committed
	if err := t.attributes.CopyTo(&d.attributes, t); err != nil {
		removeObject(a, a.lib.types, 1, handle)
		check(err)
	}
}

func (a *args) typeGetName() {
	t := a.datatype(0)
	a.setInt(2, a.setCString(1, t.name, int(a.lib.abi.constants["MAX_OBJECT_NAME"])))
}

// pack implements MPI_Pack(inbuf, incount, datatype, outbuf, outsize, position, comm).
func (a *args) pack() {
	b, t := a.elementsArg(0, 1, 2, 6)
	a.copyPacked(b, t, 3, 4, 5, true)
}

// unpack implements MPI_Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm).
func (a *args) unpack() {
	b, t := a.elementsArg(3, 4, 5, 6)
	a.copyPacked(b, t, 0, 1, 2, false)
}

// elementsAt is an address and a number of elements there.
type elementsAt struct {
	at    unsafe.Pointer
	count int64
}

// elementsArg decodes the arguments that describe elements in memory. It also decodes the communicator at index comm,
// unless comm is −1.
func (a *args) elementsArg(buf, count, of, comm int) (elementsAt, *dtype) {
	if comm >= 0 {
		a.communicator(comm)
	}
	t := a.datatype(of)
	n := a.elementCount(count)
	if _, _, err := t.Span(n); err != nil {
		panic(failf(mpi.ErrCount, "%v", err))
	}
	return elementsAt{a.pointer(buf), n}, t
}

// copyPacked copies between elements and a buffer of size bytes, and advances the position in that buffer.
func (a *args) copyPacked(b elementsAt, t *dtype, buf, size, position int, pack bool) {
	at := a.position(position)
	n, room := b.count*t.Size(), a.count(size)
	if at < 0 || room-at < n {
		panic(failf(mpi.ErrTruncate, "%d packed elements have %d bytes, but the buffer has %d of %d from position %d on",
			b.count, n, max(room-at, 0), room, at))
	}
	if n == 0 {
		return
	}
	p := a.checkedPointer(buf)
	bytes := unsafe.Slice((*byte)(unsafe.Add(p, at)), n)
	if pack {
		t.Pack(bytes, b.at, b.count, 0)
	} else {
		t.Unpack(b.at, b.count, bytes, 0)
	}
	a.setPosition(position, at+n)
}

// position reads a position. It has 64 bits in calls that end in _c and in calls for the external form.
func (a *args) position(i int) int64 {
	p := a.checkedPointer(i)
	if a.largeCounts {
		return *(*int64)(p)
	}
	return int64(*(*int32)(p))
}

func (a *args) setPosition(i int, v int64) {
	if a.largeCounts {
		a.setWord(i, v)
		return
	}
	a.setInt(i, int(v))
}

// packSize implements MPI_Pack_size(incount, datatype, comm, size).
func (a *args) packSize() {
	b, t := a.elementsArg(0, 0, 1, 2)
	a.setCount(3, b.count*t.Size())
}
