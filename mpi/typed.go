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

// TypeOf returns the datatype of a T, from which package datatype makes others. That of a named type, such as a
// time.Duration, is the datatype of the type that it is made of, int64 there.
func TypeOf[T Element]() *datatype.Type { return predefined(reflect.TypeFor[T]()) }

// StructType is the datatype of a T of a fixed layout, in the memory of Go: a struct or an array of the numbers that
// are elements of messages, and of such structs and arrays. The bytes between fields, and fields named _, are not part
// of a message. The error, for any other T, matches datatype.ErrArgument.
func StructType[T any]() (*datatype.Type, error) { return fixedType(reflect.TypeFor[T]()) }

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
	return nil, fmt.Errorf("%w: a %v has no fixed layout: use numbers of a fixed size, such as int32 and float64, and structs and arrays of them",
		datatype.ErrArgument, t)
}

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

// fixed has whether StructType knows a type that is no number.
var fixed sync.Map

// isFixed reports whether any bytes are a valid T.
func isFixed[T any]() bool {
	t := reflect.TypeFor[T]()
	if isNumber(t.Kind()) {
		return true
	}
	known, ok := fixed.Load(t)
	if !ok {
		_, err := fixedType(t)
		known, _ = fixed.LoadOrStore(t, err == nil)
	}
	return known.(bool)
}

// Buffer is where the elements of a message are: so many elements of a datatype. The methods of Comm
// transfer buffers, as the functions of this package transfer slices. What is not contiguous is copied.
//
// It has four words: the compiler passes no more in registers, and each copy in memory costs a message some nanoseconds.
type Buffer struct {
	// at is where displacement 0 of the first element is.
	at    unsafe.Pointer
	count int64
	of    *datatype.Type
	// length is how many bytes there are from at on, or one of the values below.
	length int64
}

const (
	unknownLength = -1
	inPlaceLength = -2 // of InPlace
)

// InPlace instead of a buffer says that what a rank contributes to a collective call is where its
// result goes (MPI_IN_PLACE): as the send buffer of all calls but Scatter, whose root gives it as the receive
// buffer.
var InPlace = Buffer{length: inPlaceLength}

func (b *Buffer) inPlace() bool { return b.length == inPlaceLength }

// Typed is a buffer of count elements of a datatype in a slice: displacement 0 is its beginning, and
// elements that are not within the slice are ErrBuffer. A T that is not of a fixed layout (StructType) is ErrType.
func Typed[T any](buf []T, count int, t *datatype.Type) Buffer {
	if !isFixed[T]() {
		t = nil
	}
	return Buffer{at: unsafe.Pointer(unsafe.SliceData(buf)), count: int64(count), of: t, length: int64(len(view(buf)))}
}

// bufferOf is the buffer of a slice.
func bufferOf[T Element](buf []T) Buffer {
	return Buffer{at: unsafe.Pointer(unsafe.SliceData(buf)), count: int64(len(buf)), of: TypeOf[T](), length: int64(len(view(buf)))}
}

// CountOf is the number of elements of a datatype in a message, or Undefined if it is not a whole
// number of them or not known (MPI_Get_count).
func CountOf(s Status, t *datatype.Type) int {
	switch size := t.Size(); {
	case s.Bytes < 0:
	case size == 0 && s.Bytes == 0:
		return 0
	case size > 0 && s.Bytes%size == 0:
		return int(s.Bytes / size)
	}
	return Undefined
}

// Elements is the number of basic elements in a message, or Undefined if it ends within one or its
// length is not known (MPI_Get_elements).
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

// dense is whole for most messages, and nil for others: those of no elements, of a datatype with gaps, and with an error.
func (b *Buffer) dense() []byte {
	if b.of == nil || !b.of.Dense() || b.count <= 0 || b.at == nil {
		return nil
	}
	if b.length == b.count*b.of.Size() && b.length > 0 && b.count <= b.length {
		return unsafe.Slice((*byte)(b.at), b.length)
	}
	high, n := bits.Mul64(uint64(b.count), uint64(b.of.Size()))
	if high != 0 || n > math.MaxInt || b.length >= 0 && int64(n) > b.length {
		return nil
	}
	return unsafe.Slice((*byte)(b.at), n)
}

// whole returns the memory of a buffer's elements if they are contiguous.
func (b *Buffer) whole(k *call) (bytes []byte, ok bool, err error) {
	switch {
	case b.of == nil:
		return nil, false, k.failf(ErrType, "there is no datatype")
	case b.count < 0:
		return nil, false, k.failf(ErrCount, "%d elements", b.count)
	}
	begin, end, err := b.of.Span(b.count)
	if err != nil {
		return nil, false, k.error(ErrCount, err)
	}
	if b.length >= 0 && (begin < 0 || end > b.length) {
		return nil, false, k.failf(ErrBuffer, "%d elements of the datatype use bytes %d to %d of the buffer, which has %d", b.count, begin, end, b.length)
	}
	if b.at == nil && begin <= 0 && end > 0 {
		return nil, false, k.failf(ErrBuffer, "%d elements of %d bytes at address 0", b.count, b.of.Size())
	}
	offset, ok := b.of.Contiguous(b.count)
	if !ok {
		return nil, false, nil
	}
	return b.bytes(offset, b.count*b.of.Size()), true, nil
}

// bytes is a part of the buffer's memory.
func (b *Buffer) bytes(offset, n int64) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(b.at, offset)), n)
}

// scattered is a message whose elements are not contiguous, and so has a copy that is.
type scattered struct {
	Buffer
	packed []byte
}

// pack takes the elements into the copy.
func (s *scattered) pack() { s.of.Pack(s.packed, s.at, s.count, 0) }

// typed has the call transfer a buffer.
func (k *call) typed(b *Buffer) error {
	if k.bytes = b.dense(); k.bytes != nil {
		k.datatype, k.any = onWire(b.of)
		return nil
	}
	bytes, ok, err := b.whole(k)
	if err != nil {
		return err
	}
	k.datatype, k.any = onWire(b.of)
	if ok {
		k.bytes = bytes
		return nil
	}
	if err := k.check(); err != nil { // before there is a process to take a copy from
		return err
	}
	s, _ := k.comm.p.scattered.Get().(*scattered)
	if s == nil {
		s = new(scattered)
	}
	s.Buffer, s.packed = *b, grown(s.packed, int(b.count*b.of.Size()))
	if k.sends() {
		s.pack()
	}
	k.scattered, k.bytes = s, s.packed
	return nil
}

// grown is memory for n bytes: what there is, if that is enough.
func grown(memory []byte, n int) []byte {
	if cap(memory) < n {
		return make([]byte, n)
	}
	return memory[:n]
}

// onWire is what the elements of a datatype are called on the wire, and whether a receive takes either.
func onWire(t *datatype.Type) (d protocol.Datatype, any bool) {
	switch t.Element() {
	case op.Float32:
		return protocol.Float, false
	case op.Int8, op.Uint8:
		return protocol.Int, true
	}
	return protocol.Int, false
}

// scatter puts the first n bytes of a message that was received in their places.
func (k *call) scatter(n int64) {
	if s := k.scattered; s != nil && n > 0 {
		s.of.Unpack(s.at, s.count, s.packed[:min(n, int64(len(s.packed)))], 0)
	}
}

// giveBack has the copy used for later messages. The device has done with it.
func (k *call) giveBack() {
	if k.scattered != nil {
		k.giveBackCopy()
	}
}

func (k *call) giveBackCopy() {
	s := k.scattered
	k.scattered, s.Buffer = nil, Buffer{}
	k.comm.p.scattered.Put(s)
}
