package mpi

import (
	"encoding/binary"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Number is the element type of messages: numbers of a fixed size, which are the
// same on every machine. int and uint do not.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 |
		~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// view returns the bytes of buf without copying them. They are in the machine's
// order, which New has checked to be that of the wire.
func view[T any](buf []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)*int(unsafe.Sizeof(zero)))
}

// datatypeOf is what T is called on the wire. Of the numbers of four bytes, one
// half is not 0 only as a float32; a type switch would miss named types.
func datatypeOf[T Number]() protocol.Datatype {
	var zero T
	if unsafe.Sizeof(zero) == 4 && T(1)/T(2) != 0 {
		return protocol.Float
	}
	return protocol.Int
}

// takesAny reports whether a []T receives numbers of either datatype.
func takesAny[T Number]() bool {
	var zero T
	return unsafe.Sizeof(zero) == 1
}

// littleEndian reports whether this machine's numbers are in the wire's order.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }
