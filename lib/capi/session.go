package capi

import (
	"context"
	"errors"
	"hash/fnv"
	"strings"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// session is a use of the rank besides that of MPI_Init.
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
	"Session_get_pset_info":   (*args).sessionSetInfo,
	"Group_from_session_pset": (*args).sessionGroup,

	"Session_create_errhandler": func(a *args) error { return a.newErrhandler(0, 1) },
	"Session_set_errhandler":    (*args).sessionSetErrhandler,
	"Session_get_errhandler":    (*args).sessionGetErrhandler,
	"Session_call_errhandler":   (*args).sessionCallErrhandler,

	"Comm_create_from_group": (*args).commFromGroup,

	"Intercomm_create_from_groups": (*args).intercommFromGroups,
})

// processSets are the names of those that a session has.
var processSets = [...]string{"mpi://WORLD", "mpi://SELF"}

// session is a session, whose error handler is that of the call from then on.
func (a *args) session(h uint64) (*session, error) {
	s := a.l.sessions.get(h)
	if s == nil {
		return nil, errorf(errSession, "%#x is no session, or has been finalized", h)
	}
	a.handler, a.handlerOf, a.inherited = s.errhandler.Load(), s.handle, s.buffer.SendBuffer
	return s, nil
}

func (a *args) sessionSetErrhandler() error {
	s, err := a.session(a.handle(0, kindSession))
	if err != nil {
		return err
	}
	h, err := a.errhandler(a.handle(1, kindErrhandler))
	if err != nil {
		return err
	}
	a.l.use(h)
	a.l.release(s.errhandler.Swap(h))
	return nil
}

func (a *args) sessionGetErrhandler() error {
	s, err := a.session(a.handle(0, kindSession))
	if err != nil {
		return err
	}
	return a.shareErrhandler(1, s.errhandler.Load())
}

func (a *args) sessionCallErrhandler() error {
	if _, err := a.session(a.handle(0, kindSession)); err != nil {
		return err
	}
	a.l.raise(a, userError(a.int(1)))
	return nil
}

// sessionInit: info, error handler, session.
func (a *args) sessionInit() error {
	h, err := a.errhandler(a.handle(1, kindErrhandler))
	if err != nil {
		return err
	}
	a.handler, a.handlerOf = h, a.l.abi.null[kindSession]
	if _, err := a.where(2); err != nil {
		return err
	}
	if err := a.l.begin(); err != nil {
		return err
	}
	s, handle, err := give(a, a.l.sessions, 2)
	if err != nil {
		return errors.Join(err, a.l.end())
	}
	a.l.use(h)
	a.l.sessioned.Store(true)
	s.handle, s.buffer.SendBuffer = handle, a.l.world.NewSendBuffer()
	s.errhandler.Store(h)
	return nil
}

func (a *args) sessionFinalize() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	s, err := a.session(a.l.handleAt(p, 0))
	if err != nil {
		return err
	}
	err = errors.Join(s.buffer.end(), a.l.end())
	h := *a.handler // what is left of it if the session had it last
	a.l.release(a.handler)
	a.handler = &h
	a.l.sessions.remove(s.handle)
	a.l.setHandleAt(p, 0, a.l.abi.null[kindSession])
	return err
}

func (a *args) sessionInfo() error {
	if _, err := a.session(a.handle(0, kindSession)); err != nil {
		return err
	}
	return a.newInfo(1, [][2]string{{"thread_level", "MPI_THREAD_MULTIPLE"}})
}

func (a *args) sessionSets() error {
	if _, err := a.session(a.handle(0, kindSession)); err != nil {
		return err
	}
	return a.setInt(2, len(processSets))
}

// sessionSet: session, info, number, length with the 0, which becomes that of the name, name.
func (a *args) sessionSet() error {
	if _, err := a.session(a.handle(0, kindSession)); err != nil {
		return err
	}
	n := a.int(2)
	if n < 0 || n >= len(processSets) {
		return errorf(mpi.ErrArg, "there is no process set %d: there are %d", n, len(processSets))
	}
	p, err := a.where(3)
	if err != nil {
		return err
	}
	if room := int(*(*int32)(p)); room > 0 {
		if _, err := a.setText(4, processSets[n], room); err != nil {
			return err
		}
	}
	return a.setInt(3, len(processSets[n])+1)
}

// processSet is the group of the process set that argument 1 names.
func (a *args) processSet() (*mpi.Group, error) {
	if _, err := a.session(a.handle(0, kindSession)); err != nil {
		return nil, err
	}
	name, err := a.text(1)
	switch {
	case err != nil:
		return nil, err
	case strings.EqualFold(name, processSets[0]):
		return a.l.world.Group(), nil
	case strings.EqualFold(name, processSets[1]):
		return a.l.self.Group(), nil
	}
	return nil, errorf(mpi.ErrArg, "there is no process set %q: there are %v", name, processSets)
}

func (a *args) sessionSetInfo() error {
	g, err := a.processSet()
	if err != nil {
		return err
	}
	return a.newInfo(2, [][2]string{{"mpi_size", itoa(g.Size())}})
}

func (a *args) sessionGroup() error {
	g, err := a.processSet()
	if err != nil {
		return err
	}
	return a.newGroup(2, g)
}

// commFromGroup: group, a name of the call, info, error handler, new communicator.
func (a *args) commFromGroup() error {
	h, _, made, err := a.fromGroup(1, 3)
	if err != nil {
		return err
	}
	return a.newHandledComm(4, made, h)
}

// fromGroup makes a communicator of the group of argument 0, by the name of the call, of which it returns a tag, and with an error handler for it.
func (a *args) fromGroup(name, handler int) (h *errhandler, tag int, made *mpi.Comm, err error) {
	if h, err = a.errhandler(a.handle(handler, kindErrhandler)); err != nil {
		return nil, 0, nil, err
	}
	a.handler, a.handlerOf = h, a.l.abi.null[kindComm]
	g, err := a.group(0)
	if err != nil {
		return nil, 0, nil, err
	}
	text, err := a.text(name)
	if err != nil {
		return nil, 0, nil, err
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // a hash does not fail
	tag = int(sum.Sum32() % (mpi.MaxCreateTag + 1))
	made, err = a.l.world.Create(context.Background(), g, tag)
	return h, tag, made, err
}

// newHandledComm gives a communicator a handle, and an error handler.
func (a *args) newHandledComm(i int, made *mpi.Comm, h *errhandler) error {
	c, err := a.newComm(i, made, nil)
	if c != nil {
		a.l.use(h)
		c.errhandler.Store(h)
	}
	return err
}

// intercommFromGroups: local group, local leader, remote group and leader, which the local leader gives, a name of the call, info,
// error handler, new communicator.
func (a *args) intercommFromGroups() error {
	h, tag, local, err := a.fromGroup(4, 6)
	if err != nil {
		return err
	}
	if local == nil {
		return errorf(mpi.ErrGroup, "this rank is not in the local group")
	}
	leader, remote := a.destination(1), []int{mpi.Undefined}
	if local.Rank() == leader {
		g, err := a.group(2)
		if err == nil {
			remote, err = g.Translate([]int{a.destination(3)}, a.l.world.Group())
		}
		if err != nil {
			remote = []int{mpi.Undefined} // the call that follows fails on all members
		}
	}
	made, err := local.IntercommCreate(context.Background(), leader, a.l.world.Comm, remote[0], tag)
	if e := local.Free(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return a.newHandledComm(7, made, h)
}
