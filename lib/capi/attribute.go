package capi

import (
	"sync"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// attributes are values that a program keeps with an object, by keys.
type attributes struct {
	mu     sync.Mutex
	values map[int]unsafe.Pointer
	order  []int // of setting
}

// keyval is a key with the functions of the program that copy and delete its values. They are addresses in C.
type keyval struct {
	copy, delete, extra unsafe.Pointer
	of                  kind
	// uses counts the handle and the values; freed says that there is no handle any more.
	uses  int
	freed bool
}

// keyvals are the keys that a program has made.
type keyvals struct {
	mu   sync.Mutex
	list map[int]*keyval
	next int
}

var _ = add(map[string]implementation{
	"Comm_create_keyval": func(a *args) error { return a.newKeyval(kindComm) },
	"Comm_free_keyval":   (*args).freeKeyval,
	"Comm_set_attr":      func(a *args) error { return a.setAttr(a.commAttributes) },
	"Comm_get_attr":      (*args).commGetAttr,
	"Comm_delete_attr":   func(a *args) error { return a.deleteAttr(a.commAttributes) },
	"Type_create_keyval": func(a *args) error { return a.newKeyval(kindDatatype) },
	"Type_free_keyval":   (*args).freeKeyval,
	"Type_set_attr":      func(a *args) error { return a.setAttr(a.typeAttributes) },
	"Type_get_attr":      func(a *args) error { return a.getAttr(a.typeAttributes) },
	"Type_delete_attr":   func(a *args) error { return a.deleteAttr(a.typeAttributes) },
	// The names of MPI-1.
	"Keyval_create": func(a *args) error { return a.newKeyval(kindComm) },
	"Keyval_free":   (*args).freeKeyval,
	"Attr_put":      func(a *args) error { return a.setAttr(a.commAttributes) },
	"Attr_get":      (*args).commGetAttr,
	"Attr_delete":   func(a *args) error { return a.deleteAttr(a.commAttributes) },
})

// newKeyval: copy function, delete function, where the key goes, extra state.
func (a *args) newKeyval(of kind) error {
	k := &a.l.keyvals
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil {
		k.list, k.next = map[int]*keyval{}, int(int32(a.l.abi.base[kindKeyval]))
	}
	k.next++
	k.list[k.next] = &keyval{copy: a.pointer(0), delete: a.pointer(1), extra: a.pointer(3), of: of, uses: 1}
	return a.setInt(2, k.next)
}

func (l *Library) keyval(number int) (*keyval, error) {
	l.keyvals.mu.Lock()
	defer l.keyvals.mu.Unlock()
	if k := l.keyvals.list[number]; k != nil {
		return k, nil
	}
	return nil, errorf(errKeyval, "%#x is no key of attributes, or has been freed", number)
}

func (l *Library) useKeyval(number, by int) {
	l.keyvals.mu.Lock()
	defer l.keyvals.mu.Unlock()
	if k := l.keyvals.list[number]; k != nil {
		if k.uses += by; k.uses == 0 {
			delete(l.keyvals.list, number)
		}
	}
}

func (a *args) freeKeyval() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	number := int(*(*int32)(p))
	k, err := a.l.keyval(number)
	if err != nil || k.freed {
		return errorf(errKeyval, "%#x is no key of attributes, or has been freed", number)
	}
	k.freed = true
	a.l.useKeyval(number, -1)
	return a.setInt(0, int(a.l.abi.constants["KEYVAL_INVALID"]))
}

func (a *args) commAttributes() (*attributes, uint64, kind, error) {
	c, err := a.communicator(0)
	if err != nil {
		return nil, 0, 0, err
	}
	return &c.attributes, c.handle, kindComm, nil
}

func (a *args) typeAttributes() (*attributes, uint64, kind, error) {
	t, err := a.datatype(0)
	if err != nil {
		return nil, 0, 0, err
	}
	return &t.attributes, t.handle, kindDatatype, nil
}

// keyOf is the key of argument 1, if it is for such objects and the program may still use it.
func (a *args) keyOf(of kind) (int, error) {
	number := a.int(1)
	k, err := a.l.keyval(number)
	switch {
	case err != nil:
		return 0, err
	case k.of != of:
		return 0, errorf(errKeyval, "key %#x is for a %s, and not for a %s", number, kindNames[k.of], kindNames[of])
	case k.freed:
		return 0, errorf(errKeyval, "key %#x has been freed", number)
	}
	return number, nil
}

func (a *args) setAttr(object func() (*attributes, uint64, kind, error)) error {
	list, handle, of, err := object()
	if err != nil {
		return err
	}
	if a.predefinedKey(a.int(1)) {
		return errorf(errKeyval, "the attribute is the library's, and cannot be changed")
	}
	number, err := a.keyOf(of)
	if err != nil {
		return err
	}
	if err := list.delete(a.l, handle, number); err != nil {
		return err
	}
	a.l.useKeyval(number, 1)
	list.mu.Lock()
	defer list.mu.Unlock()
	if list.values == nil {
		list.values = map[int]unsafe.Pointer{}
	}
	list.values[number] = a.pointer(2)
	list.order = append(list.order, number)
	return nil
}

func (a *args) getAttr(object func() (*attributes, uint64, kind, error)) error {
	list, _, of, err := object()
	if err != nil {
		return err
	}
	number, err := a.keyOf(of)
	if err != nil {
		return err
	}
	list.mu.Lock()
	value, ok := list.values[number]
	list.mu.Unlock()
	if ok {
		if err := a.setPointer(2, value); err != nil {
			return err
		}
	}
	return a.setFlag(3, ok)
}

func (a *args) deleteAttr(object func() (*attributes, uint64, kind, error)) error {
	list, handle, of, err := object()
	if err != nil {
		return err
	}
	if a.predefinedKey(a.int(1)) {
		return errorf(errKeyval, "the attribute is the library's, and cannot be deleted")
	}
	number, err := a.keyOf(of)
	if err != nil {
		return err
	}
	return list.delete(a.l, handle, number)
}

// delete deletes a value, unless the program's function refuses.
func (s *attributes) delete(l *Library, handle uint64, number int) error {
	s.mu.Lock()
	value, ok := s.values[number]
	s.mu.Unlock()
	if !ok {
		return nil
	}
	if k, err := l.keyval(number); err == nil && k.delete != nil {
		if code := l.back.Delete(k.delete, handle, number, value, k.extra); code != 0 {
			return &userError{code}
		}
	}
	s.mu.Lock()
	delete(s.values, number)
	for i, n := range s.order {
		if n == number {
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			break
		}
	}
	s.mu.Unlock()
	l.useKeyval(number, -1)
	return nil
}

// clear deletes all values of a communicator, the last one first.
func (s *attributes) clear(c *comm) error { return s.clearOf(c.l, c.handle) }

func (s *attributes) clearOf(l *Library, handle uint64) error {
	for {
		s.mu.Lock()
		n := len(s.order)
		if n == 0 {
			s.mu.Unlock()
			return nil
		}
		number := s.order[n-1]
		s.mu.Unlock()
		if err := s.delete(l, handle, number); err != nil {
			return err
		}
	}
}

// copyTo has a duplicate have those values that their functions copy.
func (s *attributes) copyTo(c, d *comm) error { return s.copyOf(c.l, c.handle, &d.attributes) }

func (s *attributes) copyOf(l *Library, handle uint64, to *attributes) error {
	s.mu.Lock()
	order := append([]int(nil), s.order...)
	s.mu.Unlock()
	for _, number := range order {
		s.mu.Lock()
		value, ok := s.values[number]
		s.mu.Unlock()
		k, err := l.keyval(number)
		if !ok || err != nil || k.copy == nil {
			continue
		}
		value, keep, code := l.back.Copy(k.copy, handle, number, k.extra, value)
		if code != 0 {
			return &userError{code}
		}
		if !keep {
			continue
		}
		l.useKeyval(number, 1)
		if to.values == nil {
			to.values = map[int]unsafe.Pointer{}
		}
		to.values[number] = value
		to.order = append(to.order, number)
	}
	return nil
}

// fixed are the attributes that each world has. A program gets pointers to them.
type fixed struct{ tagUB, host, io, wtimeIsGlobal, universe, lastUsedCode, appnum int32 }

func (l *Library) fixedAttributes() map[string]*int32 {
	f := &l.fixed
	f.tagUB, f.host, f.io = mpi.TagUB, int32(l.abi.procNull), int32(l.abi.anySource)
	l.codes.mu.Lock()
	f.lastUsedCode = int32(l.codes.nextAdded - 1)
	l.codes.mu.Unlock()
	if l.world != nil {
		f.universe = int32(l.world.Size())
	}
	return map[string]*int32{
		"TAG_UB": &f.tagUB, "HOST": &f.host, "IO": &f.io, "WTIME_IS_GLOBAL": &f.wtimeIsGlobal,
		"UNIVERSE_SIZE": &f.universe, "LASTUSEDCODE": &f.lastUsedCode, "APPNUM": &f.appnum,
	}
}

func (a *args) predefinedKey(number int) bool { return a.fixedValue(number) != nil }

func (a *args) fixedValue(number int) *int32 {
	for name, value := range a.l.fixedAttributes() {
		if v, ok := a.l.abi.constants[name]; ok && int(v) == number {
			return value
		}
	}
	return nil
}

func (a *args) commGetAttr() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	value := a.fixedValue(a.int(1))
	if value == nil {
		return a.getAttr(a.commAttributes)
	}
	_ = c // every communicator has them
	if err := a.setPointer(2, unsafe.Pointer(value)); err != nil {
		return err
	}
	return a.setFlag(3, true)
}
