package mpi

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi/caching"
)

// Comm is a communicator: a group of ranks whose messages are kept apart from
// those of every other communicator. Its methods, and the functions that take
// it, may be called from any number of goroutines at a time
// (MPI_THREAD_MULTIPLE), except that the collective ones, Dup, Split and those
// from Barrier to Scan, must be called in the same order by all members, and so
// one after another. Of those that return a request, many may be under way.
type Comm struct {
	p      *process
	number uint32
	group  *Group
	rank   int
	// members has what a call needs of each rank that messages go to.
	members []member
	// local gives the communicator's rank of a rank of the world, or Undefined.
	local []int32
	freed atomic.Bool
	// turns are the collective calls with data.
	turns turns
	// made counts the calls of Dup and Split, so that messages of a failed one
	// do not match the next one.
	made atomic.Uint32
	// broken is set when one of them has failed half way.
	broken atomic.Bool
	// rounds counts the calls that are a round.
	rounds atomic.Uint32
	// channels counts the sends of PsendInit.
	channels atomic.Uint32
	// origins are the calls of sends that rest. The lock of those guards it.
	origins [len(origins)]mpe.Origin
	// buffers are the send buffers of SetSendBuffers.
	buffers atomic.Pointer[[]*SendBuffer]
	// attributes are those of Keyvals.
	attributes caching.Attributes[*Comm]
	// topology is nil if there is none.
	topology topology
	// remote is the other group of an intercommunicator, or nil.
	remote *Group

	mu   sync.Mutex
	name string
}

// member is a rank of a communicator, as every call needs it: in one word.
type member struct {
	world int32
	// limited: there are messages that its wire does not carry.
	limited bool
}

// comm makes a communicator of group, which the calling rank is a member of.
func (p *process) comm(number uint32, group *Group, name string) *Comm {
	return p.reaching(number, group, group, name)
}

// reaching makes a communicator of group whose messages go to the ranks of others: the same group, or the remote one.
func (p *process) reaching(number uint32, group, others *Group, name string) *Comm {
	c := &Comm{p: p, number: number, group: group, rank: group.Rank(), name: name}
	c.local = make([]int32, len(p.peers))
	for i := range c.local {
		c.local[i] = Undefined
	}
	c.members = make([]member, len(others.ranks))
	for i, r := range others.ranks {
		c.local[r] = int32(i)
		w := &p.peers[r]
		c.members[i] = member{world: int32(r), limited: w.Words || w.SmallTags || w.NoEmpty}
	}
	c.turns.byOrder = len(c.worldOnly(others.ranks)) > 0
	return c
}

// Rank returns the calling rank's number in the communicator, and Undefined if c is
// nil, as Split and Create return it to ranks that are not members.
func (c *Comm) Rank() int {
	if c == nil {
		return Undefined
	}
	return c.rank
}

// Size returns the number of ranks, 0 if c is nil.
func (c *Comm) Size() int {
	if c == nil {
		return 0
	}
	return c.group.Size()
}

// Group returns the group of the communicator's ranks.
func (c *Comm) Group() *Group {
	if c == nil {
		return nil
	}
	return c.group
}

// PeerInfo returns what the device knows of the communicator's rank r, such as its
// profile and what its wire cannot carry.
func (c *Comm) PeerInfo(r int) (mpe.PeerInfo, error) {
	k := c.callf("PeerInfo")
	if err := k.check(); err != nil {
		return mpe.PeerInfo{}, err
	}
	if r < 0 || r >= len(c.members) {
		return mpe.PeerInfo{}, k.noRank(r)
	}
	return c.p.peers[c.members[r].world], nil
}

// Compare returns Ident for the same communicator, Congruent for one of the same
// ranks in the same order, Similar for the same ranks in another order, and
// Unequal otherwise.
func (c *Comm) Compare(other *Comm) Comparison {
	if c == other {
		return Ident
	}
	if c == nil || other == nil || c.p != other.p {
		return Unequal
	}
	if (c.remote == nil) != (other.remote == nil) {
		return Unequal
	}
	if r := max(c.group.Compare(other.group), c.remote.Compare(other.remote)); r != Ident {
		return r
	}
	return Congruent
}

// Free deletes the communicator's attributes, and ends its use. Later calls with it fail with ErrComm; requests
// that are under way are not affected. It is local: it sends nothing and waits for no
// other rank. The number of a communicator is not used again. An error of an attribute's delete function
// is returned, and the communicator stays.
func (c *Comm) Free() error {
	k := c.callf("Free")
	if err := k.check(); err != nil {
		return err
	}
	if c.number == worldNumber || c.number == selfNumber {
		return k.failf(ErrComm, "%v cannot be freed: Finalize ends it", c)
	}
	if err := c.attributes.Clear(c); err != nil {
		return k.error(ErrOther, err)
	}
	if !c.freed.Swap(true) {
		c.p.dev.FreeCommunicator(c.number | internal)
	}
	return nil
}

// Name returns the name given by SetName; "world" for the world and "" for other
// communicators if there is none.
func (c *Comm) Name() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// SetName names the communicator, for error messages. It is local.
func (c *Comm) SetName(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name
}

// String is the name, or a description.
func (c *Comm) String() string {
	if c == nil {
		return "the nil communicator"
	}
	if name := c.Name(); name != "" {
		return name
	}
	return fmt.Sprintf("communicator %d", c.number)
}
