package mpi

import "unsafe"

// sameMemory reports whether two buffers are the same memory.
func sameMemory(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// overlaps reports whether two buffers share memory.
func overlaps(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	at, bt := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return at < bt+uintptr(len(b)) && bt < at+uintptr(len(a))
}

// setVectors sets the buffers of a call that requires buffers of equal length. If both are the same memory, the call is
// in place.
func (x *collectiveCall) setVectors(send, recv []byte) {
	operation := &x.devOp
	operation.Call.Bytes = len(send)
	switch {
	case len(send) != len(recv):
		x.recordError(ErrCount, "send has %d elements and recv %d: they must have as many", x.elementCount(send),
			x.elementCount(recv))
	case sameMemory(send, recv):
		operation.Call.InPlace = true
		send = nil
	case overlaps(send, recv):
		x.recordOverlap()
	}
	operation.Send, operation.Recv = send, recv
}

func (x *collectiveCall) recordOverlap() {
	x.recordError(ErrBuffer, "send and recv overlap: pass separate buffers, or the same one for both, for a call in place")
}

// checkInPlace reports whether part is the caller's own block within whole, which begins at offset off and has the
// length of part. It rejects any other overlap. names holds the names of the two buffers.
func (x *collectiveCall) checkInPlace(part, whole []byte, off int, names [2]string) bool {
	switch {
	case sameMemory(part, whole[off:off+len(part)]):
		x.devOp.Call.InPlace = true
		return true
	case overlaps(part, whole):
		n := off / x.elem.size
		x.recordError(ErrBuffer, "%s overlaps %s, and is not the caller's own block of it: for a call in place give "+
			"%s[%d:%d]",
			names[0], names[1], names[1], n, n+x.elementCount(part))
	}
	return false
}
