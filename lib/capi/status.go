package capi

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

var _ = add(map[string]implementation{
	"Test_cancelled":        func(a *args) { a.setFlag(1, a.statusArg().Cancelled) },
	"Status_set_cancelled":  func(a *args) { a.lib.setBytes(a.pointer(0), a.statusArg().Bytes, a.int(1) != 0) },
	"Status_get_source":     func(a *args) { a.getStatus(a.lib.abi.status.source) },
	"Status_get_tag":        func(a *args) { a.getStatus(a.lib.abi.status.tag) },
	"Status_get_error":      func(a *args) { a.getStatus(a.lib.abi.status.err) },
	"Status_set_source":     func(a *args) { a.setStatus(a.lib.abi.status.source) },
	"Status_set_tag":        func(a *args) { a.setStatus(a.lib.abi.status.tag) },
	"Status_set_error":      func(a *args) { a.setStatus(a.lib.abi.status.err) },
	"Get_count":             func(a *args) { st, t := a.statusAndType(); a.setCount(2, int64(mpi.CountOf(st, t.Type))) },
	"Get_elements":          (*args).getElements,
	"Get_elements_x":        func(a *args) { a.largeCounts = true; a.getElements() },
	"Status_set_elements":   (*args).setElements,
	"Status_set_elements_x": func(a *args) { a.largeCounts = true; a.setElements() },
})

func (a *args) statusArg() mpi.Status {
	p := a.checkedPointer(0)
	if uintptr(p) == a.lib.abi.statusIgnore {
		panic(failf(mpi.ErrArg, "the status is MPI_STATUS_IGNORE"))
	}
	return a.lib.statusAt(p)
}

// statusField returns a pointer to one field of the status in argument 0. The program may have stored any value in this
// field.
func (a *args) statusField(offset uintptr) *int32 {
	a.statusArg()
	return (*int32)(unsafe.Add(a.pointer(0), offset))
}

func (a *args) getStatus(offset uintptr) {
	a.setInt(1, int(*a.statusField(offset)))
}

func (a *args) setStatus(offset uintptr) {
	*a.statusField(offset) = int32(a.int(1))
}

// statusAndType decodes a status and a datatype.
func (a *args) statusAndType() (st mpi.Status, t *dtype) {
	return a.statusArg(), a.datatype(1)
}

func (a *args) getElements() {
	st, t := a.statusAndType()
	a.setCount(2, int64(mpi.Elements(st, t.Type)))
}

// setElements implements MPI_Status_set_elements(status, datatype, count).
func (a *args) setElements() {
	st, t := a.statusAndType()
	n := a.count(2)
	if n < 0 {
		panic(failf(mpi.ErrCount, "%d elements", n))
	}
	a.lib.setBytes(a.pointer(0), t.bytesForElements(n), st.Cancelled)
}
