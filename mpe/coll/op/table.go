package op

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Op is a reduction operation.
type Op uint8

const (
	Sum Op = iota + 1
	Prod
	Max
	Min
	// LAnd, LOr and LXor are logical operations, BAnd, BOr and BXor bitwise operations.
	LAnd
	LOr
	LXor
	BAnd
	BOr
	BXor
	MaxLoc
	MinLoc
)

var opNames = [...]string{"?", "SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR", "MAXLOC",
	"MINLOC"}

func (o Op) String() string {
	if int(o) >= len(opNames) {
		o = 0
	}
	return opNames[o]
}

// Type is the type of an element.
type Type uint8

const (
	Int8 Type = iota + 1
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Complex64
	Complex128
	// The types for MAXLOC and MINLOC consist of a value and an int32 index in C's layout: the offset of the index is a
	// multiple of 4, and the size of the pair a multiple of the value's size.
	Int16Loc   // MPI_SHORT_INT, 8 bytes
	Int32Loc   // MPI_2INT, 8 bytes
	Int64Loc   // MPI_LONG_INT, 16 bytes
	Float32Loc // MPI_FLOAT_INT, 8 bytes
	Float64Loc // MPI_DOUBLE_INT, 16 bytes
)

var types = [...]struct {
	name string
	size int
}{
	{"?", 0}, {"int8", 1}, {"int16", 2}, {"int32", 4}, {"int64", 8}, {"uint8", 1}, {"uint16", 2}, {"uint32", 4},
	{"uint64", 8},
	{"float32", 4}, {"float64", 8}, {"complex64", 8}, {"complex128", 16}, {"int16 and index", 8},
	{"int32 and index", 8},
	{"int64 and index", 16}, {"float32 and index", 8}, {"float64 and index", 16},
}

func (t Type) String() string {
	if int(t) >= len(types) {
		t = 0
	}
	return types[t].name
}

// Size returns the size of an element in bytes, or 0 for an unknown type.
func (t Type) Size() int {
	if int(t) >= len(types) {
		return 0
	}
	return types[t].size
}

// Func combines two vectors element by element: result = left ∘ right. It leaves the bytes of result beyond the
// shortest vector, or beyond the last whole element, unchanged. Any two of the vectors must be identical or must not
// overlap.
type Func func(result, left, right []byte)

// ErrUndefined is returned when MPI does not define the operation for the type.
var ErrUndefined = errors.New("operation is not defined for the type")

// Lookup returns the function that applies an operation to elements of a type. The error matches ErrUndefined. All
// functions are commutative and, except for the rounding of floats, associative.
func Lookup(o Op, t Type) (Func, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, fmt.Errorf("%v of %v: %w on a machine whose number format differs from the wire format", o, t,
			ErrUndefined)
	}
	if o > MinLoc || t > Float64Loc || functions[t][o] == nil {
		return nil, fmt.Errorf("%v of %v: %w", o, t, ErrUndefined)
	}
	return functions[t][o], nil
}

// functions holds the function of each type and operation, or nil. They are created once, because every reduction looks
// up its function.
var functions = func() (all [Float64Loc + 1][MinLoc + 1]Func) {
	for o := Sum; o <= MinLoc; o++ {
		for t := Int8; t <= Float64Loc; t++ {
			all[t][o] = loopFunc(o, t)
			for _, table := range supportedKernels() {
				if k := table.lookup(o, t); k != nil {
					all[t][o] = k.combine(all[t][o], t.Size())
					break
				}
			}
		}
	}
	return all
}()

// loopFunc returns the function that is written in Go, or nil if MPI does not define the operation for the type.
func loopFunc(o Op, t Type) Func {
	switch t {
	case Int8:
		return integerFunc[int8](o)
	case Int16:
		return integerFunc[int16](o)
	case Int32:
		return integerFunc[int32](o)
	case Int64:
		return integerFunc[int64](o)
	case Uint8:
		return integerFunc[uint8](o)
	case Uint16:
		return integerFunc[uint16](o)
	case Uint32:
		return integerFunc[uint32](o)
	case Uint64:
		return integerFunc[uint64](o)
	case Float32:
		return orderedFunc[float32](o)
	case Float64:
		return orderedFunc[float64](o)
	case Complex64:
		return numberFunc[complex64](o)
	case Complex128:
		return numberFunc[complex128](o)
	case Int16Loc:
		return locationFunc[int16](o)
	case Int32Loc:
		return locationFunc[int32](o)
	case Int64Loc:
		return locationFunc[int64](o)
	case Float32Loc:
		return locationFunc[float32](o)
	case Float64Loc:
		return locationFunc[float64](o)
	}
	return nil
}
