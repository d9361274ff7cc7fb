package capi

import (
	"sync"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// These calls select a datatype for Fortran's numbers by precision and range. The datatypes correspond to gfortran's
// kinds.
var _ = add(map[string]implementation{
	"Type_create_f90_integer": func(a *args) { a.fortranType(integerKinds, "F90_INTEGER", a.int(0)) },
	"Type_create_f90_real":    func(a *args) { a.fortranType(realKinds, "F90_REAL", a.int(0), a.int(1)) },
	"Type_create_f90_complex": func(a *args) { a.fortranType(complexKinds, "F90_COMPLEX", a.int(0), a.int(1)) },
})

// numberKind is a kind of number, described by its decimal digits (0 for integers) and its largest power of
// ten.
type numberKind struct {
	digits, power int
	name          string
}

var (
	integerKinds = []numberKind{{0, 2, "INTEGER1"}, {0, 4, "INTEGER2"}, {0, 9, "INTEGER4"}, {0, 18, "INTEGER8"},
		{0, 38, "INTEGER16"}}
	realKinds    = []numberKind{{6, 37, "REAL4"}, {15, 307, "REAL8"}, {18, 4931, "LONG_DOUBLE"}, {33, 4931, "REAL16"}}
	complexKinds = []numberKind{{6, 37, "COMPLEX8"}, {15, 307, "COMPLEX16"}, {18, 4931, "C_LONG_DOUBLE_COMPLEX"},
		{33, 4931, "COMPLEX32"}}
)

// fortranNumbers holds the datatypes requested so far, because the same precision and range must always give
// the same predefined datatype.
type fortranNumbers struct {
	mu    sync.Mutex
	types map[numberKind]*dtype
}

// handle returns the handle of the datatype that was made from the datatype of. It reports whether there is such a
// datatype.
func (n *fortranNumbers) handle(of *datatype.Type) (uint64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.types {
		if t.Type == of {
			return t.handle, true
		}
	}
	return 0, false
}

// fortranType returns the first kind that has at least the wanted number of digits and power of ten. MPI_UNDEFINED
// accepts any value.
func (a *args) fortranType(kinds []numberKind, combiner string, wanted ...int) {
	last := len(wanted) - 1
	least := numberKind{power: wanted[last], name: combiner}
	if last > 0 {
		least.digits = wanted[0]
	}
	enough := func(have, want int) bool { return want == a.lib.abi.undefined || want <= have }
	for _, k := range kinds {
		if !enough(k.digits, least.digits) || !enough(k.power, least.power) {
			continue
		}
		of := a.lib.types.get(a.lib.abi.handle(kindDatatype, a.lib.abi.constants[k.name]))
		if of == nil {
			break // the ABI has no datatype of this size
		}
		numbers := &a.lib.fortranTypes
		numbers.mu.Lock()
		defer numbers.mu.Unlock()
		t := numbers.types[least]
		if t == nil {
			made, handle, err := a.lib.types.alloc()
			check(err)
			made.Type, made.handle, made.predefined, made.committed = datatype.Dup(of.Type), handle, of.predefined, true
			made.combiner, made.integers = "COMBINER_"+combiner, wanted
			if t = made; numbers.types == nil {
				numbers.types = map[numberKind]*dtype{}
			}
			numbers.types[least] = t
		}
		a.setHandle(last+1, t.handle)
		return
	}
	panic(failf(mpi.ErrArg, "MPI_%s: no kind of numbers has the precision and range of %v", a.name, wanted))
}
