package capi

import (
	"context"
	"errors"
	"hash/fnv"
	"strings"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// session is a user of the rank. The period between MPI_Init and MPI_Finalize counts as a user as well.
type session struct {
	handle     uint64
	errhandler atomic.Pointer[errhandler]
	buffer     sendBuffer
}

var _ = add(map[string]implementation{
	"Session_init":            (*args).sessionInit,
	"Session_finalize":        (*args).sessionFinalize,
	"Session_get_info":        (*args).sessionInfo,
	"Session_get_num_psets":   (*args).sessionSets,
	"Session_get_nth_pset":    (*args).sessionSet,
	"Session_get_pset_info":   func(a *args) { a.newInfo(2, [][2]string{{"mpi_size", itoa(a.processSet().Size())}}) },
	"Group_from_session_pset": func(a *args) { a.newGroup(2, a.processSet()) },

	"Session_create_errhandler": func(a *args) { a.newErrhandler(0, 1) },
	"Session_set_errhandler":    (*args).sessionSetErrhandler,
	"Session_get_errhandler":    (*args).sessionGetErrhandler,
	"Session_call_errhandler":   (*args).sessionCallErrhandler,

	"Comm_create_from_group": (*args).commFromGroup,

	"Intercomm_create_from_groups": (*args).intercommFromGroups,
})

// processSets lists the names of the process sets that every session has.
var processSets = [...]string{"mpi://WORLD", "mpi://SELF"}

// session returns a session argument. From then on, that session's error handler handles errors of the call.
func (a *args) session(h uint64) *session {
	s := a.lib.sessions.get(h)
	if s == nil {
		panic(failf(errSession, "%#x is not a session, or has been finalized", h))
	}
	a.handler, a.handlerOwner, a.inheritedBuffer = s.errhandler.Load(), s.handle, s.buffer.SendBuffer
	return s
}

func (a *args) sessionSetErrhandler() {
	s := a.session(a.handle(0, kindSession))
	h := a.errhandler(a.handle(1, kindErrhandler))
	a.lib.retain(h)
	a.lib.release(s.errhandler.Swap(h))
}

func (a *args) sessionGetErrhandler() {
	a.shareErrhandler(1, a.session(a.handle(0, kindSession)).errhandler.Load())
}

func (a *args) sessionCallErrhandler() {
	a.session(a.handle(0, kindSession))
	a.lib.handleError(a, userError(a.int(1)))
}

// sessionInit implements MPI_Session_init(info, errhandler, session).
func (a *args) sessionInit() {
	h := a.errhandler(a.handle(1, kindErrhandler))
	a.handler, a.handlerOwner = h, a.lib.abi.null[kindSession]
	a.checkedPointer(2)
	check(a.lib.addUser())
	var sess *session
	var handle uint64
	if err := attempt(func() { sess, handle = newObject(a, a.lib.sessions, 2) }); err != nil {
		check(errors.Join(err, a.lib.removeUser()))
	}
	a.lib.retain(h)
	a.lib.usedSessions.Store(true)
	sess.handle, sess.buffer.SendBuffer = handle, a.lib.world.NewSendBuffer()
	sess.errhandler.Store(h)
}

// sessionFinalize implements MPI_Session_finalize(session). The rank ends with its last user, which may be this
// session.
func (a *args) sessionFinalize() {
	p := a.checkedPointer(0)
	s := a.session(a.lib.handleAt(p, 0))
	err := errors.Join(s.buffer.close(), a.lib.removeUser())
	h := *a.handler // a copy, because the session may have had the last use
	a.lib.release(a.handler)
	a.handler = &h
	removeObject(a, a.lib.sessions, 0, s.handle)
	check(err)
}

func (a *args) sessionInfo() {
	a.session(a.handle(0, kindSession))
	a.newInfo(1, [][2]string{{"thread_level", "MPI_THREAD_MULTIPLE"}})
}

func (a *args) sessionSets() {
	a.session(a.handle(0, kindSession))
	a.setInt(2, len(processSets))
}

// sessionSet implements MPI_Session_get_nth_pset(session, info, n, pset_len, pset_name). pset_len includes the
// terminating 0, and is set to the length of the name.
func (a *args) sessionSet() {
	a.session(a.handle(0, kindSession))
	n := a.int(2)
	if n < 0 || n >= len(processSets) {
		panic(failf(mpi.ErrArg, "there is no process set %d: there are %d", n, len(processSets)))
	}
	p := a.checkedPointer(3)
	if room := int(*(*int32)(p)); room > 0 {
		a.setCString(4, processSets[n], room)
	}
	a.setInt(3, len(processSets[n])+1)
}

// processSet returns the group of the process set whose name is in argument 1.
func (a *args) processSet() *mpi.Group {
	a.session(a.handle(0, kindSession))
	name := a.cString(1)
	switch {
	case strings.EqualFold(name, processSets[0]):
		return a.lib.world.Group()
	case strings.EqualFold(name, processSets[1]):
		return a.lib.self.Group()
	}
	panic(failf(mpi.ErrArg, "there is no process set %q: there are %v", name, processSets))
}

// commFromGroup implements MPI_Comm_create_from_group(group, stringtag, info, errhandler, newcomm).
func (a *args) commFromGroup() {
	h, _, made := a.createFromGroup(1, 3)
	a.newHandledComm(4, made, h)
}

// createFromGroup makes a communicator from the group in argument 0. It derives the tag from a string argument.
// It also returns that tag and the error handler for the communicator.
func (a *args) createFromGroup(name, handler int) (h *errhandler, tag int, made *mpi.Comm) {
	h = a.errhandler(a.handle(handler, kindErrhandler))
	a.handler, a.handlerOwner = h, a.lib.abi.null[kindComm]
	g := a.group(0)
	text := a.cString(name)
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // never fails
	tag = int(sum.Sum32() % (mpi.MaxCreateTag + 1))
	return h, tag, must(a.lib.world.Create(context.Background(), g, tag))
}

// newHandledComm stores a handle for a communicator with an error handler.
func (a *args) newHandledComm(i int, made *mpi.Comm, h *errhandler) {
	if c := a.newComm(i, made, nil); c != nil {
		a.lib.retain(h)
		c.errhandler.Store(h)
	}
}

// intercommFromGroups implements a call with these arguments: local group, local leader, remote group and
// remote leader (both significant only at the local leader), string tag, info, error handler, new communicator.
func (a *args) intercommFromGroups() {
	h, tag, local := a.createFromGroup(4, 6)
	if local == nil {
		panic(failf(mpi.ErrGroup, "this rank is not in the local group"))
	}
	leader, remote := a.peer(1), []int{mpi.Undefined}
	if local.Rank() == leader {
		err := attempt(func() { remote = must(a.group(2).Translate([]int{a.peer(3)}, a.lib.world.Group())) })
		if err != nil {
			remote = []int{mpi.Undefined} // makes the next call fail on all members
		}
	}
	made, err := local.IntercommCreate(context.Background(), leader, a.lib.world.Comm, remote[0], tag)
	if e := local.Free(); err == nil {
		err = e
	}
	check(err)
	a.newHandledComm(7, made, h)
}
