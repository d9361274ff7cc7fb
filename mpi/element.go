package mpi

import (
	"reflect"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Element is what the buffers of collectives are made of: numbers, and values with an
// index. All ranks of a call give the same.
type Element interface {
	Number | Int16Loc | Int32Loc | Int64Loc | Float32Loc | Float64Loc
}

// The elements of MaxLoc and MinLoc: a value and an index that belongs to it, laid out as
// C does. Int16Loc is MPI_SHORT_INT.
type Int16Loc struct {
	Value int16
	Index int32
}

// Int32Loc is MPI_2INT.
type Int32Loc struct {
	Value, Index int32
}

// Int64Loc is MPI_LONG_INT.
type Int64Loc struct {
	Value int64
	Index int32
	_     int32
}

// Float32Loc is MPI_FLOAT_INT.
type Float32Loc struct {
	Value float32
	Index int32
}

// Float64Loc is MPI_DOUBLE_INT.
type Float64Loc struct {
	Value float64
	Index int32
	_     int32
}

// element describes a type of elements.
type element struct {
	of  reflect.Type
	typ op.Type
	// size is in bytes.
	size int
	// datatype and any are as in mpe.Operation.
	datatype protocol.Datatype
	any      bool
}

func elementOf[T Element]() element {
	var zero T
	t := reflect.TypeFor[T]()
	e := element{of: t, typ: typeOf(t), size: int(unsafe.Sizeof(zero)), datatype: protocol.Int, any: unsafe.Sizeof(zero) == 1}
	if e.typ == op.Float32 {
		e.datatype = protocol.Float
	}
	return e
}

// typeOf is what reductions call an element.
func typeOf(t reflect.Type) op.Type {
	switch t.Kind() {
	case reflect.Int8:
		return op.Int8
	case reflect.Int16:
		return op.Int16
	case reflect.Int32:
		return op.Int32
	case reflect.Int64:
		return op.Int64
	case reflect.Uint8:
		return op.Uint8
	case reflect.Uint16:
		return op.Uint16
	case reflect.Uint32:
		return op.Uint32
	case reflect.Uint64:
		return op.Uint64
	case reflect.Float32:
		return op.Float32
	case reflect.Float64:
		return op.Float64
	case reflect.Complex64:
		return op.Complex64
	case reflect.Complex128:
		return op.Complex128
	}
	switch t {
	case reflect.TypeFor[Int16Loc]():
		return op.Int16Loc
	case reflect.TypeFor[Int32Loc]():
		return op.Int32Loc
	case reflect.TypeFor[Int64Loc]():
		return op.Int64Loc
	case reflect.TypeFor[Float32Loc]():
		return op.Float32Loc
	}
	return op.Float64Loc // there are no others
}
