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

// Func combines two vectors element by element: inout = in ∘ inout. Bytes beyond the shorter vector, or beyond the last
// whole element, remain unchanged. The two vectors must be identical or must not overlap.
type Func func(inout, in []byte)

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
		for t, f := range map[Type]Func{
			Int8: integerFunc[int8](o), Int16: integerFunc[int16](o), Int32: integerFunc[int32](o), Int64: integerFunc[int64](o),
			Uint8: integerFunc[uint8](o), Uint16: integerFunc[uint16](o), Uint32: integerFunc[uint32](o),
			Uint64:  integerFunc[uint64](o),
			Float32: orderedFunc[float32](o), Float64: orderedFunc[float64](o),
			Complex64: numberFunc[complex64](o), Complex128: numberFunc[complex128](o),
			Int16Loc: locationFunc[int16](o), Int32Loc: locationFunc[int32](o), Int64Loc: locationFunc[int64](o),
			Float32Loc: locationFunc[float32](o), Float64Loc: locationFunc[float64](o),
		} {
			all[t][o] = f
		}
	}
	return all
}()
