//go:build !linux

package rlimit

// Mapping returns err unchanged, because the limits of this system are unknown.
func Mapping(err error, _ int) error { return err }

// Descriptor returns err.
func Descriptor(err error) error { return err }

// AddressSpaceLeft reports that no limit is known.
func AddressSpaceLeft() (left uint64, limited bool) { return 0, false }

// Reserve does nothing.
type Reserve struct{}

// Open does nothing.
func (r *Reserve) Open() {}

// Close does nothing.
func (r *Reserve) Close() {}

// Spend calls f.
func (r *Reserve) Spend(f func()) { f() }
