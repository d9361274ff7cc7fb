package mpi

import "unsafe"

// same reports whether two buffers are the same memory.
func same(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// overlap reports whether two buffers share memory.
func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	at, bt := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return at < bt+uintptr(len(b)) && bt < at+uintptr(len(a))
}

// vectors sets two buffers of equal length, which is the length of the call. If both are the same memory, the
// call is in place.
func (x *collectiveCall) vectors(send, recv []byte) {
	d := &x.dev
	d.Call.Bytes = len(send)
	switch {
	case len(send) != len(recv):
		x.refuse(ErrCount, "send has %d elements and recv %d: they must have as many", x.count(send), x.count(recv))
	case same(send, recv):
		d.Call.InPlace = true
		send = nil
	case overlap(send, recv):
		x.refuseOverlap()
	}
	d.Send, d.Recv = send, recv
}

func (x *collectiveCall) refuseOverlap() {
	x.refuse(ErrBuffer, "send and recv overlap: give memory of their own, or the same for both, for a call in place")
}

// inPlace reports whether part is the caller's own block within whole, at offset off and with the length of
// part. It rejects any other overlap. names holds the names of the two buffers.
func (x *collectiveCall) inPlace(part, whole []byte, off int, names [2]string) bool {
	switch {
	case same(part, whole[off:off+len(part)]):
		x.dev.Call.InPlace = true
		return true
	case overlap(part, whole):
		n := off / x.elem.size
		x.refuse(ErrBuffer, "%s overlaps %s, and is not the caller's own block of it: for a call in place give "+
			"%s[%d:%d]",
			names[0], names[1], names[1], n, n+x.count(part))
	}
	return false
}
