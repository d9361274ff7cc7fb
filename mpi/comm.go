package mpi

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi/caching"
)

// Comm is a communicator: a group of ranks whose messages are separate from the messages of every other
// communicator. Any number of goroutines may call its methods, and the functions that take it, concurrently
// (MPI_THREAD_MULTIPLE). The exceptions are Dup, Split and the collective calls from Barrier to Scan: all
// members must make these calls in the same order, and therefore sequentially. Any number of nonblocking calls
// may be pending.
type Comm struct {
	proc   *process
	number uint32
	group  *Group
	rank   int
	// members holds, for each rank in the communicator, the data that every call to that destination needs.
	members []member
	// worldToLocal maps a rank of the world to its rank in the communicator, or to Undefined if it is not a member.
	worldToLocal []int32
	freed        atomic.Bool
	// callSequence numbers the collective calls that transfer data.
	callSequence callSequence
	// agreementCount counts calls of Dup and Split, so that messages of a failed call do not match the next call.
	agreementCount atomic.Uint32
	// broken is set if a call of Dup or Split failed halfway, so that later calls fail as well.
	broken atomic.Bool
	// roundCount counts the calls implemented as rounds.
	roundCount atomic.Uint32
	// channelCount counts calls of PsendInit.
	channelCount atomic.Uint32
	// origins describes the calls that started resting sends, so that these sends can share the descriptions. The lock
	// of process.resting guards it.
	origins [len(origins)]mpe.Origin
	// buffers holds the send buffers set by SetSendBuffers.
	buffers atomic.Pointer[[]*SendBuffer]
	// attributes holds the values cached under Keyvals.
	attributes caching.Attributes[*Comm]
	// topology may be nil.
	topology topology
	// remote is the remote group of an intercommunicator, and nil in an intracommunicator.
	remote *Group

	mu   sync.Mutex
	name string
}

// member is a rank of a communicator. It is packed into one word because every call reads it.
type member struct {
	worldRank int32
	// hasWireLimits is set if the rank's wire cannot carry every message.
	hasWireLimits bool
}

// newIntracomm returns a communicator of group, of which the calling rank must be a member.
func (p *process) newIntracomm(number uint32, group *Group, name string) *Comm {
	return p.newComm(number, group, group, name)
}

// newComm returns a communicator whose own ranks are group. It sends messages to the ranks of others, which is group
// itself or the remote group.
func (p *process) newComm(number uint32, group, others *Group, name string) *Comm {
	comm := &Comm{proc: p, number: number, group: group, rank: group.Rank(), name: name}
	comm.worldToLocal = make([]int32, len(p.peers))
	for i := range comm.worldToLocal {
		comm.worldToLocal[i] = Undefined
	}
	comm.members = make([]member, len(others.ranks))
	for i, r := range others.ranks {
		comm.worldToLocal[r] = int32(i)
		w := &p.peers[r]
		comm.members[i] = member{worldRank: int32(r), hasWireLimits: w.Words || w.SmallTags || w.NoEmpty}
	}
	comm.callSequence.matchByOrder = len(comm.worldOnly(others.ranks)) > 0
	return comm
}

// Rank returns the calling rank's number in the communicator. It returns Undefined if c is nil: Split and Create return
// a nil communicator to ranks that are not members.
func (c *Comm) Rank() int {
	if c == nil {
		return Undefined
	}
	return c.rank
}

// Size returns the number of ranks, or 0 if c is nil.
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

// PeerInfo returns the device's information about rank r, such as its profile and the limits of its wire.
func (c *Comm) PeerInfo(r int) (mpe.PeerInfo, error) {
	k := c.newCall("PeerInfo")
	if err := k.check(); err != nil {
		return mpe.PeerInfo{}, err
	}
	if r < 0 || r >= len(c.members) {
		return mpe.PeerInfo{}, k.rankError(r)
	}
	return c.proc.peers[c.members[r].worldRank], nil
}

// Compare returns Ident if other is the same communicator, Congruent if it has the same ranks in the same order,
// Similar if it has the same ranks in another order, and Unequal otherwise.
func (c *Comm) Compare(other *Comm) Comparison {
	if c == other {
		return Ident
	}
	if c == nil || other == nil || c.proc != other.proc {
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

// Free deletes the communicator's attributes and invalidates it. Later calls on it fail with ErrComm; pending
// requests are not affected. Free is local: it sends nothing and does not wait for other ranks. The number of
// the communicator is not reused. If the delete function of an attribute fails, Free returns its error and the
// communicator remains valid.
func (c *Comm) Free() error {
	k := c.newCall("Free")
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
		c.proc.dev.FreeCommunicator(c.number | internalFlag)
	}
	return nil
}

// Name returns the name set by SetName. The default is "world" for the world and "" for any other communicator.
func (c *Comm) Name() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// SetName sets the communicator's name, which appears in error messages. The call is local.
func (c *Comm) SetName(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name
}

// String returns the name, or a description of a communicator without a name.
func (c *Comm) String() string {
	if c == nil {
		return "the nil communicator"
	}
	if name := c.Name(); name != "" {
		return name
	}
	return fmt.Sprintf("communicator %d", c.number)
}
