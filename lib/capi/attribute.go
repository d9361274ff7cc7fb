package capi

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/caching"
)

// object is implemented by the objects that have attributes: communicators and datatypes.
type object interface {
	handleOf() uint64
	attributesOf() *caching.Attributes[object]
}

func (c *comm) handleOf() uint64                           { return c.handle }
func (c *comm) attributesOf() *caching.Attributes[object]  { return &c.attributes }
func (t *dtype) handleOf() uint64                          { return t.handle }
func (t *dtype) attributesOf() *caching.Attributes[object] { return &t.attributes }

// keyval describes a key that the program has made.
type keyval struct {
	*caching.Key[object]
	kind kind
}

// keyvals holds all keys that the program has made, including freed ones, because a freed key can still be used to read
// or delete attributes.
type keyvals struct {
	mu   sync.Mutex
	list []keyval
}

var _ = add(map[string]implementation{
	"Comm_create_keyval": func(a *args) { a.newKeyval(kindComm) },
	"Comm_free_keyval":   (*args).freeKeyval,
	"Comm_set_attr":      func(a *args) { a.setAttr(a.commObject) },
	"Comm_get_attr":      (*args).commGetAttr,
	"Comm_delete_attr":   func(a *args) { a.deleteAttr(a.commObject) },
	"Type_create_keyval": func(a *args) { a.newKeyval(kindDatatype) },
	"Type_free_keyval":   (*args).freeKeyval,
	"Type_set_attr":      func(a *args) { a.setAttr(a.typeObject) },
	"Type_get_attr":      func(a *args) { a.getAttr(a.typeObject) },
	"Type_delete_attr":   func(a *args) { a.deleteAttr(a.typeObject) },
	// MPI-1 names.
	"Keyval_create": func(a *args) { a.newKeyval(kindComm) },
	"Keyval_free":   (*args).freeKeyval,
	"Attr_put":      func(a *args) { a.setAttr(a.commObject) },
	"Attr_get":      (*args).commGetAttr,
	"Attr_delete":   func(a *args) { a.deleteAttr(a.commObject) },
})

// keepValue is the constant of the standard ABI that a program passes in place of a copy function that keeps the value.
const keepValue = 1

// newKeyval implements MPI_Comm_create_keyval(copy_fn, delete_fn, keyval, extra_state) and the corresponding
// call for datatypes.
func (a *args) newKeyval(of kind) {
	back, extra, copyFunction, deleteFunction := a.lib.callbacks, a.pointer(3), a.pointer(0), a.pointer(1)
	k := &a.lib.keyvals
	k.mu.Lock()
	defer k.mu.Unlock()
	number := int(int32(a.lib.abi.firstHandle[kindKeyval])) + len(k.list)
	var doCopy caching.Copy[object]
	switch uintptr(copyFunction) {
	case 0:
	case keepValue:
		doCopy = caching.KeepValue[object]
	default:
		doCopy = func(old object, _ *caching.Key[object], value any) (any, bool, error) {
			to, keep, code := back.Copy(copyFunction, old.handleOf(), number, extra, value.(unsafe.Pointer))
			return to, keep, codeError(code)
		}
	}
	var doDelete caching.Delete[object]
	if deleteFunction != nil {
		doDelete = func(o object, _ *caching.Key[object], value any) error {
			return codeError(back.Delete(deleteFunction, o.handleOf(), number, value.(unsafe.Pointer), extra))
		}
	}
	k.list = append(k.list, keyval{caching.NewKey(doCopy, doDelete), of})
	a.setInt(2, number)
}

// codeError returns the error that represents a user callback's return code.
func codeError(code int) error {
	if code == 0 {
		return nil
	}
	return userError(code)
}

// keyval returns the key with the given number. It must belong to objects of the given kind; kindKeyval permits any
// kind.
func (a *args) keyval(number int, of kind) *caching.Key[object] {
	k := &a.lib.keyvals
	k.mu.Lock()
	defer k.mu.Unlock()
	i := number - int(int32(a.lib.abi.firstHandle[kindKeyval]))
	switch {
	case i < 0 || i >= len(k.list):
		panic(failf(mpi.ErrKeyval, "%#x is not an attribute key", uint32(number)))
	case k.list[i].kind != of && of != kindKeyval:
		panic(failf(mpi.ErrKeyval, "key %#x is for a %s, not for a %s", uint32(number),
			kindNames[k.list[i].kind], kindNames[of]))
	}
	return k.list[i].Key
}

// freeKeyval implements MPI_Comm_free_keyval(keyval) and MPI_Type_free_keyval(keyval). Attributes keep a freed key in
// use.
func (a *args) freeKeyval() {
	p := a.checkedPointer(0)
	k := a.keyval(int(*(*int32)(p)), kindKeyval)
	_ = k.Free() // freeing a key twice has no effect
	a.setInt(0, int(a.lib.abi.constants["KEYVAL_INVALID"]))
}

func (a *args) commObject() (object, kind) { return a.communicator(0), kindComm }
func (a *args) typeObject() (object, kind) { return a.datatype(0), kindDatatype }

// objectAndKey decodes an object and a key. The key must not belong to the library.
func (a *args) objectAndKey(of func() (object, kind)) (object, *caching.Key[object]) {
	o, which := of()
	if a.fixedValue(a.int(1)) != nil {
		panic(failf(mpi.ErrKeyval, "the attribute is the library's, and cannot be changed"))
	}
	return o, a.keyval(a.int(1), which)
}

// attributeError returns the error for a change of attributes that failed because of an invalid key or because a user
// callback returned an error.
func attributeError(err error) error {
	if errors.Is(err, caching.ErrKey) {
		return errorf(mpi.ErrKeyval, "%v", err)
	}
	return err
}

func (a *args) setAttr(of func() (object, kind)) {
	o, k := a.objectAndKey(of)
	check(attributeError(o.attributesOf().Set(o, k, a.pointer(2))))
}

// getAttr implements MPI_Comm_get_attr(comm, keyval, attribute_val, flag) and MPI_Type_get_attr. Although declared as a
// void pointer, attribute_val is the address of one.
func (a *args) getAttr(of func() (object, kind)) {
	o, k := a.objectAndKey(of)
	value, ok := o.attributesOf().Get(k)
	if ok {
		a.setPointer(2, value.(unsafe.Pointer))
	}
	a.setFlag(3, ok)
}

func (a *args) deleteAttr(of func() (object, kind)) {
	o, k := a.objectAndKey(of)
	check(attributeError(o.attributesOf().Delete(o, k)))
}

// fixedAttributes holds the values of the attributes that every communicator has, indexed by key. A program gets
// pointers to the values.
type fixedAttributes map[int]*int32

func (l *Library) defineFixedAttrs() {
	l.fixedAttrs = fixedAttributes{}
	for name, value := range map[string]int{
		"TAG_UB": mpi.TagUB, "HOST": l.abi.procNull, "IO": l.abi.anySource, "WTIME_IS_GLOBAL": 0,
		"UNIVERSE_SIZE": 0, "LASTUSEDCODE": 0, "APPNUM": 0, // the first two are set later
	} {
		v := int32(value)
		l.fixedAttrs[int(l.abi.constants[name])] = &v
	}
}

// fixedValue returns the value of an attribute that every communicator has, or nil for any other key.
func (a *args) fixedValue(key int) *int32 {
	l := a.lib
	value := l.fixedAttrs[key]
	if int64(key) == l.abi.constants["LASTUSEDCODE"] {
		l.codes.mu.Lock()
		defer l.codes.mu.Unlock()
		*value = int32(l.codes.nextAdded - 1)
	}
	return value
}

func (a *args) commGetAttr() {
	a.communicator(0)
	value := a.fixedValue(a.int(1))
	if value == nil {
		a.getAttr(a.commObject)
		return
	}
	a.setPointer(2, unsafe.Pointer(value))
	a.setFlag(3, true)
}
