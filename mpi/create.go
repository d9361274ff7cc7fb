package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Dup returns a communicator of the same ranks, whose messages are apart from
// those of c, with its topology and the attributes that their copy functions give it. All members must call it (collective). With
// an error of a copy function there is no new communicator on this rank.
//
// It is an error if a member's wire carries no communicators, as those of
// deployed nodes: make one of the other ranks by Create. When ctx ends before
// all members have called it, some may have the new communicator and others
// not, so Dup and Split fail on c from then on; other calls work.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) {
	number, _, err := c.agree(ctx, "Dup", 0, 0)
	if err != nil {
		return nil, err
	}
	return c.duplicate("Dup", c.like(number))
}

// Split returns a communicator of each set of ranks that give the same color,
// which is not negative, in the order of their keys, and in that of c for equal
// keys. A rank that gives Undefined as its color gets nil. All members must call
// it (collective). Like Dup, it needs members whose wire carries communicators.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	const op = "Split"
	if color < 0 && color != Undefined {
		k := c.callf(op)
		return nil, c.refuseMaking(k.failf(ErrArg, "color %d: a color is 0 or more, or MPI_UNDEFINED", color))
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
	return c.p.comm(number, c.group.colored(ballots, int64(color)), ""), nil
}

// MaxCreateTag is the largest tag of Create: one bit of a tag is the library's.
const MaxCreateTag = tagCreate - 1

// Create returns a communicator of group, whose members must be ranks of c. Only
// they call it, all of them with the same group and tag, of which there may be
// several at a time with different tags (MPI_Comm_create_group). Others get nil
// if they call it. A tag whose call has failed must not be used again.
//
// It is the way to communicators in a cluster with deployed nodes: leave those
// out of group, and exchange messages with them over the world.
func (c *Comm) Create(ctx context.Context, group *Group, tag int) (*Comm, error) {
	k := c.callf("Create")
	k.tag = tag
	if err := k.checkIntra(); err != nil {
		return nil, err
	}
	if tag < 0 || tag > MaxCreateTag {
		return nil, k.failf(ErrTag, "a tag of Create is 0 to %d", MaxCreateTag)
	}
	for _, r := range group.members() {
		if r >= len(c.local) || c.local[r] == Undefined {
			return nil, k.failf(ErrGroup, "rank %d of the world is in the group, but not in %v", r, c)
		}
	}
	if group.Rank() == Undefined {
		return nil, nil
	}
	a := c.agreement(k, group.ranks, tagCreate|tag)
	if err := a.check(); err != nil {
		return nil, err
	}
	number, _, err := a.run(ctx, &c.p.numbers, 0, 0)
	if err != nil {
		return nil, err
	}
	return c.p.comm(number, group, ""), nil
}

// agree is the agreement of all members of c.
func (c *Comm) agree(ctx context.Context, op string, color, key int) (uint32, []ballot, error) {
	k := c.callf(op)
	if err := k.check(); err != nil {
		return 0, nil, err
	}
	if c.broken.Load() {
		return 0, nil, k.failf(ErrComm, "an earlier Dup or Split of it has failed half way, so that its members may disagree on which call this is: use Create with a tag of its own")
	}
	a := c.agreement(k, c.both(), c.makeTag())
	if err := a.check(); err != nil {
		return 0, nil, err
	}
	number, ballots, err := a.run(ctx, &c.p.numbers, color, key)
	if err != nil && !errors.Is(err, errRefused) {
		c.broken.Store(true)
	}
	return number, ballots, err
}

// refuseMake is Foreign.RefuseMaking.
func (c *Comm) refuseMake(class Class) {
	k := c.callf("")
	if k.check() != nil || c.broken.Load() {
		return
	}
	if a := c.agreement(k, c.both(), c.makeTag()); a.check() == nil {
		a.refuse(class)
	}
}

// refuseMaking returns the error for which a call is refused.
func (c *Comm) refuseMaking(err error) error {
	c.refuseMake(ClassOf(err))
	return err
}

// makeTag is the tag of the next agreement.
func (c *Comm) makeTag() int { return tagMake | int(c.made.Add(1)%(tagMake>>1)) }

func (c *Comm) agreement(k call, members []int, tag int) *agreement {
	return &agreement{
		call: k, dev: c.p.dev, members: members, me: slices.Index(members, c.group.self),
		comm: c.number | internal, tag: tag,
	}
}

// check refuses members that cannot be in a communicator, before anything is
// sent to any of them.
func (a *agreement) check() error {
	c := a.call.comm
	if bad := c.worldOnly(a.members); len(bad) > 0 {
		return a.call.failf(ErrComm, "the wire to %s carries no communicators, only the world: make a communicator of "+
			"the other ranks with MPI_Comm_create_group (Create), and exchange messages with %s over the world; see \"FPGA ranks\" in docs/c.md",
			c.describe(bad), pronoun(bad))
	}
	return nil
}

// worldOnly returns the members to which messages of other communicators cannot
// be sent.
func (c *Comm) worldOnly(members []int) []int {
	var bad []int
	for _, r := range members {
		if r != c.group.self && c.p.peers[r].NoComms {
			bad = append(bad, r)
		}
	}
	return bad
}

// describe names ranks of the world, and the first ones' profile.
func (c *Comm) describe(world []int) string {
	const most = 8
	names := make([]string, 0, most+1)
	for i, r := range world {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(world)-most))
			break
		}
		names = append(names, fmt.Sprint(c.local[r]))
	}
	ranks := "rank "
	if len(world) > 1 {
		ranks = "ranks "
	}
	return fmt.Sprintf("%s%s of %v (profile %s)", ranks, strings.Join(names, ", "), c, c.p.peers[world[0]].Profile)
}

func pronoun(ranks []int) string {
	if len(ranks) == 1 {
		return "it"
	}
	return "them"
}
