// Package caching implements the attributes that an MPI program may attach to communicators, datatypes and
// windows (section 7.7 of MPI 5.0).
//
// The package must never depend on the kind of an object.
package caching

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrKey is returned for a key that is nil or has been freed.
var ErrKey = errors.New("the key of the attribute is nil, or has been freed")

// Copy is called when an object with an attribute is duplicated. It returns the value of the attribute for the
// new object, and whether to set it. If Copy fails, the duplication fails.
type Copy[O any] func(old O, k *Key[O], value any) (copied any, keep bool, err error)

// Delete is called before an attribute is deleted or replaced, or its object is freed. If it fails, the attribute
// remains.
type Delete[O any] func(o O, k *Key[O], value any) error

// Key identifies an attribute that objects of type O can have. The standard calls it a keyval.
type Key[O any] struct {
	copy   Copy[O]
	delete Delete[O]
	freed  atomic.Bool
}

// NewKey returns a new key. If copy is nil, duplicates do not have the attribute (MPI_COMM_NULL_COPY_FN); KeepValue
// copies the value (MPI_COMM_DUP_FN). delete may be nil.
func NewKey[O any](copy Copy[O], delete Delete[O]) *Key[O] {
	return &Key[O]{copy: copy, delete: delete}
}

// KeepValue is a Copy function that gives a duplicate the same value.
func KeepValue[O any](_ O, _ *Key[O], value any) (copied any, keep bool, err error) {
	return value, true, nil
}

// Free invalidates the key, so that Set rejects it. Existing attributes remain, and the key's functions are still
// called for them.
func (k *Key[O]) Free() error {
	if k == nil || k.freed.Swap(true) {
		return ErrKey
	}
	return nil
}

// Attributes holds the attributes of one object. The zero value is empty. It is safe for concurrent use. The
// functions of keys are called without a lock held, so they may use the attributes too.
type Attributes[O any] struct {
	mu   sync.Mutex
	list []attribute[O] // in the order in which the attributes were set
}

type attribute[O any] struct {
	key   *Key[O]
	value any
}

// Set sets an attribute of object o. It first deletes an existing value.
func (a *Attributes[O]) Set(o O, k *Key[O], value any) error {
	if k == nil || k.freed.Load() {
		return ErrKey
	}
	if err := a.Delete(o, k); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(k) // another goroutine may have set it meanwhile
	a.list = append(a.list, attribute[O]{k, value})
	return nil
}

// Get returns the value of an attribute, and whether it is set.
func (a *Attributes[O]) Get(k *Key[O]) (any, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.index(k); i >= 0 {
		return a.list[i].value, true
	}
	return nil, false
}

// Delete deletes an attribute if it is set.
func (a *Attributes[O]) Delete(o O, k *Key[O]) error {
	if k == nil {
		return ErrKey
	}
	value, ok := a.Get(k)
	if !ok {
		return nil
	}
	if k.delete != nil {
		if err := k.delete(o, k, value); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(k)
	return nil
}

// CopyTo calls the copy functions of all attributes, in the order in which they were set, and stores the
// results in duplicate. It stops at the first error; in that case duplicate must not be used.
func (a *Attributes[O]) CopyTo(duplicate *Attributes[O], old O) error {
	a.mu.Lock()
	list := slices.Clone(a.list)
	a.mu.Unlock()
	for _, x := range list {
		if x.key.copy == nil {
			continue
		}
		value, keep, err := x.key.copy(old, x.key, x.value)
		if err != nil {
			return err
		}
		if keep {
			duplicate.mu.Lock()
			duplicate.list = append(duplicate.list, attribute[O]{x.key, value})
			duplicate.mu.Unlock()
		}
	}
	return nil
}

// Clear deletes all attributes of an object that is about to be freed, in the reverse of the order in which
// they were set. It stops at the first error; that attribute and earlier ones remain.
func (a *Attributes[O]) Clear(o O) error {
	for {
		a.mu.Lock()
		if len(a.list) == 0 {
			a.mu.Unlock()
			return nil
		}
		k := a.list[len(a.list)-1].key
		a.mu.Unlock()
		if err := a.Delete(o, k); err != nil {
			return err
		}
	}
}

func (a *Attributes[O]) index(k *Key[O]) int {
	return slices.IndexFunc(a.list, func(x attribute[O]) bool { return x.key == k })
}

func (a *Attributes[O]) remove(k *Key[O]) {
	if i := a.index(k); i >= 0 {
		a.list = slices.Delete(a.list, i, i+1)
	}
}
