package mpi

import (
	"context"
	"hash/fnv"
	"os"
	"sync"
)

// CreateAll is Create that all members of c call, with groups that are the same or have no rank in common, and which may be
// empty (MPI_Comm_create, section 7.4.2). A rank that is not in its group gets nil. The error is ErrGroup for a
// group with ranks that c has not, or whose members gave another one. It is a call like Split, and needs the same of c.
//
// In an intercommunicator all ranks of a side give the same group, of ranks of theirs, and the result is an intercommunicator; it is nil if one of
// the groups is empty.
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
			return nil, k.failf(ErrGroup, "rank %d of %v is in the group of this rank, and gave another group", c.local[r], c)
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
		return 0, key, nil // there is one group on each side
	}
	return group.ranks[0], key, nil
}

// SplitType says what the ranks of a communicator of Comm.SplitType have in common.
type SplitType int

// SharedMemory ranks run on one host, so that they can share memory (MPI_COMM_TYPE_SHARED).
const SharedMemory SplitType = 1

// SplitType returns a communicator of each set of ranks that have in common what kind says, in the order of their keys, and in
// that of c for equal keys (MPI_Comm_split_type, section 7.4.2). A rank that gives Undefined as kind gets nil. The error
// is ErrArg for any other kind. It is a call like Split, and needs the same of c.
//
// Programs on one kernel that have the same host name are on one host: those of different containers are not.
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

// thisHost is a color for the programs of this host.
var thisHost = sync.OnceValue(func() int {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // elsewhere than on Linux, the name has to do
	name, _ := os.Hostname()                                  // or the kernel alone
	return hostColor(boot, name)
})

// hostColor returns a color for a kernel and a host's name: a hash of 63 bits.
func hostColor(boot []byte, name string) int {
	h := fnv.New64a()
	_, _ = h.Write(boot)         // a hash does not fail
	_, _ = h.Write([]byte(name)) // likewise
	return int(h.Sum64() >> 1)
}
