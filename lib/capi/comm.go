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

// comm is a communicator and what only C programs have of it.
type comm struct {
	*mpi.Comm
	l          *Library
	handle     uint64
	errhandler atomic.Pointer[errhandler] // nil is the initial one
	attributes caching.Attributes[object]
	// buffer is the buffer of MPI_Comm_attach_buffer, and session the one of the session that the communicator belongs
	// to, or nil.
	buffer  sendBuffer
	session *mpi.SendBuffer
}

func (c *comm) handler() *errhandler {
	if h := c.errhandler.Load(); h != nil {
		return h
	}
	return c.l.initial
}

var _ = add(map[string]implementation{
	"Comm_size": (*args).commSize,
	// Nothing starts processes, so no program has a parent. Programs ask whether they have one.
	"Comm_get_parent":   func(a *args) error { return a.setHandle(0, a.l.abi.null[kindComm]) },
	"Comm_rank":         (*args).commRank,
	"Comm_dup":          (*args).commDup,
	"Comm_split":        (*args).commSplit,
	"Comm_create":       (*args).commCreate,
	"Comm_create_group": (*args).commCreateGroup,
	"Comm_split_type":   (*args).commSplitType,
	"Comm_idup":         (*args).commIdup,
	"Comm_idup_with_info": func(a *args) error {
		a.list[1], a.list[2] = a.list[2], a.list[3] // there are no hints
		return a.commIdup()
	},
	"Comm_free":         (*args).commFree,
	"Comm_disconnect":   (*args).commFree,
	"Comm_group":        (*args).commGroup,
	"Comm_compare":      (*args).commCompare,
	"Comm_set_name":     (*args).commSetName,
	"Comm_get_name":     (*args).commGetName,
	"Comm_test_inter":   (*args).commTestInter,
	"Comm_remote_size":  (*args).remoteSize,
	"Comm_remote_group": (*args).remoteGroup,
	"Intercomm_create":  (*args).intercommCreate,
	"Intercomm_merge":   (*args).intercommMerge,
})

func itoa(n int) string { return strconv.Itoa(n) }

// open begins with the world of a running rank.
func (l *Library) open(world *mpi.Comm) {
	for _, c := range []struct {
		to      **comm
		comm    *mpi.Comm
		handle  string
		nameTag string
	}{{&l.world, world, "COMM_WORLD", "MPI_COMM_WORLD"}, {&l.self, world.Self(), "COMM_SELF", "MPI_COMM_SELF"}} {
		c.comm.SetName(c.nameTag)
		*c.to = &comm{Comm: c.comm, l: l, handle: l.abi.handle(kindComm, l.abi.constants[c.handle])}
		l.comms.name((*c.to).handle, *c.to)
	}
	l.buffer.SendBuffer = world.SendBuffer()
	*l.fixed[int(l.abi.constants["UNIVERSE_SIZE"])] = int32(world.Size())
}

// close calls what the program wants to have called at its end: the functions of the attributes of MPI_COMM_SELF.
func (l *Library) close() error {
	return l.self.attributes.Clear(l.self)
}

// newComm gives a communicator a handle; nil has that of none. One that cannot have a handle is freed.
func (a *args) newComm(i int, made *mpi.Comm, from *comm) (*comm, error) {
	if made == nil {
		return nil, a.setHandle(i, a.l.abi.null[kindComm])
	}
	c, handle, err := give(a, a.l.comms, i)
	if err != nil {
		_ = made.Free() // the handle's error is the one to report
		return nil, err
	}
	c.is(a, made, handle, from)
	return c, nil
}

// is makes c a communicator, which inherits the error handler of the one it was made of, if there is one, and the
// call's session.
func (c *comm) is(a *args, made *mpi.Comm, handle uint64, from *comm) {
	c.Comm, c.l, c.handle, c.session = made, a.l, handle, a.inherited
	if c.session != nil {
		made.SetSendBuffers(c.session)
	}
	if from == nil {
		return
	}
	if h := from.errhandler.Load(); h != nil {
		a.l.use(h)
		c.errhandler.Store(h)
	}
}

// setComm gives a communicator that was made of the call's one a handle, unless there is an error.
func (a *args) setComm(i int, made *mpi.Comm, err error) error {
	if err == nil {
		_, err = a.newComm(i, made, a.comm)
	}
	return err
}

func (a *args) commSize() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	return a.setInt(1, c.Size())
}

func (a *args) commRank() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	return a.setInt(1, c.Rank())
}

func (a *args) commDup() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	made, err := c.Dup(context.Background())
	if err != nil {
		return err
	}
	d, err := a.newComm(1, made, c)
	if err != nil {
		return err
	}
	if err := c.attributes.CopyTo(&d.attributes, c); err != nil {
		_ = d.Free() // the error of the function is the one to report
		a.l.release(d.errhandler.Load())
		revoke(a, a.l.comms, 1, d.handle)
		return err
	}
	return nil
}

func (a *args) commSplit() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	color := a.int(1)
	if color == a.l.abi.undefined {
		color = mpi.Undefined
	}
	made, err := c.Split(context.Background(), color, a.int(2))
	return a.setComm(3, made, err)
}

// refuseMaking returns the error for which a call that makes a communicator of all members is refused. Those of the others end.
func (a *args) refuseMaking(err error) error {
	if a.comm != nil {
		mpi.Foreign.RefuseMaking(a.comm.Comm, classOf(err))
	}
	return err
}

func (a *args) commCreate() error {
	if _, err := a.communicator(0); err != nil {
		return err
	}
	if _, err := a.group(1); err != nil {
		return a.refuseMaking(err)
	}
	return a.create(2, func(c *comm, g *mpi.Group) (*mpi.Comm, error) { return c.CreateAll(context.Background(), g) })
}

func (a *args) commCreateGroup() error {
	tag := a.sendTag(2)
	if tag >= 0 {
		tag %= mpi.MaxCreateTag + 1 // those that are larger are as good as any
	}
	return a.create(3, func(c *comm, g *mpi.Group) (*mpi.Comm, error) { return c.Create(context.Background(), g, tag) })
}

func (a *args) create(to int, do func(*comm, *mpi.Group) (*mpi.Comm, error)) error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	g, err := a.group(1)
	if err != nil {
		return err
	}
	made, err := do(c, g)
	return a.setComm(to, made, err)
}

// commSplitType: comm, type, key, info, new communicator.
func (a *args) commSplitType() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	kind, err := a.splitType()
	if err != nil {
		return a.refuseMaking(err)
	}
	made, err := c.SplitType(context.Background(), kind, a.int(2))
	return a.setComm(4, made, err)
}

// splitType is what the ranks of a communicator have in common. Of the resources of a host none is known by which to split, but its memory.
func (a *args) splitType() (mpi.SplitType, error) {
	known := a.l.abi.constants
	switch kind := int64(a.int(1)); kind {
	case 0: // no kind, and what the ABI does not name
	case int64(a.l.abi.undefined), known["COMM_TYPE_HW_UNGUIDED"]:
		return mpi.Undefined, nil
	case known["COMM_TYPE_SHARED"]:
		return mpi.SharedMemory, nil
	case known["COMM_TYPE_HW_GUIDED"], known["COMM_TYPE_RESOURCE_GUIDED"]:
		if a.hint(3, "mpi_hw_resource_type") == "mpi_shared_memory" {
			return mpi.SharedMemory, nil
		}
		return mpi.Undefined, nil
	case mpichNeighborhood:
		if a.l.abi.handleLen != 4 {
			break
		}
		if dir := a.hint(3, "nbhd_common_dirname"); dir != "" {
			if _, err := os.Stat(dir); err == nil {
				return mpi.SharedMemory, nil
			}
		}
		return mpi.Undefined, nil
	}
	return 0, errorf(mpi.ErrArg, "%d is no kind of ranks to split by", a.int(1))
}

// mpichNeighborhood is MPIX_COMM_TYPE_NEIGHBORHOOD of MPICH: ranks that have a directory in common, as those of a host have.
const mpichNeighborhood = 4

// hint is the value of a key in an info, or "".
func (a *args) hint(i int, key string) string {
	n := a.l.infos.get(a.handle(i, kindInfo))
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

// commIdup: comm, new communicator, request.
func (a *args) commIdup() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	// What can be refused is refused before the others' calls can complete.
	var d *comm
	var handle uint64
	if _, err = a.where(2); err == nil {
		d, handle, err = give(a, a.l.comms, 1)
	}
	if err == nil {
		if err = c.attributes.CopyTo(&d.attributes, c); err != nil {
			revoke(a, a.l.comms, 1, handle)
		}
	}
	if err != nil {
		mpi.Foreign.Refuse(c.Comm, coll.Allreduce, classOf(err))
		return err
	}
	made, r, err := c.Idup()
	if err != nil {
		revoke(a, a.l.comms, 1, handle)
		return err
	}
	d.is(a, made, handle, c)
	return a.newRequest(2, r, nil, false)
}

func (a *args) commFree() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	h := a.l.handleAt(p, 0)
	c := a.l.comms.get(h)
	switch {
	case c == nil:
		return errorf(mpi.ErrComm, "%#x is no communicator, or has been freed", h)
	case c == a.l.world || c == a.l.self:
		return errorf(mpi.ErrComm, "%v cannot be freed", c.Comm)
	}
	a.comm = c
	if err := c.attributes.Clear(c); err != nil {
		return err
	}
	if err := c.Free(); err != nil {
		return err
	}
	a.comm = nil
	a.l.release(c.errhandler.Load())
	a.l.comms.remove(h)
	a.l.setHandleAt(p, 0, a.l.abi.null[kindComm])
	return nil
}

func (a *args) commGroup() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	return a.newGroup(1, c.Group())
}

// comparison is a result of comparing, in the ABI.
func (a *args) comparison(i int, c mpi.Comparison) error {
	return a.setInt(i, int(a.l.abi.constants[[...]string{mpi.Ident: "IDENT", mpi.Congruent: "CONGRUENT", mpi.Similar: "SIMILAR", mpi.Unequal: "UNEQUAL"}[c]]))
}

func (a *args) commCompare() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	d, err := a.communicator(1)
	if err != nil {
		return err
	}
	return a.comparison(2, c.Compare(d.Comm))
}

func (a *args) commSetName() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	name, err := a.text(1)
	if err != nil {
		return err
	}
	c.SetName(name)
	return nil
}

func (a *args) commGetName() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	n, err := a.setText(1, c.Name(), int(a.l.abi.constants["MAX_OBJECT_NAME"]))
	if err != nil {
		return err
	}
	return a.setInt(2, n)
}

func (a *args) commTestInter() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	return a.setFlag(1, c.IsInter())
}

// ranks is how many blocks the buffers of collective calls have that have one for each rank.
func (c *comm) ranks() int {
	if c.IsInter() {
		return c.RemoteSize()
	}
	return c.Size()
}

// receivesAt reports whether the caller is the root.
func (c *comm) receivesAt(root int) bool {
	if c.IsInter() {
		return root == mpi.Root
	}
	return root == c.Rank()
}

// intercommCreate: local comm, local leader, peer comm, remote leader, tag, new communicator.
func (a *args) intercommCreate() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	var peer *mpi.Comm
	if c.Rank() == a.int(1) { // elsewhere it may be anything
		p, err := a.communicator(2)
		if err != nil {
			return err
		}
		peer = p.Comm
	}
	a.comm = c
	made, err := c.IntercommCreate(context.Background(), a.destination(1), peer, a.destination(3), a.sendTag(4))
	return a.setComm(5, made, err)
}

func (a *args) intercommMerge() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	made, err := c.Merge(context.Background(), a.int(1) != 0)
	return a.setComm(2, made, err)
}

// intercommunicator is communicator for those alone.
func (a *args) intercommunicator(i int) (*comm, error) {
	c, err := a.communicator(i)
	if err == nil && !c.IsInter() {
		err = errorf(mpi.ErrComm, "%v is no intercommunicator", c.Comm)
	}
	return c, err
}

func (a *args) remoteSize() error {
	c, err := a.intercommunicator(0)
	if err != nil {
		return err
	}
	return a.setInt(1, c.RemoteSize())
}

func (a *args) remoteGroup() error {
	c, err := a.intercommunicator(0)
	if err != nil {
		return err
	}
	return a.newGroup(1, c.RemoteGroup())
}
