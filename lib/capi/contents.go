package capi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

var combinerNames = [...]string{
	datatype.Named: "NAMED", datatype.CombinerDup: "DUP", datatype.CombinerContiguous: "CONTIGUOUS", datatype.CombinerVector: "VECTOR",
	datatype.CombinerHvector: "HVECTOR", datatype.CombinerIndexed: "INDEXED", datatype.CombinerHindexed: "HINDEXED",
	datatype.CombinerIndexedBlock: "INDEXED_BLOCK", datatype.CombinerHindexedBlock: "HINDEXED_BLOCK", datatype.CombinerStruct: "STRUCT",
	datatype.CombinerSubarray: "SUBARRAY", datatype.CombinerDarray: "DARRAY", datatype.CombinerResized: "RESIZED",
}

// envelope: datatype, and where the numbers of integers, addresses and datatypes go, and the combiner.
func (a *args) envelope() error {
	t, err := a.datatype(0)
	if err != nil {
		return err
	}
	if a.wide {
		return errorf(errUnsupported, "MPI_%s is not supported", a.name)
	}
	made := t.Contents()
	if t.combiner != "" {
		made = datatype.Contents{Integers: make([]int64, len(t.integers))}
	}
	combiner := cmp.Or(t.combiner, "COMBINER_"+combinerNames[made.Combiner])
	for i, n := range []int{len(made.Integers), len(made.Addresses), len(made.Types), int(a.l.abi.constants[combiner])} {
		if err := a.setInt(1+i, n); err != nil {
			return err
		}
	}
	return nil
}

// contents: datatype, the most integers, addresses and datatypes, and where they go.
func (a *args) contents() error {
	t, err := a.datatype(0)
	if err != nil {
		return err
	}
	made := t.Contents()
	switch {
	case a.wide:
		return errorf(errUnsupported, "MPI_%s is not supported", a.name)
	case t.combiner != "" && len(t.integers) <= a.int(1):
		return a.setInts(4, t.integers)
	case made.Combiner == datatype.Named:
		return errorf(mpi.ErrType, "%s is predefined and has no contents", t.name)
	case len(made.Integers) > a.int(1) || len(made.Addresses) > a.int(2) || len(made.Types) > a.int(3):
		return errorf(mpi.ErrArg, "the datatype has %d integers, %d addresses and %d datatypes, and there is room for %d, %d and %d",
			len(made.Integers), len(made.Addresses), len(made.Types), a.int(1), a.int(2), a.int(3))
	}
	integers := slices.Clone(made.Integers)
	a.translate(made.Combiner, integers)
	list := make([]int, len(integers))
	for i, v := range integers {
		list[i] = int(v)
	}
	if err := a.setInts(4, list); err != nil {
		return err
	}
	if len(made.Addresses) > 0 {
		p, err := a.where(5)
		if err != nil {
			return err
		}
		for i, v := range made.Addresses {
			a.l.setWordAt(p, i, v)
		}
	}
	if len(made.Types) == 0 {
		return nil
	}
	p, err := a.where(6)
	if err != nil {
		return err
	}
	for i, of := range made.Types {
		handle, known := a.l.named[of]
		if !known {
			handle, known = a.l.numbers.handle(of)
		}
		if !known {
			d, h, err := a.l.types.take() // the program frees it
			if err != nil {
				for k := range i {
					a.l.types.remove(a.l.handleAt(p, k))
				}
				return err
			}
			d.Type, d.handle, handle = of, h, h
		}
		a.l.setHandleAt(p, i, handle)
	}
	return nil
}

// translate turns what a datatype was made of into constants of the ABI.
func (a *args) translate(combiner datatype.Combiner, integers []int64) {
	c := a.l.abi.constants
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
			*d = c[[...]string{datatype.Block: "DISTRIBUTE_BLOCK", datatype.Cyclic: "DISTRIBUTE_CYCLIC", datatype.None: "DISTRIBUTE_NONE"}[*d]]
			if d := &integers[3+2*n+i]; *d == datatype.DefaultArgument {
				*d = c["DISTRIBUTE_DFLT_DARG"]
			}
		}
	}
}

// matchSize: class of types, size, datatype.
func (a *args) matchSize() error {
	var names string
	switch c := a.l.abi.constants; int64(a.int(0)) {
	case c["TYPECLASS_REAL"]:
		names = "FLOAT DOUBLE LONG_DOUBLE"
	case c["TYPECLASS_INTEGER"]:
		names = "SIGNED_CHAR SHORT INT LONG"
	case c["TYPECLASS_COMPLEX"]:
		names = "COMPLEX DOUBLE_COMPLEX C_LONG_DOUBLE_COMPLEX"
	default:
		return errorf(mpi.ErrArg, "%d is no class of types", a.int(0))
	}
	for _, name := range strings.Fields(names) {
		h := a.l.abi.handle(kindDatatype, a.l.abi.constants[name])
		if t := a.l.types.get(h); t != nil && t.Size() == int64(a.int(1)) {
			return a.setHandle(2, h)
		}
	}
	return errorf(mpi.ErrArg, "there is no datatype of %d bytes in the class", a.int(1))
}
