package mpi

import (
	"encoding/binary"
	"reflect"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Number is the element type of messages. It excludes int and uint, whose size depends on the machine.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 |
		~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// asBytes returns the bytes of buf without copying them. They are in the machine's byte order, which is also the
// wire's; New checks that.
func asBytes[T any](buf []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)*int(unsafe.Sizeof(zero)))
}

// numberBuffer returns a buffer that describes a message consisting of numbers.
func numberBuffer[T Number](buf []T) Buffer {
	return Buffer{base: unsafe.Pointer(unsafe.SliceData(buf)), count: int64(len(buf)), datatype: wireType[T](),
		length: int64(len(asBytes(buf)))}
}

// wireType returns a datatype equivalent to TypeOf on the wire. The compiler evaluates it at compile time, which saves
// time per message. It distinguishes float32 from the integers of four bytes by dividing 1 by 2, which is 0 for
// integers.
func wireType[T Number]() *datatype.Type {
	var zero T
	switch unsafe.Sizeof(zero) {
	case 1:
		return numberTypes[reflect.Uint8]
	case 2:
		return numberTypes[reflect.Uint16]
	case 4:
		if T(1)/T(2) != 0 {
			return numberTypes[reflect.Float32]
		}
		return numberTypes[reflect.Uint32]
	case 8:
		return numberTypes[reflect.Uint64]
	}
	return numberTypes[reflect.Complex128]
}

// littleEndian reports whether this machine's byte order is the wire's.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }
