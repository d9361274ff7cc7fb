package mpi

import (
	"context"
	"hash/fnv"
	"os"
	"sync"
)

// CreateAll is Create for all members of c (MPI_Comm_create, section 7.4.2). The groups given must be identical or
// disjoint, and may be empty. A rank outside of its group gets nil. The error is ErrGroup for a group with ranks that
// are not in c, or if a member of the group gave a different one. CreateAll has the same requirements on c as Split.
//
// In an intercommunicator, all ranks of a side give the same group of ranks of that side, and the result is an
// intercommunicator, or nil if one of the groups is empty.
func (c *Comm) CreateAll(ctx context.Context, group *Group) (*Comm, error) {
	const op = "CreateAll"
	k := c.callf(op)
	if err := k.check(); err != nil {
		return nil, err
	}
	color, key, err := k.part(group, c.group)
	if err != nil {
		return nil, c.refuseMaking(err)
	}
	number, ballots, err := c.agree(ctx, op, color, key)
	if err != nil || color == Undefined {
		return nil, err
	}
	if c.remote != nil {
		return c.interSplit(number, ballots, int64(color)), nil
	}
	for i, r := range group.ranks {
		if v := ballots[c.local[r]]; v.color != int64(color) || v.key != int64(i) {
			return nil, k.failf(ErrGroup, "rank %d of %v is in the group of this rank, and gave another group",
				c.local[r], c)
		}
	}
	return c.p.comm(number, group, ""), nil
}

// part returns a color for the members of a group, and the calling rank's number in it.
func (k *call) part(group, of *Group) (color, key int, err error) {
	in := of.index()
	for _, r := range group.members() {
		if _, ok := in[r]; !ok {
			return 0, 0, k.failf(ErrGroup, "rank %d of the world is in the group, but not in %v", r, k.comm)
		}
	}
	switch key = group.Rank(); {
	case key == Undefined:
		return Undefined, 0, nil
	case k.comm.remote != nil:
		return 0, key, nil // one group on each side
	}
	return group.ranks[0], key, nil
}

// SplitType is a property that Comm.SplitType groups ranks by.
type SplitType int

// SharedMemory ranks run on one host, so that they can share memory (MPI_COMM_TYPE_SHARED).
const SharedMemory SplitType = 1

// SplitType returns one communicator for each set of ranks that share the property kind (MPI_Comm_split_type, section
// 7.4.2). Ranks are ordered by key, and by their rank in c for equal keys. A rank whose kind is Undefined gets nil. The
// error is ErrArg for any other kind. SplitType has the same requirements on c as Split.
//
// Programs share a host if they run on one kernel with the same host name: different containers do not.
func (c *Comm) SplitType(ctx context.Context, kind SplitType, key int) (*Comm, error) {
	const op = "SplitType"
	k := c.callf(op)
	if err := k.checkIntra(); err != nil {
		return nil, err
	}
	color := Undefined
	switch kind {
	case Undefined:
	case SharedMemory:
		color = thisHost()
	default:
		return nil, c.refuseMaking(k.failf(ErrArg, "%d is no kind of ranks: give SharedMemory or Undefined", kind))
	}
	return c.split(ctx, op, color, key)
}

// thisHost is the color of programs on this host.
var thisHost = sync.OnceValue(func() int {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // empty except on Linux: the name alone is used
	name, _ := os.Hostname()                                  // if empty, the kernel alone is used
	return hostColor(boot, name)
})

// hostColor returns a color for a kernel and a host's name: a hash of 63 bits.
func hostColor(boot []byte, name string) int {
	h := fnv.New64a()
	_, _ = h.Write(boot)         // a hash does not fail
	_, _ = h.Write([]byte(name)) // likewise
	return int(h.Sum64() >> 1)
}
