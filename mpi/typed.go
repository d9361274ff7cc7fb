package mpi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TypeOf is the datatype of a T, of which package datatype makes others.
func TypeOf[T Element]() *datatype.Type {
	var zero T
	e := elementOf[T]()
	return datatype.Basic(e.of.String(), int64(e.size), int64(unsafe.Alignof(zero)), e.typ)
}

// SendTyped is Send of count elements of a datatype, which are in buf: displacement 0 is its
// beginning. What is not contiguous is copied first.
func SendTyped[T Element](ctx context.Context, c *Comm, buf []T, count int, t *datatype.Type, dest, tag int) error {
	k := call{comm: c, op: "SendTyped", kind: mpe.OpSend, peer: dest, tag: tag}
	if err := k.typed(view(buf), count, t); err != nil {
		return err
	}
	defer k.giveBack()
	return k.sendWait(ctx)
}

// IsendTyped starts SendTyped and returns. buf must not be written to until the request has ended.
func IsendTyped[T Element](c *Comm, buf []T, count int, t *datatype.Type, dest, tag int) (Request, error) {
	k := call{comm: c, op: "IsendTyped", kind: mpe.OpSend, peer: dest, tag: tag}
	if err := k.typed(view(buf), count, t); err != nil {
		return Request{}, err
	}
	return k.immediate()
}

// RecvTyped is Recv of at most count elements of a datatype, which go to their places in buf.
// Nothing else in buf is written. Elements gives how many have come.
func RecvTyped[T Element](ctx context.Context, c *Comm, buf []T, count int, t *datatype.Type, source, tag int) (Status, error) {
	k := call{comm: c, op: "RecvTyped", kind: mpe.OpRecv, peer: source, tag: tag}
	if err := k.typed(view(buf), count, t); err != nil {
		return emptyStatus, err
	}
	defer k.giveBack()
	var st Status
	err := k.recv(ctx, &st)
	return st, err
}

// IrecvTyped starts RecvTyped and returns. The elements are in buf when the request has been waited
// for, and buf must not be touched until then.
func IrecvTyped[T Element](c *Comm, buf []T, count int, t *datatype.Type, source, tag int) (Request, error) {
	k := call{comm: c, op: "IrecvTyped", kind: mpe.OpRecv, peer: source, tag: tag}
	if err := k.typed(view(buf), count, t); err != nil {
		return Request{}, err
	}
	return k.immediate()
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

// scattered is a message whose elements are not contiguous, and so has a copy that is.
type scattered struct {
	of     *datatype.Type
	buf    []byte
	count  int64
	packed []byte
}

// typed has the call transfer count elements of a datatype in a buffer.
func (k *call) typed(buf []byte, count int, t *datatype.Type) error {
	switch {
	case t == nil:
		return k.failf(ErrType, "there is no datatype")
	case count < 0:
		return k.failf(ErrCount, "%d elements", count)
	}
	begin, end, err := t.Span(int64(count))
	if err != nil {
		return k.error(ErrCount, err)
	}
	if begin < 0 || end > int64(len(buf)) {
		return k.failf(ErrBuffer, "%d elements of the datatype use bytes %d to %d of the buffer, which has %d", count, begin, end, len(buf))
	}
	k.datatype, k.any = protocol.Int, false
	switch t.Element() {
	case op.Float32:
		k.datatype = protocol.Float
	case op.Int8, op.Uint8:
		k.any = true
	}
	bytes := int64(count) * t.Size()
	if offset, ok := t.Contiguous(int64(count)); ok {
		k.bytes = buf[offset : offset+bytes]
		return nil
	}
	if err := k.check(); err != nil { // before there is a process to take a copy from
		return err
	}
	s, _ := k.comm.p.scattered.Get().(*scattered)
	if s == nil {
		s = new(scattered)
	}
	if int64(cap(s.packed)) < bytes {
		s.packed = make([]byte, bytes)
	}
	s.of, s.buf, s.count, s.packed = t, buf, int64(count), s.packed[:bytes]
	if k.sends() {
		t.Pack(s.packed, unsafe.Pointer(unsafe.SliceData(buf)), s.count, 0)
	}
	k.scattered, k.bytes = s, s.packed
	return nil
}

// scatter puts the first n bytes of a message that was received in their places.
func (k *call) scatter(n int64) {
	if s := k.scattered; s != nil && n > 0 {
		s.of.Unpack(unsafe.Pointer(unsafe.SliceData(s.buf)), s.count, s.packed[:min(n, int64(len(s.packed)))], 0)
	}
}

// giveBack has the copy used for later messages. The device has done with it.
func (k *call) giveBack() {
	if s := k.scattered; s != nil {
		k.scattered, s.of, s.buf = nil, nil, nil
		k.comm.p.scattered.Put(s)
	}
}
