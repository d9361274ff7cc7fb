package mpi

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"sync"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TypeOf returns the datatype of T. Package datatype can derive other datatypes from it. A named type, such as
// time.Duration, has the datatype of its underlying type, in this case int64.
func TypeOf[T Element]() *datatype.Type { return predefinedType(reflect.TypeFor[T]()) }

// StructType returns the datatype of T, which must have a fixed layout in memory: a struct or an array that
// contains only numbers that can be message elements, or other such structs and arrays. Bytes between fields,
// and fields named _, are not part of a message. For any other T, the error matches datatype.ErrArgument.
func StructType[T any]() (*datatype.Type, error) { return fixedType(reflect.TypeFor[T]()) }

// fixedType returns the datatype of a Go type that consists of numbers, arrays and structs. Other types, such as slices
// and strings, contain pointers and cannot be transferred.
func fixedType(t reflect.Type) (*datatype.Type, error) {
	switch kind := t.Kind(); {
	case kind == reflect.Array:
		of, err := fixedType(t.Elem())
		if err != nil {
			return nil, err
		}
		return datatype.Contiguous(int64(t.Len()), of)
	case kind == reflect.Struct:
		return structType(t)
	case isNumber(kind):
		return numberTypes[kind], nil
	}
	return nil, fmt.Errorf("%w: a %v has no fixed layout: use numbers of a fixed size, such as int32 and float64, "+
		"and structs and arrays of them",
		datatype.ErrArgument, t)
}

// structType returns the datatype of a struct. Padding and blank fields are not transferred, but count for the extent.
func structType(t reflect.Type) (*datatype.Type, error) {
	var lengths, displs []int64
	var types []*datatype.Type
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		of, err := fixedType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("field %s of %v: %w", f.Name, t, err)
		}
		lengths, displs, types = append(lengths, 1), append(displs, int64(f.Offset)), append(types, of)
	}
	all, err := datatype.Struct(lengths, displs, types)
	if err != nil {
		return nil, err
	}
	return datatype.Resized(all, 0, int64(t.Size()))
}

// fixedTypes caches, for each type, whether fixedType accepts it.
var fixedTypes sync.Map

// isFixed reports whether every bit pattern is a valid T.
func isFixed[T any]() bool {
	t := reflect.TypeFor[T]()
	if isNumber(t.Kind()) {
		return true
	}
	known, ok := fixedTypes.Load(t)
	if !ok {
		_, err := fixedType(t)
		known, _ = fixedTypes.LoadOrStore(t, err == nil)
	}
	return known.(bool)
}

// Buffer describes the memory of a message: a number of elements of a datatype. The methods of Comm transfer buffers,
// as the functions of this package transfer slices. Non-contiguous elements are copied.
//
// A Buffer has four words, because the compiler passes at most four in registers, and each copy in memory takes
// some nanoseconds.
type Buffer struct {
	// base is the address of displacement 0 of the first element.
	base     unsafe.Pointer
	count    int64
	datatype *datatype.Type
	// length is the number of bytes at base, or one of the constants below.
	length int64
}

const (
	unknownLength = -1
	inPlaceLength = -2 // of InPlace
)

// InPlace as a buffer means that the rank's contribution to a collective call is in the memory for its result
// (MPI_IN_PLACE). It replaces the send buffer of all calls except Scatter, where root passes it as the receive buffer.
var InPlace = Buffer{length: inPlaceLength}

func (b *Buffer) inPlace() bool { return b.length == inPlaceLength }

// Typed returns a buffer of count elements of a datatype in a slice. Displacement 0 is the beginning of the
// slice. Calls return ErrBuffer if elements are outside the slice, and ErrType if T has no fixed layout (see
// StructType).
func Typed[T any](buf []T, count int, t *datatype.Type) Buffer {
	if !isFixed[T]() {
		t = nil
	}
	return Buffer{base: unsafe.Pointer(unsafe.SliceData(buf)), count: int64(count), datatype: t,
		length: int64(len(asBytes(buf)))}
}

// bufferOf returns the buffer of a slice.
func bufferOf[T Element](buf []T) Buffer {
	return Buffer{base: unsafe.Pointer(unsafe.SliceData(buf)), count: int64(len(buf)), datatype: TypeOf[T](),
		length: int64(len(asBytes(buf)))}
}

// CountOf returns the number of elements of a datatype in a message, or Undefined if the length is unknown or is not a
// multiple of the element size (MPI_Get_count).
func CountOf(status Status, t *datatype.Type) int {
	switch size := t.Size(); {
	case status.Bytes < 0:
	case size == 0 && status.Bytes == 0:
		return 0
	case size > 0 && status.Bytes%size == 0:
		return int(status.Bytes / size)
	}
	return Undefined
}

// Elements returns the number of basic elements in a message. It returns Undefined if the message ends in the
// middle of an element, or if its length is unknown (MPI_Get_elements).
func Elements(s Status, t *datatype.Type) int {
	if s.Bytes < 0 {
		return Undefined
	}
	n, whole := t.Elements(s.Bytes)
	if !whole {
		return Undefined
	}
	return int(n)
}

// dense is the fast path of contiguous for buffers without gaps. It returns nil if the buffer is empty, if the datatype
// has gaps, or if there is any error.
func (b *Buffer) dense() []byte {
	if b.datatype == nil || !b.datatype.IsDense() || b.count <= 0 || b.base == nil {
		return nil
	}
	if b.length == b.count*b.datatype.Size() && b.length > 0 && b.count <= b.length {
		return unsafe.Slice((*byte)(b.base), b.length)
	}
	high, n := bits.Mul64(uint64(b.count), uint64(b.datatype.Size()))
	if high != 0 || n > math.MaxInt || b.length >= 0 && int64(n) > b.length {
		return nil
	}
	return unsafe.Slice((*byte)(b.base), n)
}

// contiguous returns the memory of a buffer's elements if they are contiguous.
func (b *Buffer) contiguous(k *call) (bytes []byte, ok bool, err error) {
	switch {
	case b.datatype == nil:
		return nil, false, k.failf(ErrType, "there is no datatype")
	case b.count < 0:
		return nil, false, k.failf(ErrCount, "%d elements", b.count)
	}
	begin, end, err := b.datatype.Span(b.count)
	if err != nil {
		return nil, false, k.error(ErrCount, err)
	}
	if b.length >= 0 && (begin < 0 || end > b.length) {
		return nil, false, k.failf(ErrBuffer, "%d elements of the datatype use bytes %d to %d of the buffer, "+
			"which has %d", b.count, begin, end, b.length)
	}
	if b.base == nil && begin <= 0 && end > 0 {
		return nil, false, k.failf(ErrBuffer, "%d elements of %d bytes at address 0", b.count, b.datatype.Size())
	}
	offset, ok := b.datatype.Contiguous(b.count)
	if !ok {
		return nil, false, nil
	}
	return b.bytes(offset, b.count*b.datatype.Size()), true, nil
}

// bytes returns a part of the buffer's memory.
func (b *Buffer) bytes(offset, n int64) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(b.base, offset)), n)
}

// packedBuffer holds a message of non-contiguous elements, and a packed copy of them.
type packedBuffer struct {
	Buffer
	packed []byte
}

// pack copies the elements into the packed copy.
func (s *packedBuffer) pack() { s.datatype.Pack(s.packed, s.base, s.count, 0) }

// setBuffer sets the call's message to the buffer.
func (k *call) setBuffer(buffer *Buffer) error {
	if k.bytes = buffer.dense(); k.bytes != nil {
		k.datatype, k.anyDatatype = wireDatatype(buffer.datatype)
		return nil
	}
	bytes, ok, err := buffer.contiguous(k)
	if err != nil {
		return err
	}
	k.datatype, k.anyDatatype = wireDatatype(buffer.datatype)
	if ok {
		k.bytes = bytes
		return nil
	}
	if err := k.check(); err != nil { // k.comm may be nil
		return err
	}
	s, _ := k.comm.proc.packedBuffers.Get().(*packedBuffer)
	if s == nil {
		s = new(packedBuffer)
	}
	s.Buffer, s.packed = *buffer, growBytes(s.packed, int(buffer.count*buffer.datatype.Size()))
	if k.isSend() {
		s.pack()
	}
	k.packedBuf, k.bytes = s, s.packed
	return nil
}

// growBytes returns a slice of n bytes. It reuses memory if its capacity suffices.
func growBytes(memory []byte, n int) []byte {
	if cap(memory) < n {
		return make([]byte, n)
	}
	return memory[:n]
}

// wireDatatype returns the datatype that represents t on the wire. It also returns whether a receive of t accepts any
// datatype.
func wireDatatype(t *datatype.Type) (d protocol.Datatype, any bool) {
	switch t.Element() {
	case op.Float32:
		return protocol.Float, false
	case op.Int8, op.Uint8:
		return protocol.Int, true
	}
	return protocol.Int, false
}

// unpack unpacks the first n bytes of a received message.
func (k *call) unpack(n int64) {
	if s := k.packedBuf; s != nil && n > 0 {
		s.datatype.Unpack(s.base, s.count, s.packed[:min(n, int64(len(s.packed)))], 0)
	}
}

// releaseCopy recycles the packed copy. The device must no longer be using it.
func (k *call) releaseCopy() {
	if k.packedBuf != nil {
		k.recycleCopy()
	}
}

func (k *call) recycleCopy() {
	s := k.packedBuf
	k.packedBuf, s.Buffer = nil, Buffer{}
	k.comm.proc.packedBuffers.Put(s)
}
