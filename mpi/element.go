package mpi

import (
	"reflect"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Element is the element type of collective buffers: a number, or a value with an index. All ranks of a call use the
// same type.
type Element interface {
	Number | Int16Loc | Int32Loc | Int64Loc | Float32Loc | Float64Loc
}

// Int16Loc is an element of MaxLoc and MinLoc: a value and its index, laid out as in C. It corresponds to
// MPI_SHORT_INT. The types below do the same for other values.
type Int16Loc struct {
	Value int16
	Index int32
}

// Int32Loc corresponds to MPI_2INT.
type Int32Loc struct {
	Value, Index int32
}

// Int64Loc corresponds to MPI_LONG_INT.
type Int64Loc struct {
	Value int64
	Index int32
	_     int32
}

// Float32Loc corresponds to MPI_FLOAT_INT.
type Float32Loc struct {
	Value float32
	Index int32
}

// Float64Loc corresponds to MPI_DOUBLE_INT.
type Float64Loc struct {
	Value float64
	Index int32
	_     int32
}

// element describes the elements of a call's buffers.
type element struct {
	typ op.Type
	// size is the size of an element in bytes.
	size int
	// datatype and anyDatatype have the same meaning as in mpe.Operation.
	datatype    protocol.Datatype
	anyDatatype bool
}

// numberTypes holds the predefined datatypes of numbers, indexed by kind.
var numberTypes = [...]*datatype.Type{
	reflect.Int8: basicType[int8](op.Int8), reflect.Int16: basicType[int16](op.Int16),
	reflect.Int32: basicType[int32](op.Int32), reflect.Int64: basicType[int64](op.Int64),
	reflect.Uint8: basicType[uint8](op.Uint8), reflect.Uint16: basicType[uint16](op.Uint16),
	reflect.Uint32: basicType[uint32](op.Uint32), reflect.Uint64: basicType[uint64](op.Uint64),
	reflect.Float32: basicType[float32](op.Float32), reflect.Float64: basicType[float64](op.Float64),
	reflect.Complex64: basicType[complex64](op.Complex64), reflect.Complex128: basicType[complex128](op.Complex128),
}

// Predefined datatypes of values with an index.
var (
	int16Loc   = basicType[Int16Loc](op.Int16Loc)
	int32Loc   = basicType[Int32Loc](op.Int32Loc)
	int64Loc   = basicType[Int64Loc](op.Int64Loc)
	float32Loc = basicType[Float32Loc](op.Float32Loc)
	float64Loc = basicType[Float64Loc](op.Float64Loc)
)

func basicType[T Element](element op.Type) *datatype.Type {
	t := reflect.TypeFor[T]()
	return datatype.Basic(t.String(), int64(t.Size()), int64(t.Align()), element)
}

// isNumber reports whether values of kind k can be elements of messages.
func isNumber(k reflect.Kind) bool { return int(k) < len(numberTypes) && numberTypes[k] != nil }

// predefinedType returns the datatype of an Element.
func predefinedType(t reflect.Type) *datatype.Type {
	if k := t.Kind(); k != reflect.Struct {
		return numberTypes[k]
	}
	switch t {
	case reflect.TypeFor[Int16Loc]():
		return int16Loc
	case reflect.TypeFor[Int32Loc]():
		return int32Loc
	case reflect.TypeFor[Int64Loc]():
		return int64Loc
	case reflect.TypeFor[Float32Loc]():
		return float32Loc
	}
	return float64Loc // Float64Loc is the only type remaining
}

// elementOf returns the element for the datatype t, or for other if t is nil.
func elementOf(t, other *datatype.Type) element {
	if t == nil {
		t = other
	}
	e := element{size: 1, datatype: protocol.Int}
	if t != nil {
		e.typ = t.Element()
		e.size = max(e.typ.Size(), 1)
		e.datatype, e.anyDatatype = wireDatatype(t)
	}
	return e
}
