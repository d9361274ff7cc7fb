package mpi

import (
	"reflect"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
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

var numberTypes = [...]op.Type{
	reflect.Int8: op.Int8, reflect.Int16: op.Int16, reflect.Int32: op.Int32, reflect.Int64: op.Int64,
	reflect.Uint8: op.Uint8, reflect.Uint16: op.Uint16, reflect.Uint32: op.Uint32, reflect.Uint64: op.Uint64,
	reflect.Float32: op.Float32, reflect.Float64: op.Float64, reflect.Complex64: op.Complex64, reflect.Complex128: op.Complex128,
}

// isNumber reports whether values of a kind are elements of messages.
func isNumber(k reflect.Kind) bool { return int(k) < len(numberTypes) && numberTypes[k] != 0 }

// typeOf is what reductions call an element.
func typeOf(t reflect.Type) op.Type {
	if k := t.Kind(); k != reflect.Struct {
		return numberTypes[k]
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

// typedBy is the element of a datatype, or of another one if that is nil.
func typedBy(t, other *datatype.Type) element {
	if t == nil {
		t = other
	}
	e := element{size: 1, datatype: protocol.Int}
	if t != nil {
		e.typ = t.Element()
		e.size = max(e.typ.Size(), 1)
		e.datatype, e.any = onWire(t)
	}
	return e
}
