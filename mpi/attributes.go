package mpi

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/mpi/caching"
)

// Keyval is the key of an attribute of communicators (section 7.7.2).
type Keyval = caching.Key[*Comm]

// NewKeyval returns a new key (MPI_Comm_create_keyval). Dup calls copy, which returns the value for the new
// communicator and whether to set it. If copy is nil, the value is not set (MPI_COMM_NULL_COPY_FN); caching.KeepValue
// copies the value (MPI_COMM_DUP_FN). DeleteAttr and Free call delete; SetAttr also calls it, for the value that it
// replaces. delete may be nil. If copy or delete fails, so does the call that invoked it, and errors.As finds the cause
// in the error.
func NewKeyval(copy caching.Copy[*Comm], delete caching.Delete[*Comm]) *Keyval {
	return caching.NewKey(copy, delete)
}

// SetAttr sets an attribute of the communicator on this rank (MPI_Comm_set_attr). It first deletes an existing value.
// The error is ErrKeyval if the key is nil or has been freed.
func (c *Comm) SetAttr(key *Keyval, value any) error {
	k := c.newCall("SetAttr")
	if err := k.check(); err != nil {
		return err
	}
	return k.attributeError(c.attributes.Set(c, key, value))
}

// Attr returns the value of an attribute, and whether it is set (MPI_Comm_get_attr).
func (c *Comm) Attr(key *Keyval) (value any, ok bool, err error) {
	k := c.newCall("Attr")
	if err := k.check(); err != nil {
		return nil, false, err
	}
	if key == nil {
		return nil, false, k.attributeError(caching.ErrKey)
	}
	value, ok = c.attributes.Get(key)
	return value, ok, nil
}

// DeleteAttr deletes an attribute if it is set (MPI_Comm_delete_attr).
func (c *Comm) DeleteAttr(key *Keyval) error {
	k := c.newCall("DeleteAttr")
	if err := k.check(); err != nil {
		return err
	}
	return k.attributeError(c.attributes.Delete(c, key))
}

// attributeError converts err, an error of package caching or of a copy or delete function, to an error of the call.
func (k *call) attributeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, caching.ErrKey):
		return k.error(ErrKeyval, err)
	}
	return k.error(ErrOther, err)
}

// copyAttributes copies attributes and topology to a new communicator.
func (c *Comm) copyAttributes(op string, twin *Comm) (*Comm, error) {
	if err := c.attributes.CopyTo(&twin.attributes, c); err != nil {
		k := c.newCall(op)
		return nil, k.attributeError(err)
	}
	twin.topology = c.topology
	return twin, nil
}
