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

// dtype is a datatype, and what only C programs have of it.
type dtype struct {
	*datatype.Type
	handle uint64
	// name is what MPI_Type_get_name returns, which the program may change; predefined is that of the ABI's datatype that this is or
	// was duplicated from, or empty.
	name, predefined string
	// combiner and integers are what MPI_Type_get_envelope and contents say of a predefined datatype that has such.
	combiner string
	integers []int
	// combined is what a predefined operation sees as its elements, if that is something else: pairs whose end is padded.
	combined   *datatype.Type
	committed  bool
	attributes caching.Attributes[object]
}

// bytesOf is how many bytes n basic elements of the datatype have.
func (t *dtype) bytesOf(n int64) int64 {
	per, _ := t.Elements(t.Size())
	if per == 0 {
		return 0
	}
	bytes := n / per * t.Size()
	// The rest is a part of one element: the shortest one that has so many.
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
	"Type_size":            (*args).typeSize,
	"Type_size_x":          func(a *args) error { a.wide = true; return a.typeSize() },
	"Type_get_extent":      func(a *args) error { return a.typeBounds((*datatype.Type).Bounds) },
	"Type_get_extent_x":    func(a *args) error { return a.typeBounds((*datatype.Type).Bounds) },
	"Type_get_true_extent": func(a *args) error { return a.typeBounds((*datatype.Type).TrueBounds) },
	"Type_get_true_extent_x": func(a *args) error {
		return a.typeBounds((*datatype.Type).TrueBounds)
	},
	"Type_extent":   func(a *args) error { return a.typeBound(func(_, extent int64) int64 { return extent }) },
	"Type_lb":       func(a *args) error { return a.typeBound(func(lb, _ int64) int64 { return lb }) },
	"Type_ub":       func(a *args) error { return a.typeBound(func(lb, extent int64) int64 { return lb + extent }) },
	"Type_commit":   (*args).typeCommit,
	"Type_free":     (*args).typeFree,
	"Type_dup":      (*args).typeDup,
	"Type_set_name": (*args).typeSetName,
	"Type_get_name": (*args).typeGetName,

	"Type_contiguous": func(a *args) error {
		return a.derive(1, 2, func(t *datatype.Type) (*datatype.Type, error) { return datatype.Contiguous(a.count(0), t) })
	},
	"Type_vector": func(a *args) error {
		return a.derive(3, 4, func(t *datatype.Type) (*datatype.Type, error) {
			return datatype.Vector(a.count(0), a.count(1), a.count(2), t)
		})
	},
	"Type_create_hvector": (*args).hvector,
	"Type_hvector":        (*args).hvector,
	"Type_indexed": func(a *args) error {
		lengths, displs, err := a.lists(a.integers)
		if err != nil {
			return err
		}
		return a.derive(3, 4, func(t *datatype.Type) (*datatype.Type, error) { return datatype.Indexed(lengths, displs, t) })
	},
	"Type_create_hindexed": (*args).hindexed,
	"Type_hindexed":        (*args).hindexed,
	"Type_create_indexed_block": func(a *args) error {
		displs, err := a.integers(2, a.elements())
		if err != nil {
			return err
		}
		return a.derive(3, 4, func(t *datatype.Type) (*datatype.Type, error) {
			return datatype.IndexedBlock(a.count(1), wideOf(displs), t)
		})
	},
	"Type_create_hindexed_block": func(a *args) error {
		displs, err := a.addresses(2, a.elements())
		if err != nil {
			return err
		}
		return a.derive(3, 4, func(t *datatype.Type) (*datatype.Type, error) {
			return datatype.HindexedBlock(a.count(1), wideOf(displs), t)
		})
	},
	"Type_create_struct": (*args).structure,
	"Type_struct":        (*args).structure,
	"Type_create_resized": func(a *args) error {
		return a.derive(0, 3, func(t *datatype.Type) (*datatype.Type, error) { return datatype.Resized(t, a.count(1), a.count(2)) })
	},
	"Type_create_subarray": (*args).subarray,
	"Type_create_darray":   (*args).darray,

	"Type_get_envelope": (*args).envelope,
	"Type_get_contents": (*args).contents,
	"Type_match_size":   (*args).matchSize,

	"Pack":               (*args).pack,
	"Unpack":             (*args).unpack,
	"Pack_size":          (*args).packSize,
	"Pack_external":      (*args).packExternal,
	"Unpack_external":    (*args).unpackExternal,
	"Pack_external_size": (*args).packExternalSize,
})

// basics are the predefined datatypes of the ABIs: their length and alignment in bytes, and what reductions call them.
var basics = []struct {
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

// pairs are those whose elements have padding: a value and an int.
var pairs = []struct {
	name        string
	value, size int64 // of the value, and of both with padding
	element     op.Type
}{
	{"DOUBLE_INT", 8, 16, op.Float64Loc}, {"LONG_INT", 8, 16, op.Int64Loc}, {"SHORT_INT", 2, 8, op.Int16Loc}, {"LONG_DOUBLE_INT", 16, 32, 0},
}

func (l *Library) nameDatatypes() {
	l.bytes, l.named = datatype.Basic("bytes", 1, 1, op.Uint8), map[*datatype.Type]uint64{}
	for _, b := range basics {
		for _, name := range strings.Fields(b.names) {
			l.nameDatatype(name, datatype.Basic(name, b.size, b.align, b.element), nil)
		}
	}
	for _, p := range pairs {
		t, err := datatype.Pair(p.name, p.value, p.size)
		if err != nil {
			panic(err) // they are what they are
		}
		l.nameDatatype(p.name, t, datatype.Basic(p.name, p.size, min(p.value, 16), p.element))
	}
}

func (l *Library) nameDatatype(name string, t, combined *datatype.Type) {
	v, ok := l.abi.constants[name]
	if !ok || l.abi.handle(kindDatatype, v) == l.abi.null[kindDatatype] {
		return
	}
	h := l.abi.handle(kindDatatype, v)
	if l.types.get(h) == nil { // else it has another name already
		l.named[t] = h
		l.types.name(h, &dtype{Type: t, handle: h, name: "MPI_" + name, predefined: name, combined: combined, committed: true})
	}
}

// setDatatype gives a datatype a handle.
func (a *args) setDatatype(i int, made *datatype.Type, err error) error {
	if err != nil {
		return &callError{mpi.ErrArg, err.Error()}
	}
	t, handle, err := give(a, a.l.types, i)
	if err != nil {
		return err
	}
	if a.wide {
		made.MarkLarge()
	}
	t.Type, t.handle = made, handle
	return nil
}

// derive makes a datatype of the one of an argument.
func (a *args) derive(of, to int, make func(*datatype.Type) (*datatype.Type, error)) error {
	t, err := a.datatype(of)
	if err != nil {
		return err
	}
	made, err := make(t.Type)
	return a.setDatatype(to, made, err)
}

// elements is how many elements the arrays of a call have: its first argument.
func (a *args) elements() int { return max(int(a.count(0)), 0) }

// lists reads the arrays of arguments 1 and 2, which have as many elements as argument 0 says.
func (a *args) lists(displacements func(i, n int) ([]int, error)) (lengths, displs []int64, err error) {
	if a.count(0) < 0 {
		return nil, nil, errorf(mpi.ErrArg, "the count is %d", a.count(0))
	}
	k, err := a.integers(1, a.elements())
	if err != nil {
		return nil, nil, err
	}
	d, err := displacements(2, a.elements())
	return wideOf(k), wideOf(d), err
}

func (a *args) hvector() error {
	return a.derive(3, 4, func(t *datatype.Type) (*datatype.Type, error) {
		return datatype.Hvector(a.count(0), a.count(1), a.count(2), t)
	})
}

func (a *args) hindexed() error {
	lengths, displs, err := a.lists(a.addresses)
	if err != nil {
		return err
	}
	return a.derive(3, 4, func(t *datatype.Type) (*datatype.Type, error) { return datatype.Hindexed(lengths, displs, t) })
}

func (a *args) structure() error {
	lengths, displs, err := a.lists(a.addresses)
	if err != nil {
		return err
	}
	types, err := a.datatypes(3, a.elements())
	if err != nil {
		return err
	}
	t, err := datatype.Struct(lengths, displs, types)
	return a.setDatatype(4, t, err)
}

// order is MPI_ORDER_C or MPI_ORDER_FORTRAN.
func (a *args) order(i int) (datatype.Order, error) {
	switch int64(a.int(i)) {
	case a.l.abi.constants["ORDER_C"]:
		return datatype.OrderC, nil
	case a.l.abi.constants["ORDER_FORTRAN"]:
		return datatype.OrderFortran, nil
	}
	return 0, errorf(mpi.ErrArg, "the order is %d, and neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", a.int(i))
}

func (a *args) subarray() error {
	n := a.elements()
	var lists [3][]int64
	for i := range lists {
		list, err := a.integers(1+i, n)
		if err != nil {
			return err
		}
		lists[i] = wideOf(list)
	}
	order, err := a.order(4)
	if err != nil {
		return err
	}
	return a.derive(5, 6, func(t *datatype.Type) (*datatype.Type, error) {
		return datatype.Subarray(lists[0], lists[1], lists[2], order, t)
	})
}

func (a *args) darray() error {
	n := max(a.int(2), 0)
	sizes, err := a.integers(3, n)
	if err != nil {
		return err
	}
	var lists [3][]int
	for i := range lists {
		if lists[i], err = a.ints(4+i, n); err != nil {
			return err
		}
	}
	order, err := a.order(7)
	if err != nil {
		return err
	}
	c := a.l.abi.constants
	g := datatype.Grid{Ranks: int64(a.int(0)), Rank: int64(a.int(1)), Sizes: wideOf(sizes), Processes: wideOf(lists[2]), Order: order}
	for i, how := range lists[0] {
		d := datatype.Distribution(-1)
		switch int64(how) {
		case c["DISTRIBUTE_BLOCK"]:
			d = datatype.Block
		case c["DISTRIBUTE_CYCLIC"]:
			d = datatype.Cyclic
		case c["DISTRIBUTE_NONE"]:
			d = datatype.None
		}
		g.Distributions = append(g.Distributions, d)
		argument := int64(lists[1][i])
		if argument == c["DISTRIBUTE_DFLT_DARG"] {
			argument = datatype.DefaultArgument
		}
		g.Arguments = append(g.Arguments, argument)
	}
	return a.derive(8, 9, func(t *datatype.Type) (*datatype.Type, error) { return datatype.Darray(&g, t) })
}

func (a *args) typeSize() error {
	t, err := a.datatype(0)
	if err != nil {
		return err
	}
	return a.setCount(1, t.Size())
}

// typeBound writes one of the bounds of MPI-1.
func (a *args) typeBound(of func(lb, extent int64) int64) error {
	t, err := a.datatype(0)
	if err != nil {
		return err
	}
	return a.setWord(1, of(t.Bounds()))
}

func (a *args) typeBounds(of func(*datatype.Type) (lb, extent int64)) error {
	t, err := a.datatype(0)
	if err != nil {
		return err
	}
	lb, extent := of(t.Type)
	if err := a.setWord(1, lb); err != nil {
		return err
	}
	return a.setWord(2, extent)
}

// typeAt is a datatype whose handle is in memory.
func (a *args) typeAt(i int) (*dtype, unsafe.Pointer, error) {
	p, err := a.where(i)
	if err != nil {
		return nil, nil, err
	}
	t, err := a.l.datatype(a.l.handleAt(p, 0))
	return t, p, err
}

func (a *args) typeCommit() error {
	t, _, err := a.typeAt(0)
	if err == nil {
		t.committed = true
	}
	return err
}

func (a *args) typeFree() error {
	t, p, err := a.typeAt(0)
	if err != nil {
		return err
	}
	if a.l.types.slot(t.handle) == nil || t.combiner != "" {
		return errorf(mpi.ErrType, "%s is predefined and cannot be freed", cmp.Or(t.name, "a datatype of MPI_Type_create_f90_integer, real or complex"))
	}
	if err := t.attributes.Clear(t); err != nil {
		return err
	}
	a.l.types.remove(t.handle)
	a.l.setHandleAt(p, 0, a.l.abi.null[kindDatatype])
	return nil
}

func (a *args) typeDup() error {
	t, err := a.datatype(0)
	if err != nil {
		return err
	}
	d, handle, err := give(a, a.l.types, 1)
	if err != nil {
		return err
	}
	d.Type, d.handle, d.name, d.predefined, d.combined, d.committed = datatype.Dup(t.Type), handle, "", t.predefined, t.combined, t.committed
	if err := t.attributes.CopyTo(&d.attributes, t); err != nil {
		revoke(a, a.l.types, 1, handle)
		return err
	}
	return nil
}

func (a *args) typeSetName() error {
	t, err := a.datatype(0)
	if err != nil {
		return err
	}
	t.name, err = a.text(1)
	return err
}

func (a *args) typeGetName() error {
	t, err := a.datatype(0)
	if err != nil {
		return err
	}
	n, err := a.setText(1, t.name, int(a.l.abi.constants["MAX_OBJECT_NAME"]))
	if err != nil {
		return err
	}
	return a.setInt(2, n)
}

// pack: inbuf, incount, datatype, outbuf, outsize, position, comm.
func (a *args) pack() error {
	b, t, err := a.packed(0, 1, 2, 6)
	if err != nil {
		return err
	}
	return a.copyPacked(b, t, 3, 4, 5, true)
}

// unpack: inbuf, insize, position, outbuf, outcount, datatype, comm.
func (a *args) unpack() error {
	b, t, err := a.packed(3, 4, 5, 6)
	if err != nil {
		return err
	}
	return a.copyPacked(b, t, 0, 1, 2, false)
}

type elementsAt struct {
	at    unsafe.Pointer
	count int64
}

// packed decodes elements in memory, and a communicator unless that is −1.
func (a *args) packed(buf, count, of, comm int) (elementsAt, *dtype, error) {
	if comm >= 0 {
		if _, err := a.communicator(comm); err != nil {
			return elementsAt{}, nil, err
		}
	}
	t, err := a.datatype(of)
	if err != nil {
		return elementsAt{}, nil, err
	}
	n := a.count(count)
	if n < 0 {
		return elementsAt{}, nil, errorf(mpi.ErrCount, "the count is %d", n)
	}
	if _, _, err := t.Span(n); err != nil {
		return elementsAt{}, nil, errorf(mpi.ErrCount, "%v", err)
	}
	return elementsAt{a.pointer(buf), n}, t, nil
}

// copyPacked copies between elements and a buffer, of so many bytes, at a position that moves on.
func (a *args) copyPacked(b elementsAt, t *dtype, buf, size, position int, pack bool) error {
	at, err := a.position(position)
	if err != nil {
		return err
	}
	n, room := b.count*t.Size(), a.count(size)
	if at < 0 || room-at < n {
		return errorf(mpi.ErrTruncate, "%d elements have %d bytes packed, and there are %d of %d from position %d on", b.count, n, max(room-at, 0), room, at)
	}
	if n == 0 {
		return nil
	}
	p, err := a.where(buf)
	if err != nil {
		return err
	}
	bytes := unsafe.Slice((*byte)(unsafe.Add(p, at)), n)
	if pack {
		t.Pack(bytes, b.at, b.count, 0)
	} else {
		t.Unpack(b.at, b.count, bytes, 0)
	}
	return a.setPosition(position, at+n)
}

// position reads a position: 64 bits in the calls that end with _c and in those of the external form.
func (a *args) position(i int) (int64, error) {
	p, err := a.where(i)
	if err != nil {
		return 0, err
	}
	if a.wide {
		return *(*int64)(p), nil
	}
	return int64(*(*int32)(p)), nil
}

func (a *args) setPosition(i int, v int64) error {
	if a.wide {
		return a.setWord(i, v)
	}
	return a.setInt(i, int(v))
}

// packSize: incount, datatype, comm, size.
func (a *args) packSize() error {
	b, t, err := a.packed(0, 0, 1, 2)
	if err != nil {
		return err
	}
	return a.setCount(3, b.count*t.Size())
}
