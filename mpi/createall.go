package mpi

import (
	"context"
	"hash/fnv"
	"os"
	"sync"
)

// CreateAll is like Create, but all members of c call it (MPI_Comm_create, section 7.4.2). The groups that they pass
// must be identical or disjoint, and may be empty. A rank outside its group gets nil. The error is ErrGroup if a group
// contains ranks outside c, or if a member of the group passed a different group. CreateAll has the same requirements
// on c as Split.
//
// On an intercommunicator, all ranks of a side pass the same group of ranks of that side. The result is an
// intercommunicator, or nil if one of the groups is empty.
func (c *Comm) CreateAll(ctx context.Context, group *Group) (*Comm, error) {
	const op = "CreateAll"
	k := c.newCall(op)
	if err := k.check(); err != nil {
		return nil, err
	}
	color, key, err := k.groupColor(group, c.group)
	if err != nil {
		return nil, c.failCreation(err)
	}
	number, ballots, err := c.agree(ctx, op, color, key)
	if err != nil || color == Undefined {
		return nil, err
	}
	if c.remote != nil {
		return c.interSplit(number, ballots, int64(color)), nil
	}
	for i, r := range group.ranks {
		if v := ballots[c.worldToLocal[r]]; v.color != int64(color) || v.key != int64(i) {
			return nil, k.failf(ErrGroup, "rank %d of %v is in the group of this rank, but passed another group",
				c.worldToLocal[r], c)
		}
	}
	return c.proc.newIntracomm(number, group, ""), nil
}

// groupColor returns a color that only the members of the group pass. The key that it returns is the calling rank's
// number in the group.
func (k *call) groupColor(group, of *Group) (color, key int, err error) {
	in := of.rankIndex()
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

// SplitType is a property by which Comm.SplitType groups ranks.
type SplitType int

// SharedMemory groups ranks that run on one host, so that they can share memory (MPI_COMM_TYPE_SHARED).
const SharedMemory SplitType = 1

// SplitType returns one communicator for each set of ranks that share the property kind (MPI_Comm_split_type,
// section 7.4.2). Ranks are ordered by key; ranks with equal keys, by their rank in c. A rank whose kind is
// Undefined gets nil. The error is ErrArg for any other kind. SplitType has the same requirements on c as
// Split.
//
// Programs are on the same host if they run on one kernel with the same host name. Programs in different
// containers are therefore on different hosts.
func (c *Comm) SplitType(ctx context.Context, kind SplitType, key int) (*Comm, error) {
	const op = "SplitType"
	k := c.newCall(op)
	if err := k.checkIntra(); err != nil {
		return nil, err
	}
	color := Undefined
	switch kind {
	case Undefined:
	case SharedMemory:
		color = thisHostColor()
	default:
		return nil, c.failCreation(k.failf(ErrArg, "split type %d does not exist: use SharedMemory or Undefined", kind))
	}
	return c.split(ctx, op, color, key)
}

// thisHostColor returns the color that all programs on this host pass.
var thisHostColor = sync.OnceValue(func() int {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // empty except on Linux; then only the name is used
	name, _ := os.Hostname()                                  // if empty, only the kernel is used
	return hostColor(boot, name)
})

// hostColor returns a color that identifies a host: a 63-bit hash of its kernel and its name.
func hostColor(boot []byte, name string) int {
	h := fnv.New64a()
	_, _ = h.Write(boot)         // never fails
	_, _ = h.Write([]byte(name)) // never fails
	return int(h.Sum64() >> 1)
}
