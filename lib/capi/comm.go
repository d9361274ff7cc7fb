package capi

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/caching"
)

// comm is a communicator together with the state that only C programs use.
type comm struct {
	*mpi.Comm
	lib        *Library
	handle     uint64
	errhandler atomic.Pointer[errhandler] // nil means the initial one
	attributes caching.Attributes[object]
	// buffer is the buffer attached by MPI_Comm_attach_buffer. sessionBuf is the buffer of the session that the
	// communicator belongs to, or nil.
	buffer     sendBuffer
	sessionBuf *mpi.SendBuffer
	// sequence is memory of C for the number of the last collective call, or nil.
	sequence *uint32
}

func (c *comm) handler() *errhandler {
	if h := c.errhandler.Load(); h != nil {
		return h
	}
	return c.lib.defaultHandler
}

var _ = add(map[string]implementation{
	"Comm_size": func(a *args) { a.setInt(1, a.communicator(0).Size()) },
	// No program has a parent, because the library cannot start processes. Nevertheless, programs query the parent.
	"Comm_get_parent":   func(a *args) { a.setHandle(0, a.lib.abi.null[kindComm]) },
	"Comm_rank":         func(a *args) { a.setInt(1, a.communicator(0).Rank()) },
	"Comm_dup":          (*args).commDup,
	"Comm_split":        (*args).commSplit,
	"Comm_create":       (*args).commCreate,
	"Comm_create_group": (*args).commCreateGroup,
	"Comm_split_type":   (*args).commSplitType,
	"Comm_idup":         (*args).commIdup,
	"Comm_idup_with_info": func(a *args) {
		a.list[1], a.list[2] = a.list[2], a.list[3] // hints are ignored
		a.commIdup()
	},
	"Comm_free":         (*args).commFree,
	"Comm_disconnect":   (*args).commFree,
	"Comm_group":        func(a *args) { a.newGroup(1, a.communicator(0).Group()) },
	"Comm_compare":      func(a *args) { a.setComparison(2, a.communicator(0).Compare(a.communicator(1).Comm)) },
	"Comm_set_name":     func(a *args) { a.communicator(0).SetName(a.cString(1)) },
	"Comm_get_name":     (*args).commGetName,
	"Comm_test_inter":   func(a *args) { a.setFlag(1, a.communicator(0).IsInter()) },
	"Comm_remote_size":  func(a *args) { a.setInt(1, a.intercommunicator(0).RemoteSize()) },
	"Comm_remote_group": func(a *args) { a.newGroup(1, a.intercommunicator(0).RemoteGroup()) },
	"Intercomm_create":  (*args).intercommCreate,
	"Intercomm_merge":   (*args).intercommMerge,
})

func itoa(n int) string { return strconv.Itoa(n) }

// setWorld sets up the predefined communicators of a running rank.
func (l *Library) setWorld(world *mpi.Comm) {
	for _, c := range []struct {
		to      **comm
		comm    *mpi.Comm
		handle  string
		nameTag string
	}{{&l.world, world, "COMM_WORLD", "MPI_COMM_WORLD"}, {&l.self, world.Self(), "COMM_SELF", "MPI_COMM_SELF"}} {
		c.comm.SetName(c.nameTag)
		*c.to = &comm{Comm: c.comm, lib: l, handle: l.abi.handle(kindComm, l.abi.constants[c.handle])}
		l.comms.define((*c.to).handle, *c.to)
	}
	l.buffer.SendBuffer = world.SendBuffer()
	*l.fixedAttrs[int(l.abi.constants["UNIVERSE_SIZE"])] = int32(world.Size())
}

// clearSelf deletes the attributes of MPI_COMM_SELF. Programs use the delete functions of these attributes as callbacks
// that run when the program ends.
func (l *Library) clearSelf() error {
	return l.self.attributes.Clear(l.self)
}

// newComm stores a handle for a communicator, or the null handle if made is nil. If no handle is left, newComm
// frees the communicator.
func (a *args) newComm(i int, made *mpi.Comm, from *comm) *comm {
	if made == nil {
		a.setHandle(i, a.lib.abi.null[kindComm])
		return nil
	}
	c, handle := newObjectOr(a, a.lib.comms, i, func() { _ = made.Free() })
	c.init(a, made, handle, from)
	return c
}

// init sets up c as a communicator. c inherits the error handler of the communicator from which it was made, if
// any, and the session of the call.
func (c *comm) init(a *args, made *mpi.Comm, handle uint64, from *comm) {
	c.Comm, c.lib, c.handle, c.sessionBuf = made, a.lib, handle, a.inheritedBuffer
	if c.sessionBuf != nil {
		made.SetSendBuffers(c.sessionBuf)
	}
	if from == nil {
		return
	}
	if h := from.errhandler.Load(); h != nil {
		a.lib.retain(h)
		c.errhandler.Store(h)
	}
}

// setComm stores a handle for a communicator that was made from the call's communicator argument.
func (a *args) setComm(i int, made *mpi.Comm) { a.newComm(i, made, a.comm) }

// commDup implements MPI_Comm_dup(comm, newcomm). If a copy callback fails, the new communicator is freed again.
func (a *args) commDup() {
	c := a.communicator(0)
	d := a.newComm(1, must(c.Dup(context.Background())), c)
	if err := c.attributes.CopyTo(&d.attributes, c); err != nil {
		_ = d.Free() // the error of the callback is reported
		a.lib.release(d.errhandler.Load())
		removeObject(a, a.lib.comms, 1, d.handle)
		check(err)
	}
}

// commSplit implements MPI_Comm_split(comm, color, key, newcomm).
func (a *args) commSplit() {
	c := a.communicator(0)
	color := a.int(1)
	if color == a.lib.abi.undefined {
		color = mpi.Undefined
	}
	a.setComm(3, must(c.Split(context.Background(), color, a.int(2))))
}

// decodeCreation decodes the arguments of a call in which all members make a communicator. If decoding fails, the calls
// of the other members fail too.
func (a *args) decodeCreation(decode func()) {
	err := attempt(decode)
	if err != nil && a.comm != nil {
		mpi.Foreign.RefuseCreation(a.comm.Comm, classOf(err))
	}
	check(err)
}

// commCreate implements MPI_Comm_create(comm, group, newcomm), a call of all members of comm.
func (a *args) commCreate() {
	a.communicator(0)
	a.decodeCreation(func() { a.group(1) })
	a.createComm(2, func(c *comm, g *mpi.Group) (*mpi.Comm, error) { return c.CreateAll(context.Background(), g) })
}

// commCreateGroup implements MPI_Comm_create_group(comm, group, tag, newcomm), a call of the members of group only.
func (a *args) commCreateGroup() {
	tag := a.tag(2)
	if tag >= 0 {
		tag %= mpi.MaxCreateTag + 1 // larger tags may be mapped to any other tag
	}
	a.createComm(3, func(c *comm, g *mpi.Group) (*mpi.Comm, error) { return c.Create(context.Background(), g, tag) })
}

func (a *args) createComm(to int, do func(*comm, *mpi.Group) (*mpi.Comm, error)) {
	a.setComm(to, must(do(a.communicator(0), a.group(1))))
}

// commSplitType implements MPI_Comm_split_type(comm, split_type, key, info, newcomm).
func (a *args) commSplitType() {
	c := a.communicator(0)
	var kind mpi.SplitType
	a.decodeCreation(func() { kind = a.splitType() })
	a.setComm(4, must(c.SplitType(context.Background(), kind, a.int(2))))
}

// splitType decodes the property by which a communicator is to be split. Shared memory is the only hardware
// resource that the library knows.
func (a *args) splitType() mpi.SplitType {
	known := a.lib.abi.constants
	switch kind := int64(a.int(1)); kind {
	case 0: // not a kind, but the value for kinds that the ABI does not name
	case int64(a.lib.abi.undefined), known["COMM_TYPE_HW_UNGUIDED"]:
		return mpi.Undefined
	case known["COMM_TYPE_SHARED"]:
		return mpi.SharedMemory
	case known["COMM_TYPE_HW_GUIDED"], known["COMM_TYPE_RESOURCE_GUIDED"]:
		if a.infoHint(3, "mpi_hw_resource_type") == "mpi_shared_memory" {
			return mpi.SharedMemory
		}
		return mpi.Undefined
	case mpichNeighborhood:
		if a.lib.abi.handleLen != 4 {
			break
		}
		if dir := a.infoHint(3, "nbhd_common_dirname"); dir != "" {
			if _, err := os.Stat(dir); err == nil {
				return mpi.SharedMemory
			}
		}
		return mpi.Undefined
	}
	panic(failf(mpi.ErrArg, "split type %d does not exist", a.int(1)))
}

// mpichNeighborhood is MPICH's MPIX_COMM_TYPE_NEIGHBORHOOD. It selects the ranks that share a directory, as ranks on
// the same host do.
const mpichNeighborhood = 4

// infoHint returns the value of a key in an info, or "".
func (a *args) infoHint(i int, key string) string {
	n := a.lib.infos.get(a.handle(i, kindInfo))
	if n == nil {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.find(key); k >= 0 {
		return n.pairs[k][1]
	}
	return ""
}

// commIdup implements MPI_Comm_idup(comm, newcomm, request).
func (a *args) commIdup() {
	c := a.communicator(0)
	// Finish all checks before the duplication begins, because the calls of the other members can then complete.
	var d *comm
	var handle uint64
	err := attempt(func() {
		a.checkedPointer(2)
		d, handle = newObject(a, a.lib.comms, 1)
	})
	if err == nil {
		if err = c.attributes.CopyTo(&d.attributes, c); err != nil {
			removeObject(a, a.lib.comms, 1, handle)
		}
	}
	if err != nil {
		mpi.Foreign.RefuseCollective(c.Comm, coll.Allreduce, classOf(err))
	}
	check(err)
	made, req, err := c.Idup()
	if err != nil {
		removeObject(a, a.lib.comms, 1, handle)
	}
	check(err)
	d.init(a, made, handle, c)
	a.newRequest(2, req, false)
}

// commFree implements MPI_Comm_free(comm) and MPI_Comm_disconnect(comm). The communicator's error handler no longer
// handles errors of the call once the communicator is freed.
func (a *args) commFree() {
	h := a.handleIn(0)
	c := findOrFail(a.lib.comms, h, mpi.ErrComm)
	if c == a.lib.world || c == a.lib.self {
		panic(failf(mpi.ErrComm, "%v cannot be freed", c.Comm))
	}
	a.comm = c
	check(c.attributes.Clear(c))
	c.endLeases()
	check(c.Free())
	a.comm = nil
	a.lib.release(c.errhandler.Load())
	removeObject(a, a.lib.comms, 0, h)
}

// setComparison writes the result of a comparison.
func (a *args) setComparison(i int, c mpi.Comparison) {
	names := [...]string{mpi.Ident: "IDENT", mpi.Congruent: "CONGRUENT", mpi.Similar: "SIMILAR", mpi.Unequal: "UNEQUAL"}
	a.setInt(i, int(a.lib.abi.constants[names[c]]))
}

func (a *args) commGetName() {
	c := a.communicator(0)
	a.setInt(2, a.setCString(1, c.Name(), int(a.lib.abi.constants["MAX_OBJECT_NAME"])))
}

// blockCount returns the number of blocks in a collective buffer with one block per rank.
func (c *comm) blockCount() int {
	if c.IsInter() {
		return c.RemoteSize()
	}
	return c.Size()
}

// isRoot reports whether the caller is the root.
func (c *comm) isRoot(root int) bool {
	if c.IsInter() {
		return root == mpi.Root
	}
	return root == c.Rank()
}

// intercommCreate implements MPI_Intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag,
// newintercomm).
func (a *args) intercommCreate() {
	c := a.communicator(0)
	var peer *mpi.Comm
	if c.Rank() == a.int(1) { // significant only at the leader
		peer = a.communicator(2).Comm
	}
	a.comm = c
	a.setComm(5, must(c.IntercommCreate(context.Background(), a.peer(1), peer, a.peer(3), a.tag(4))))
}

// intercommMerge implements MPI_Intercomm_merge(intercomm, high, newintracomm).
func (a *args) intercommMerge() {
	c := a.communicator(0)
	a.setComm(2, must(c.Merge(context.Background(), a.int(1) != 0)))
}

// intercommunicator is like communicator, but rejects intracommunicators.
func (a *args) intercommunicator(i int) *comm {
	c := a.communicator(i)
	if !c.IsInter() {
		panic(failf(mpi.ErrComm, "%v is not an intercommunicator", c.Comm))
	}
	return c
}
