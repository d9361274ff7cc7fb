package capi

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

var _ = add(map[string]implementation{
	"Test_cancelled":       (*args).testCancelled,
	"Status_set_cancelled": (*args).setCancelled,
	"Status_get_source":    func(a *args) error { return a.getStatus(a.l.abi.status.source) },
	"Status_get_tag":       func(a *args) error { return a.getStatus(a.l.abi.status.tag) },
	"Status_get_error":     func(a *args) error { return a.getStatus(a.l.abi.status.err) },
	"Status_set_source":    func(a *args) error { return a.setStatus(a.l.abi.status.source) },
	"Status_set_tag":       func(a *args) error { return a.setStatus(a.l.abi.status.tag) },
	"Status_set_error":     func(a *args) error { return a.setStatus(a.l.abi.status.err) },
	"Get_count":            (*args).getCount,
	"Get_elements":         (*args).getElements,
	"Get_elements_x":       func(a *args) error { a.wide = true; return a.getElements() },
	"Status_set_elements":  (*args).setElements,
	"Status_set_elements_x": func(a *args) error {
		a.wide = true
		return a.setElements()
	},
})

func (a *args) statusOf() (mpi.Status, error) {
	p, err := a.where(0)
	if err != nil {
		return mpi.Status{}, err
	}
	if uintptr(p) == a.l.abi.statusIgnore {
		return mpi.Status{}, errorf(mpi.ErrArg, "the status is MPI_STATUS_IGNORE")
	}
	return a.l.statusAt(p), nil
}

// statusField is a field of the status of argument 0: an int of the program's, whatever it is.
func (a *args) statusField(offset uintptr) (*int32, error) {
	if _, err := a.statusOf(); err != nil {
		return nil, err
	}
	return (*int32)(unsafe.Add(a.pointer(0), offset)), nil
}

func (a *args) getStatus(offset uintptr) error {
	p, err := a.statusField(offset)
	if err != nil {
		return err
	}
	return a.setInt(1, int(*p))
}

func (a *args) setStatus(offset uintptr) error {
	p, err := a.statusField(offset)
	if err == nil {
		*p = int32(a.int(1))
	}
	return err
}

func (a *args) testCancelled() error {
	st, err := a.statusOf()
	if err != nil {
		return err
	}
	return a.setFlag(1, st.Cancelled)
}

func (a *args) setCancelled() error {
	st, err := a.statusOf()
	if err != nil {
		return err
	}
	a.l.setBytes(a.pointer(0), st.Bytes, a.int(1) != 0)
	return nil
}

// received decodes a status and a datatype.
func (a *args) received() (st mpi.Status, t *dtype, err error) {
	if st, err = a.statusOf(); err == nil {
		t, err = a.datatype(1)
	}
	return st, t, err
}

func (a *args) getCount() error {
	st, t, err := a.received()
	if err != nil {
		return err
	}
	return a.setCount(2, int64(mpi.CountOf(st, t.Type)))
}

func (a *args) getElements() error {
	st, t, err := a.received()
	if err != nil {
		return err
	}
	return a.setCount(2, int64(mpi.Elements(st, t.Type)))
}

func (a *args) setElements() error {
	st, t, err := a.received()
	if err != nil {
		return err
	}
	n := a.count(2)
	if n < 0 {
		return errorf(mpi.ErrCount, "%d elements", n)
	}
	a.l.setBytes(a.pointer(0), t.bytesOf(n), st.Cancelled)
	return nil
}
