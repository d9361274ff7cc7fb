package mpi

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// IntercommCreate returns an intercommunicator between the ranks of c and the ranks of another communicator,
// which must have no rank in common with c (MPI_Intercomm_create, section 7.6.2). All members of both
// communicators call it, with the rank of a leader in their own communicator. The leaders must also pass a
// communicator peer that contains both leaders, the other leader's rank in peer, and the same tag, 0 to
// MaxCreateTag. Other ranks need not pass these.
//
// Point-to-point calls and the source of a status refer to ranks of the remote group. Size, Rank and Group
// refer to the local group. All collective calls except Scan and Exscan are supported. Dup, Split, CreateAll
// and Merge make further communicators.
//
// The error is ErrRank if a leader does not exist, ErrGroup if the groups have a rank in common, and ErrComm if
// the wire of a member does not support communicators. If the call fails on one rank, other ranks may wait
// until their contexts are done.
func (c *Comm) IntercommCreate(ctx context.Context, leader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	k := c.newCall("IntercommCreate")
	if err := k.checkIntra(); err != nil {
		return nil, err
	}
	if leader < 0 || leader >= c.Size() {
		return nil, k.rankError(leader)
	}
	a := c.newAgreement(k, c.group.ranks, c.nextAgreeTag())
	if err := a.check(); err != nil {
		return nil, err
	}
	setup := &intercommSetup{agreement: a, leader: leader}
	var failed error
	if c.rank == leader {
		if failed = setup.setRemoteLeader(peer, remoteLeader, tag); failed == nil {
			failed = setup.exchangeGroups(ctx)
		}
	}
	if err := setup.bcastGroup(ctx, failed); err != nil {
		return nil, err
	}
	remote := &Group{ranks: setup.remoteRanks, self: c.group.self}
	if err := c.checkRemote(&k, remote); err != nil {
		return nil, err
	}
	number, _, err := a.runWith(ctx, c.Size()+len(setup.remoteRanks), setup.exchange, &c.proc.numbers, 0, 0)
	if err != nil {
		return nil, err
	}
	return c.proc.newIntercomm(number, c.group, remote), nil
}

// checkRemote returns an error if the remote group is invalid.
func (c *Comm) checkRemote(k *call, remote *Group) error {
	seen := make(map[int]bool, remote.Size())
	for _, r := range remote.ranks {
		if r < 0 || r >= len(c.worldToLocal) || seen[r] {
			return k.failf(ErrIntern, "the other leader's group is %v: not all members made the same call",
				remote.ranks)
		}
		if c.worldToLocal[r] != Undefined {
			return k.failf(ErrGroup, "rank %d of the world is in both groups", r)
		}
		seen[r] = true
	}
	if bad := c.worldOnly(remote.ranks); len(bad) > 0 {
		return k.failf(ErrComm, "the wire to rank %d of the world carries no communicators: leave it out of the "+
			"other group", bad[0])
	}
	return nil
}

func (p *process) newIntercomm(number uint32, local, remote *Group) *Comm {
	c := p.newComm(number, local, remote, "")
	c.remote = remote
	return c
}

// cloneWithNumber returns a communicator with the same groups as c, but with the given number.
func (c *Comm) cloneWithNumber(number uint32) *Comm {
	if c.remote == nil {
		return c.proc.newIntracomm(number, c.group, "")
	}
	return c.proc.newIntercomm(number, c.group, c.remote)
}

// participants returns the world ranks that take part when a communicator is made from c. For an intercommunicator,
// these are the ranks of both groups, in the same order on both sides.
func (c *Comm) participants() []int {
	switch {
	case c.remote == nil:
		return c.group.ranks
	case c.isLocalFirst():
		return slices.Concat(c.group.ranks, c.remote.ranks)
	}
	return slices.Concat(c.remote.ranks, c.group.ranks)
}

// isLocalFirst reports whether the local group of an intercommunicator comes first in the order that both sides use.
func (c *Comm) isLocalFirst() bool { return c.group.ranks[0] < c.remote.ranks[0] }

// intercommSetup is the exchange by which the two groups of a new intercommunicator learn each other's members.
type intercommSetup struct {
	*agreement
	leader int // index of the local leader
	// peerComm, remoteLeader and peerTag are the communicator, rank and tag for messages to the other group's leader.
	// Only the local leader uses them.
	peerComm     uint32
	remoteLeader int // rank of the world
	peerTag      int
	remoteRanks  []int // ranks of the world
}

// setRemoteLeader checks and stores the address of the other group's leader.
func (x *intercommSetup) setRemoteLeader(peer *Comm, remoteLeader, tag int) error {
	k := &x.call
	p := peer.newCall(k.op)
	switch err := p.check(); {
	case err != nil:
		return err
	case remoteLeader < 0 || remoteLeader >= len(peer.members):
		return p.rankError(remoteLeader)
	case tag < 0 || tag > MaxCreateTag:
		return k.failf(ErrTag, "the tag is %d: it is 0 to %d", tag, MaxCreateTag)
	}
	x.peerComm, x.remoteLeader, x.peerTag = peer.number|internalFlag, int(peer.members[remoteLeader].worldRank),
		tagCreate|tag
	return nil
}

// swapWithLeader exchanges messages between the leaders.
func (x *intercommSetup) swapWithLeader(ctx context.Context, send, recv []byte) error {
	to := mpe.Operation{Kind: mpe.OpRecv, Peer: x.remoteLeader, Tag: x.peerTag, Comm: x.peerComm, Buf: recv}
	from := to
	from.Kind, from.Buf = mpe.OpSend, send
	return x.runAll(ctx, to, from)
}

// exchangeGroups exchanges the groups of the leaders.
func (x *intercommSetup) exchangeGroups(ctx context.Context) error {
	var n, m [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(len(x.members)))
	if err := x.swapWithLeader(ctx, n[:], m[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(m[:])
	if size == 0 || int64(size) > int64(x.dev.Size()) {
		return x.call.failf(ErrIntern, "the other leader's group has %d ranks: not all members made the same call",
			size)
	}
	mine, theirs := make([]byte, 0, 4*len(x.members)), make([]byte, 4*size)
	for _, r := range x.members {
		mine = binary.LittleEndian.AppendUint32(mine, uint32(r))
	}
	if err := x.swapWithLeader(ctx, mine, theirs); err != nil {
		return err
	}
	x.remoteRanks = decodeRanks(theirs)
	return nil
}

func decodeRanks(b []byte) []int {
	ranks := make([]int, len(b)/4)
	for i := range ranks {
		ranks[i] = int(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return ranks
}

// bcastGroup sends the remote group from the local leader to the other local members. If the leader failed to receive
// the remote group, it sends an empty one.
func (x *intercommSetup) bcastGroup(ctx context.Context, failed error) error {
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(len(x.remoteRanks)))
	if err := x.bcastFromLeader(ctx, n[:]); err != nil || failed != nil {
		return cmp.Or(failed, err)
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size == 0 {
		return x.call.failf(ErrOther, "the leader, rank %d, failed: see its error", x.leader)
	}
	if int64(size) > int64(x.dev.Size()) {
		return x.call.failf(ErrIntern, "the leader reports that the other group has %d ranks, more than the world", size)
	}
	list := make([]byte, 0, 4*size)
	for _, r := range x.remoteRanks {
		list = binary.LittleEndian.AppendUint32(list, uint32(r))
	}
	list = list[:4*size]
	if err := x.bcastFromLeader(ctx, list); err != nil {
		return err
	}
	x.remoteRanks = decodeRanks(list)
	return nil
}

// bcastFromLeader sends b from the leader to all local members. They receive it into b.
func (x *intercommSetup) bcastFromLeader(ctx context.Context, b []byte) error {
	if x.myIndex != x.leader {
		return x.runAll(ctx, x.newOperation(mpe.OpRecv, x.leader, b))
	}
	var to []mpe.Operation
	for i := range x.members {
		if i != x.myIndex {
			to = append(to, x.newOperation(mpe.OpSendSync, i, b))
		}
	}
	return x.runAll(ctx, to...)
}

// exchange returns the parts of all members of both groups, the local group's first, on every member.
func (x *intercommSetup) exchange(ctx context.Context, part []byte) ([]byte, error) {
	local, err := x.agreement.exchange(ctx, part)
	if err != nil {
		return nil, err
	}
	remote := make([]byte, len(part)*len(x.remoteRanks))
	if x.myIndex == x.leader {
		if err := x.swapWithLeader(ctx, local, remote); err != nil {
			return nil, err
		}
	}
	if err := x.bcastFromLeader(ctx, remote); err != nil {
		return nil, err
	}
	return append(local, remote...), nil
}

// IsInter reports whether c is an intercommunicator (MPI_Comm_test_inter).
func (c *Comm) IsInter() bool { return c != nil && c.remote != nil }

// RemoteGroup returns the remote group of an intercommunicator (MPI_Comm_remote_group), or nil for other communicators.
func (c *Comm) RemoteGroup() *Group {
	if c == nil {
		return nil
	}
	return c.remote
}

// RemoteSize returns the number of ranks of the remote group (MPI_Comm_remote_size), or 0 for other communicators.
func (c *Comm) RemoteSize() int { return c.RemoteGroup().Size() }

// checkIntra is like check, but also rejects intercommunicators.
func (k *call) checkIntra() error {
	if err := k.check(); err != nil {
		return err
	}
	if k.comm.remote != nil {
		return k.failf(ErrComm, "%v is an intercommunicator: the call is for one with a single group", k.comm)
	}
	return nil
}

// checkInter is like check, but also rejects intracommunicators.
func (k *call) checkInter() error {
	if err := k.check(); err != nil {
		return err
	}
	if k.comm.remote == nil {
		return k.failf(ErrComm, "%v is not an intercommunicator", k.comm)
	}
	return nil
}

// Merge returns a communicator of the ranks of both groups of an intercommunicator (MPI_Intercomm_merge,
// section 7.6.3). The group that passes high comes second; if both groups pass the same value, the order is
// unspecified. All members of both groups must call Merge. The members of a group must pass the same value;
// otherwise, the error is ErrArg. Merge has the same requirements as Dup.
func (c *Comm) Merge(ctx context.Context, high bool) (*Comm, error) {
	const op = "Merge"
	k := c.newCall(op)
	if err := k.checkInter(); err != nil {
		return nil, err
	}
	color := 0
	if high {
		color = 1
	}
	number, ballots, err := c.agree(ctx, op, color, 0)
	if err != nil {
		return nil, err
	}
	first, second := c.group, c.remote
	if !c.isLocalFirst() {
		first, second = second, first
	}
	n := first.Size()
	for i, v := range ballots {
		of := ballots[0]
		if i >= n {
			of = ballots[n]
		}
		if v.color != of.color {
			return nil, k.failf(ErrArg, "the ranks of a group passed different values of high")
		}
	}
	if ballots[0].color > ballots[n].color {
		first, second = second, first
	}
	return c.proc.newIntracomm(number, first.Union(second), ""), nil
}

// interSplit splits both groups of an intercommunicator by color. It returns nil if no rank of the remote group
// has the color.
func (c *Comm) interSplit(number uint32, ballots []ballot, color int64) *Comm {
	local, remote := c.splitBallots(ballots)
	mine, theirs := c.group.withColor(local, color), c.remote.withColor(remote, color)
	if theirs.Size() == 0 {
		return nil
	}
	return c.proc.newIntercomm(number, mine, theirs)
}

// splitBallots returns the ballots of both groups.
func (c *Comm) splitBallots(ballots []ballot) (local, remote []ballot) {
	if c.isLocalFirst() {
		return ballots[:c.Size()], ballots[c.Size():]
	}
	return ballots[c.RemoteSize():], ballots[:c.RemoteSize()]
}

// withColor returns the group of ranks whose ballots have a color, ordered by key.
func (g *Group) withColor(ballots []ballot, color int64) *Group {
	var chosen []int
	for i, v := range ballots {
		if v.color == color {
			chosen = append(chosen, i)
		}
	}
	slices.SortStableFunc(chosen, func(a, b int) int { return cmp.Compare(ballots[a].key, ballots[b].key) })
	part := &Group{self: g.self}
	for _, i := range chosen {
		part.ranks = append(part.ranks, g.ranks[i])
	}
	return part
}
