package capi

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

var _ = add(map[string]implementation{
	"Test_cancelled":        func(a *args) { a.setFlag(1, a.statusOf().Cancelled) },
	"Status_set_cancelled":  func(a *args) { a.l.setBytes(a.pointer(0), a.statusOf().Bytes, a.int(1) != 0) },
	"Status_get_source":     func(a *args) { a.getStatus(a.l.abi.status.source) },
	"Status_get_tag":        func(a *args) { a.getStatus(a.l.abi.status.tag) },
	"Status_get_error":      func(a *args) { a.getStatus(a.l.abi.status.err) },
	"Status_set_source":     func(a *args) { a.setStatus(a.l.abi.status.source) },
	"Status_set_tag":        func(a *args) { a.setStatus(a.l.abi.status.tag) },
	"Status_set_error":      func(a *args) { a.setStatus(a.l.abi.status.err) },
	"Get_count":             func(a *args) { st, t := a.received(); a.setCount(2, int64(mpi.CountOf(st, t.Type))) },
	"Get_elements":          (*args).getElements,
	"Get_elements_x":        func(a *args) { a.wide = true; a.getElements() },
	"Status_set_elements":   (*args).setElements,
	"Status_set_elements_x": func(a *args) { a.wide = true; a.setElements() },
})

func (a *args) statusOf() mpi.Status {
	p := a.where(0)
	if uintptr(p) == a.l.abi.statusIgnore {
		panic(failf(mpi.ErrArg, "the status is MPI_STATUS_IGNORE"))
	}
	return a.l.statusAt(p)
}

// statusField returns a pointer to a field of the status in argument 0. The field may contain any value from
// the program.
func (a *args) statusField(offset uintptr) *int32 {
	a.statusOf()
	return (*int32)(unsafe.Add(a.pointer(0), offset))
}

func (a *args) getStatus(offset uintptr) {
	a.setInt(1, int(*a.statusField(offset)))
}

func (a *args) setStatus(offset uintptr) {
	*a.statusField(offset) = int32(a.int(1))
}

// received decodes a status and a datatype.
func (a *args) received() (st mpi.Status, t *dtype) {
	return a.statusOf(), a.datatype(1)
}

func (a *args) getElements() {
	st, t := a.received()
	a.setCount(2, int64(mpi.Elements(st, t.Type)))
}

func (a *args) setElements() {
	st, t := a.received()
	n := a.count(2)
	if n < 0 {
		panic(failf(mpi.ErrCount, "%d elements", n))
	}
	a.l.setBytes(a.pointer(0), t.bytesOf(n), st.Cancelled)
}
