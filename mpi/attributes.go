package mpi

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/mpi/caching"
)

// Keyval is the key of an attribute of communicators (section 7.7.2).
type Keyval = caching.Key[*Comm]

// NewKeyval returns a new key (MPI_Comm_create_keyval). copy is called by Dup, and returns the value that the new
// communicator has and whether it has one; without it there is none (MPI_COMM_NULL_COPY_FN), and with
// caching.KeepValue it is the same (MPI_COMM_DUP_FN). delete is called by DeleteAttr, Free, and by SetAttr with the
// value that is replaced; it may be nil. Their errors end these calls, and are found in theirs by errors.As.
func NewKeyval(copy caching.Copy[*Comm], delete caching.Delete[*Comm]) *Keyval {
	return caching.NewKey(copy, delete)
}

// SetAttr gives the communicator an attribute, on this rank (MPI_Comm_set_attr). One that it has is deleted first. The
// error is ErrKeyval for a key that is nil or freed.
func (c *Comm) SetAttr(key *Keyval, value any) error {
	k := c.callf("SetAttr")
	if err := k.check(); err != nil {
		return err
	}
	return k.attribute(c.attributes.Set(c, key, value))
}

// Attr returns the value of an attribute, and whether the communicator has it (MPI_Comm_get_attr).
func (c *Comm) Attr(key *Keyval) (value any, ok bool, err error) {
	k := c.callf("Attr")
	if err := k.check(); err != nil {
		return nil, false, err
	}
	if key == nil {
		return nil, false, k.attribute(caching.ErrKey)
	}
	value, ok = c.attributes.Get(key)
	return value, ok, nil
}

// DeleteAttr deletes an attribute, if the communicator has it (MPI_Comm_delete_attr).
func (c *Comm) DeleteAttr(key *Keyval) error {
	k := c.callf("DeleteAttr")
	if err := k.check(); err != nil {
		return err
	}
	return k.attribute(c.attributes.Delete(c, key))
}

// attribute is the error of a call on an attribute: that of a key, or of a function.
func (k *call) attribute(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, caching.ErrKey):
		return k.error(ErrKeyval, err)
	}
	return k.error(ErrOther, err)
}

// duplicate gives a new communicator what Dup keeps of c.
func (c *Comm) duplicate(op string, twin *Comm) (*Comm, error) {
	if err := c.attributes.CopyTo(&twin.attributes, c); err != nil {
		k := c.callf(op)
		return nil, k.attribute(err)
	}
	twin.topology = c.topology
	return twin, nil
}
