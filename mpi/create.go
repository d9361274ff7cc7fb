package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Dup returns a communicator with the same ranks and separate messages. The new communicator has the topology
// of c, and the attributes returned by their copy functions. All members must call Dup (collective). If a copy
// function fails, this rank gets no new communicator.
//
// Dup fails if the wire of a member, such as a deployed node, does not support communicators; use Create to make a
// communicator of the other ranks. If ctx is done before all members have called Dup, some members may have the new
// communicator while others do not. From then on, Dup and Split fail on c; other calls work.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) {
	number, _, err := c.agree(ctx, "Dup", 0, 0)
	if err != nil {
		return nil, err
	}
	return c.copyAttributes("Dup", c.cloneWithNumber(number))
}

// Split returns one communicator for each set of ranks that pass the same color, which must not be negative.
// Ranks are ordered by key; ranks with equal keys, by their rank in c. A rank whose color is Undefined gets
// nil. All members must call Split (collective). As with Dup, the wire of every member must support
// communicators.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	const op = "Split"
	if color < 0 && color != Undefined {
		k := c.newCall(op)
		return nil, c.failCreation(k.failf(ErrArg, "color %d: a color is 0 or more, or MPI_UNDEFINED", color))
	}
	return c.split(ctx, op, color, key)
}

func (c *Comm) split(ctx context.Context, op string, color, key int) (*Comm, error) {
	number, ballots, err := c.agree(ctx, op, color, key)
	if err != nil || color == Undefined {
		return nil, err
	}
	if c.remote != nil {
		return c.interSplit(number, ballots, int64(color)), nil
	}
	return c.proc.newIntracomm(number, c.group.withColor(ballots, int64(color)), ""), nil
}

// MaxCreateTag is the largest tag that can be passed to Create. The library uses one bit of the tag itself.
const MaxCreateTag = tagCreate - 1

// Create returns a communicator of group, whose members must be ranks of c (MPI_Comm_create_group). Only the
// members need to call it, and all of them with the same group and tag; any other rank that calls it gets nil.
// Several calls may be in progress if their tags differ. If a call fails, its tag must not be reused.
//
// Use Create to make communicators in a cluster with deployed nodes: leave these nodes out of group, and
// exchange messages with them over the world.
func (c *Comm) Create(ctx context.Context, group *Group, tag int) (*Comm, error) {
	k := c.newCall("Create")
	k.tag = tag
	if err := k.checkIntra(); err != nil {
		return nil, err
	}
	if tag < 0 || tag > MaxCreateTag {
		return nil, k.failf(ErrTag, "a tag of Create is 0 to %d", MaxCreateTag)
	}
	for _, r := range group.members() {
		if r >= len(c.worldToLocal) || c.worldToLocal[r] == Undefined {
			return nil, k.failf(ErrGroup, "rank %d of the world is in the group, but not in %v", r, c)
		}
	}
	if group.Rank() == Undefined {
		return nil, nil
	}
	a := c.newAgreement(k, group.ranks, tagCreate|tag)
	if err := a.check(); err != nil {
		return nil, err
	}
	number, _, err := a.run(ctx, &c.proc.numbers, 0, 0)
	if err != nil {
		return nil, err
	}
	return c.proc.newIntracomm(number, group, ""), nil
}

// agree performs an agreement between all members of c.
func (c *Comm) agree(ctx context.Context, op string, color, key int) (uint32, []ballot, error) {
	k := c.newCall(op)
	if err := k.check(); err != nil {
		return 0, nil, err
	}
	if c.broken.Load() {
		return 0, nil, k.failf(ErrComm, "an earlier Dup or Split of it failed halfway, so its members may "+
			"disagree on the number of this call: use Create with an unused tag")
	}
	a := c.newAgreement(k, c.participants(), c.nextAgreeTag())
	if err := a.check(); err != nil {
		return 0, nil, err
	}
	number, ballots, err := a.run(ctx, &c.proc.numbers, color, key)
	if err != nil && !errors.Is(err, errRefused) {
		c.broken.Store(true)
	}
	return number, ballots, err
}

// rejectCreation implements Foreign.RefuseCreation.
func (c *Comm) rejectCreation(class Class) {
	k := c.newCall("")
	if k.check() != nil || c.broken.Load() {
		return
	}
	if a := c.newAgreement(k, c.participants(), c.nextAgreeTag()); a.check() == nil {
		a.refuse(class)
	}
}

// failCreation makes the creation of the communicator fail on the other members, and returns err.
func (c *Comm) failCreation(err error) error {
	c.rejectCreation(ClassOf(err))
	return err
}

// nextAgreeTag returns the tag of the next agreement.
func (c *Comm) nextAgreeTag() int { return tagAgree | int(c.agreementCount.Add(1)%(tagAgree>>1)) }

func (c *Comm) newAgreement(k call, members []int, tag int) *agreement {
	return &agreement{
		call: k, dev: c.proc.dev, members: members, myIndex: slices.Index(members, c.group.self),
		comm: c.number | internalFlag, tag: tag,
	}
}

// check returns an error if a member's wire does not support communicators. It must be called before anything is sent
// to a member.
func (a *agreement) check() error {
	c := a.call.comm
	if bad := c.worldOnly(a.members); len(bad) > 0 {
		return a.call.failf(ErrComm, "the wire to %s carries no communicators, only the world: make a communicator of "+
			"the other ranks with MPI_Comm_create_group (Create), and exchange messages with %s over the world; see "+
			"\"FPGA ranks\" in docs/c.md",
			c.describeRanks(bad), pronoun(bad))
	}
	return nil
}

// worldOnly returns those members that can receive only messages in the world communicator.
func (c *Comm) worldOnly(members []int) []int {
	var bad []int
	for _, r := range members {
		if r != c.group.self && c.proc.peers[r].NoComms {
			bad = append(bad, r)
		}
	}
	return bad
}

// describeRanks returns text that lists ranks of the world and names the profile of the first one.
func (c *Comm) describeRanks(world []int) string {
	const most = 8
	names := make([]string, 0, most+1)
	for i, r := range world {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(world)-most))
			break
		}
		names = append(names, fmt.Sprint(c.worldToLocal[r]))
	}
	ranks := "rank "
	if len(world) > 1 {
		ranks = "ranks "
	}
	return fmt.Sprintf("%s%s of %v (profile %s)", ranks, strings.Join(names, ", "), c, c.proc.peers[world[0]].Profile)
}

func pronoun(ranks []int) string {
	if len(ranks) == 1 {
		return "it"
	}
	return "them"
}
