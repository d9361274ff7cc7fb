package capi

import (
	"cmp"
	"math"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// args holds the arguments of one call. Later calls reuse it, so that calls do not allocate memory.
type args struct {
	lib  *Library
	list *[maxArgs]uint64
	*callEntry
	// largeCounts is set if counts in memory have 64 bits, as in calls whose names end in _c.
	largeCounts bool
	// comm is the communicator whose error handler handles the errors of this call, or nil.
	comm *comm
	// handler is the error handler for a call on an object that is not a communicator. It is nil for all other calls.
	// handlerOwner is the handle of the object.
	handler      *errhandler
	handlerOwner uint64
	// inheritedBuffer is the send buffer of the session from which a group or communicator argument was made, or nil.
	inheritedBuffer *mpi.SendBuffer
	// skipHandler is set if the call returns its error without calling an error handler.
	skipHandler bool
	// operands holds the operands of a collective call. It is allocated separately because other calls do not
	// need it.
	operands *operands
}

// maxArgs is more than the number of arguments of any call of the standard.
const maxArgs = 16

func (a *args) int(i int) int { return int(int32(a.list[i])) }

// count returns a 64-bit argument: a number of elements, a displacement or an address.
func (a *args) count(i int) int64 { return int64(a.list[i]) }

func (a *args) pointer(i int) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a.list[i]))
}

func (a *args) setResult(v uint64) { a.list[0] = v }

// checkedPointer returns a pointer to an output argument, which must not be nil.
func (a *args) checkedPointer(i int) unsafe.Pointer {
	p := a.pointer(i)
	if p == nil {
		panic(failure{a.nullPointer(i)})
	}
	return p
}

// nullPointer returns the error for a null pointer. Arguments count from 1 in errors.
func (a *args) nullPointer(i int) error {
	return errorf(mpi.ErrArg, "argument %d of MPI_%s is a null pointer", i+1, a.name)
}

// arrayAt returns a pointer to an array of n elements, which may be nil only if n is 0.
func (a *args) arrayAt(i, n int) unsafe.Pointer {
	if n == 0 {
		return nil
	}
	return a.checkedPointer(i)
}

func (a *args) setInt(i int, v int) { *(*int32)(a.checkedPointer(i)) = int32(v) }

func (a *args) setFlag(i int, v bool) {
	n := 0
	if v {
		n = 1
	}
	a.setInt(i, n)
}

// setCount writes a count, or MPI_UNDEFINED if the count does not fit.
func (a *args) setCount(i int, v int64) {
	if v == mpi.Undefined {
		v = int64(a.lib.abi.undefined)
	}
	if a.largeCounts {
		a.setWord(i, v)
		return
	}
	if v != int64(int32(v)) {
		v = int64(a.lib.abi.undefined)
	}
	a.setInt(i, int(v))
}

// setWord writes a 64-bit value.
func (a *args) setWord(i int, v int64) { *(*int64)(a.checkedPointer(i)) = v }

func (a *args) setPointer(i int, v unsafe.Pointer) { *(*unsafe.Pointer)(a.checkedPointer(i)) = v }

// handle returns a handle passed by value.
func (a *args) handle(i int, k kind) uint64 { return a.lib.abi.handle(k, int64(a.list[i])) }

// handleAt reads element n of an array of handles.
func (l *Library) handleAt(p unsafe.Pointer, n int) uint64 {
	if l.abi.handleLen == 4 {
		return uint64(*(*uint32)(unsafe.Add(p, 4*n)))
	}
	return *(*uint64)(unsafe.Add(p, 8*n))
}

func (l *Library) setHandleAt(p unsafe.Pointer, n int, v uint64) {
	if l.abi.handleLen == 4 {
		*(*uint32)(unsafe.Add(p, 4*n)) = uint32(v)
		return
	}
	*(*uint64)(unsafe.Add(p, 8*n)) = v
}

// handleIn reads the handle that an argument points to.
func (a *args) handleIn(i int) uint64 { return a.lib.handleAt(a.checkedPointer(i), 0) }

func (a *args) setHandle(i int, v uint64) { a.lib.setHandleAt(a.checkedPointer(i), 0, v) }

// communicator returns a communicator argument. From then on, that communicator's error handler handles errors of the
// call.
func (a *args) communicator(i int) *comm {
	h := a.handle(i, kindComm)
	if c := a.lib.comms.get(h); c != nil {
		a.comm, a.inheritedBuffer = c, c.sessionBuf
		return c
	}
	if h == a.lib.abi.null[kindComm] {
		panic(failf(mpi.ErrComm, "the communicator is MPI_COMM_NULL"))
	}
	panic(invalidHandle(mpi.ErrComm, kindComm, h))
}

func (a *args) group(i int) *mpi.Group {
	g := findOrFail(a.lib.groups, a.handle(i, kindGroup), mpi.ErrGroup)
	a.inheritedBuffer = cmp.Or(a.inheritedBuffer, g.sessionBuf)
	return g.Group
}

func (a *args) datatype(i int) *dtype { return a.lib.datatype(a.handle(i, kindDatatype)) }

// datatype returns a datatype, whether committed or not. Only messages need committed ones.
func (l *Library) datatype(h uint64) *dtype {
	if h == l.abi.null[kindDatatype] {
		panic(failf(mpi.ErrType, "the datatype is MPI_DATATYPE_NULL"))
	}
	return findOrFail(l.types, h, mpi.ErrType)
}

// committedType returns the datatype of a message, which must be committed.
func (a *args) committedType(i int) *dtype { return a.lib.committed(a.handle(i, kindDatatype)) }

func (l *Library) committed(h uint64) *dtype {
	t := l.datatype(h)
	if !t.committed {
		panic(failf(mpi.ErrType, "the datatype is not committed: call MPI_Type_commit before it is used in a message"))
	}
	return t
}

// peer returns a rank in a communicator, a wildcard or MPI_PROC_NULL. Package mpi rejects MPI_ANY_SOURCE for sends.
func (a *args) peer(i int) int { return a.lib.abi.peer(a.int(i)) }

// peer converts a rank to the constants of package mpi. Another negative number stays invalid, and keeps its value for
// errors (Foreign.OutOfRange).
func (a *abi) peer(r int) int {
	switch r {
	case a.procNull:
		return mpi.ProcNull
	case a.anySource:
		return mpi.AnySource
	default:
		if r < 0 {
			return mpi.Foreign.OutOfRange(r)
		}
		return r
	}
}

// root returns the root of a collective call. For an intercommunicator, the result may also be MPI_ROOT or
// MPI_PROC_NULL.
func (a *args) root(i int) int {
	if a.int(i) == a.lib.abi.root {
		return mpi.Root
	}
	return a.peer(i)
}

// tag returns a tag or MPI_ANY_TAG. Package mpi rejects MPI_ANY_TAG for sends.
func (a *args) tag(i int) int { return a.lib.abi.tag(a.int(i)) }

// tag is like peer, for a tag.
func (a *abi) tag(t int) int {
	if t == a.anyTag {
		return mpi.AnyTag
	}
	if t < 0 {
		return mpi.Foreign.OutOfRange(t)
	}
	return t
}

// inPlace reports whether a buffer is MPI_IN_PLACE.
func (a *args) inPlace(i int) bool { return uintptr(a.list[i]) == a.lib.abi.inPlace }

// elementCount returns a count of elements, which must not be negative.
func (a *args) elementCount(i int) int64 {
	n := a.count(i)
	if n < 0 {
		panic(failf(mpi.ErrCount, "the count is %d", n))
	}
	return n
}

// countAndType returns the count and the datatype of a message, which are in consecutive arguments.
func (a *args) countAndType(i int) (int64, *datatype.Type) {
	t := a.lib.messageType(a.count(i), a.handle(i+1, kindDatatype))
	return a.elementCount(i), t
}

// messageType returns the datatype for n elements of a message. Like MPICH, it accepts MPI_DATATYPE_NULL if n is 0,
// because some programs pass it.
func (l *Library) messageType(n int64, h uint64) *datatype.Type {
	if n == 0 && h == l.abi.null[kindDatatype] {
		return l.byteType
	}
	return l.committed(h).Type
}

// buffer returns a buffer whose address, count and datatype are in consecutive arguments.
func (a *args) buffer(i int) mpi.Buffer {
	n, t := a.countAndType(i + 1)
	return a.bufferAt(i, n, t)
}

// bufferAt returns a buffer of n elements at an address, which must not be MPI_IN_PLACE.
func (a *args) bufferAt(i int, n int64, t *datatype.Type) mpi.Buffer {
	if a.inPlace(i) {
		panic(failf(mpi.ErrBuffer, "argument %d of MPI_%s must not be MPI_IN_PLACE", i+1, a.name))
	}
	return mpi.Foreign.MemoryBuffer(a.pointer(i), n, t)
}

// repeatedBuffer returns a buffer that is times as long as the arguments describe: the elements follow each other that
// often.
func (a *args) repeatedBuffer(i int, times int64) mpi.Buffer {
	n, t := a.countAndType(i + 1)
	return a.scaledBuffer(i, n, t, times)
}

// scaledBuffer returns a buffer of times·n elements.
func (a *args) scaledBuffer(i int, n int64, t *datatype.Type, times int64) mpi.Buffer {
	if n > math.MaxInt64/max(times, 1) {
		panic(failf(mpi.ErrCount, "the count is %d, %d times", n, times))
	}
	return a.bufferAt(i, n*times, t)
}

// countArray reads n counts or displacements from an array.
func (a *args) countArray(i, n int) []int { return a.readArray(i, n, a.largeCounts) }

// intArray reads n ints, which remain ints in a call with large counts.
func (a *args) intArray(i, n int) []int { return a.readArray(i, n, false) }

// addressArray reads n 64-bit displacements.
func (a *args) addressArray(i, n int) []int { return a.readArray(i, n, true) }

// readArray reads n numbers of 32 or, if wide is set, 64 bits.
func (a *args) readArray(i, n int, wide bool) []int {
	p := a.arrayAt(i, n)
	list := make([]int, n)
	for k := range list {
		if wide {
			list[k] = int(*(*int64)(unsafe.Add(p, 8*k)))
		} else {
			list[k] = int(*(*int32)(unsafe.Add(p, 4*k)))
		}
	}
	return list
}

// arrayLen returns the length of an array, which must not be negative.
func (a *args) arrayLen(i int) int {
	n := a.int(i)
	if n < 0 {
		panic(failf(mpi.ErrArg, "argument %d of MPI_%s is %d, and cannot be negative", i+1, a.name, n))
	}
	return n
}

// countedInts reads an array of ints whose length is another argument.
func (a *args) countedInts(count, i int) []int { return a.intArray(i, a.arrayLen(count)) }

func toInt64s(list []int) []int64 {
	out := make([]int64, len(list))
	for i, v := range list {
		out[i] = int64(v)
	}
	return out
}

// setInts writes an array of ints. Its pointer may be nil if list is empty.
func (a *args) setInts(i int, list []int) {
	if len(list) == 0 {
		return
	}
	p := a.checkedPointer(i)
	for k, v := range list {
		*(*int32)(unsafe.Add(p, 4*k)) = int32(v)
	}
}

// datatypes reads n handles of datatypes.
func (a *args) datatypes(i, n int) []*datatype.Type {
	p := a.arrayAt(i, n)
	list := make([]*datatype.Type, n)
	for k := range list {
		list[k] = a.lib.datatype(a.lib.handleAt(p, k)).Type
	}
	return list
}

// cString reads a C string.
func (a *args) cString(i int) string { return textAt(a.checkedPointer(i)) }

// textAt copies a C string, because the program may change it after the call.
func textAt(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// setCString writes a C string into a buffer of room bytes. It returns the string's length without the terminating 0.
func (a *args) setCString(i int, s string, room int) int {
	p := a.checkedPointer(i)
	if room <= 0 {
		return 0
	}
	n := min(len(s), room-1)
	to := unsafe.Slice((*byte)(p), n+1)
	copy(to, s[:n])
	to[n] = 0
	return n
}

// status writes a status unless the program ignores it (MPI_STATUS_IGNORE).
func (a *args) status(i int, s *mpi.Status) { a.lib.status(a.pointer(i), s) }

// status writes a status to p, unless p is nil or MPI_STATUS_IGNORE.
func (l *Library) status(p unsafe.Pointer, s *mpi.Status) {
	if p != nil && uintptr(p) != l.abi.statusIgnore {
		l.setStatus(p, s)
		if s.Source == mpi.AnySource { // an empty status has MPI_SUCCESS; otherwise the error field remains unchanged
			l.setError(p, 0)
		}
	}
}

// statusArray returns the address of an array of statuses, or nil if the program ignores them.
func (a *args) statusArray(i int) unsafe.Pointer {
	p := a.pointer(i)
	if uintptr(p) == a.lib.abi.statusesIgnore {
		return nil
	}
	return p
}

// setStatus writes a status except for its error field.
func (l *Library) setStatus(p unsafe.Pointer, status *mpi.Status) {
	layout := &l.abi.status
	source, tag := status.Source, status.Tag
	switch source {
	case unsetSource:
		l.setBytes(p, l.statusAt(p).Bytes, status.Cancelled)
		return
	case mpi.AnySource:
		source = l.abi.anySource
	case mpi.ProcNull:
		source = l.abi.procNull
	}
	if tag == mpi.AnyTag {
		tag = l.abi.anyTag
	}
	*(*int32)(unsafe.Add(p, layout.source)) = int32(source)
	*(*int32)(unsafe.Add(p, layout.tag)) = int32(tag)
	l.setBytes(p, status.Bytes, status.Cancelled)
}

// unknownBytes is the number of bytes in a status that means that the length of the message is unknown.
const unknownBytes = 1<<62 - 1

// setBytes writes the number of bytes, which shares a word with the flag that the request was cancelled (statusLayout).
func (l *Library) setBytes(p unsafe.Pointer, n int64, cancelled bool) {
	layout := &l.abi.status
	if n < 0 {
		n = unknownBytes
	}
	high := uint32(n>>32) << 1
	if cancelled {
		high |= 1
	}
	*(*uint32)(unsafe.Add(p, layout.low)) = uint32(n)
	*(*uint32)(unsafe.Add(p, layout.high)) = high
}

// statusAt reads those fields of a status that only this library writes.
func (l *Library) statusAt(p unsafe.Pointer) mpi.Status {
	layout := &l.abi.status
	high := *(*uint32)(unsafe.Add(p, layout.high))
	s := mpi.Status{Bytes: int64(*(*uint32)(unsafe.Add(p, layout.low))) | int64(high>>1)<<32, Cancelled: high&1 != 0}
	if s.Bytes == unknownBytes {
		s.Bytes = mpi.Undefined
	}
	return s
}

func (l *Library) setError(p unsafe.Pointer, code int) {
	*(*int32)(unsafe.Add(p, l.abi.status.err)) = int32(code)
}
