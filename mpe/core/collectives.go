package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Package collective executes collective calls. Their messages are ordinary requests. finish appends the request of a
// completed message to Core.endedMessages. At the end of every event, flush reports the requests in that list to their
// calls, which then start their next steps.

// Prepare initializes request for a collective call; StartCall then starts the call. x provides the memory for the
// call. Prepare is not part of an event: it reads only immutable state.
func (e *Core) Prepare(request *Request, x *collective.Execution, operation *collective.Operation) error {
	if err := x.Prepare(operation, e); err != nil {
		return err
	}
	request.kind, request.peer, request.comm, request.tag, request.Call = opCollective, AnySource, operation.Comm,
		int32(operation.Tag), x
	request.Status.Peer = AnySource
	if request.collective, request.Status.Bytes = operation.Call.Collective,
		int64(operation.Call.Bytes); operation.Call.Vector {
		request.Status.Bytes = -1
	}
	return nil
}

// StartCall starts a prepared call.
func (e *Core) StartCall(request *Request) error {
	if e.state != running {
		return fmt.Errorf("rank %d: %w", e.rank, ErrClosed)
	}
	e.nextID++
	request.id, request.posted = e.nextID, e.now
	if err := e.calls.Start(request.Call, request); err != nil {
		return err
	}
	e.flush()
	recordPosted(e, request)
	return nil
}

// RefuseCall implements Engine.RefuseCollective.
func (e *Core) RefuseCall(c *collective.Operation, cause collective.FailureCause) {
	if e.state == running {
		e.calls.Refuse(c, cause)
		e.flush()
	}
}

// FreeCommunicator implements Engine.FreeCommunicator.
func (e *Core) FreeCommunicator(comm uint32) {
	if e.state == running {
		e.calls.Free(comm)
	}
}

// advanceCalls reports completed messages to their calls, which then start their next steps. It runs at the end of an
// event.
func (e callEngine) advanceCalls() {
	for len(e.endedMessages) > 0 || e.calls.Pending() {
		for i := 0; i < len(e.endedMessages); i++ {
			request := e.endedMessages[i]
			if message := request.message; message != nil { // nil if it was cancelled meanwhile
				err := request.Err
				if errors.Is(err, extended.ErrAborted) { // the peer's call has failed
					err = fmt.Errorf("%w: %w", collective.ErrCallFailed, err)
				}
				onFlowEnded(request)
				e.calls.MessageDone(message, request.Status.Bytes, err)
			}
			e.effects.Release(request)
		}
		clear(e.endedMessages)
		e.endedMessages = e.endedMessages[:0]
		e.calls.Advance()
	}
}

// Wire implements collective.Caller.
func (e *Core) Wire(rank int) (collective.Wire, error) {
	if err := e.CheckRank(rank); err != nil || rank == e.rank {
		return collective.Wire{}, err
	}
	return e.peers.at(rank).wire, nil
}

// WireOf returns the properties of a peer's wire that collective calls depend on, given the results of Device.Peer.
func WireOf(p PeerInfo, err error) (collective.Wire, error) {
	return collective.Wire{Profile: p.Profile, Words: p.Words, NoComms: p.NoComms, NoEmpty: p.NoEmpty}, err
}

// callEngine provides the services of a core that collective calls need.
type callEngine struct{ *Core }

// Shared returns the shared buffers, or nil.
func (e callEngine) Shared() collective.SharedBuffers { return e.cfg.Shared }
func (e callEngine) Random() uint64                   { return e.effects.Random() }
func (e callEngine) Compute(j collective.Job) {
	e.out.Jobs, e.out.Rare = append(e.out.Jobs, j), true
}

func (e callEngine) Start(m *collective.Message) error { return e.startMessage(e.newMessage(m)) }

// newMessage creates the request for a message of a collective call.
func (e callEngine) newMessage(message *collective.Message) *Request {
	kind := OpRecv
	switch {
	case message.Sync && message.Send:
		kind = OpSendSync
	case message.Send:
		kind = OpSend
	}
	request := e.effects.NewRequest()
	request.kind, request.peer, request.p, request.buf, request.message = kind, message.Peer, e.peers.at(message.Peer),
		message.Buf, message
	request.datatype, request.anyDatatype = message.Call.Datatype, message.Call.AnyDatatype
	if !request.p.limits.NoComms {
		request.comm, request.tag = message.Call.Comm, int32(message.Tag)
	}
	request.Status.Peer = request.peer
	e.nextID++
	request.id, request.posted = e.nextID, e.now
	return request
}

// startMessage posts a request that newMessage returned.
func (e callEngine) startMessage(request *Request) error {
	if e.state != running {
		return ErrClosed
	}
	if err := e.Check(&Operation{Kind: request.kind, Peer: request.peer, Tag: int(request.tag), Comm: request.comm,
		Buf: request.buf}); err != nil {
		return err
	}
	if request.kind == OpRecv {
		if err := e.matching.postRecv(request); err != nil {
			return err
		}
	} else if e.SendShort(request, true) {
		e.finishShort(request)
	} else {
		request.p.send(request, true)
	}
	request.message.Request = request
	return nil
}

// Cancel implements collective.Engine. If the transfer cannot be cancelled, it continues in the engine's memory, and
// the message is dropped.
func (e callEngine) Cancel(m *collective.Message) {
	request, posted := m.Request.(*Request)
	if !posted {
		return
	}
	request.message = nil // so that its completion is not reported
	if request.flow != nil && request.flow.send == request {
		request.p.extended.abortSend(request)
	}
	if request.Done {
		return
	}
	if !e.cancel(request) {
		e.detach(request, nil, true) // no later receive may get it
	}
	e.finish(request, ErrCancelled)
}

func (e callEngine) WaitError(m *collective.Message, cause error) error {
	return waitError(e.Core, m.Request.(*Request), cause)
}

// HasAnswered implements collective.Engine.
func (e callEngine) HasAnswered(rank int) bool {
	p := e.peers.at(rank)
	return p == nil || p.packetsIn > 0 || p.extended != nil && p.extended.connected
}

// causes maps an error to the failure cause reported to other ranks. The first entry that the error matches applies.
var causes = []struct {
	err   error
	cause collective.FailureCause
}{
	{ErrClosed, collective.CauseClosing},
	{collective.ErrMismatch, collective.CauseMismatch},
	{ErrTruncated, collective.CauseTruncated},
	{extended.ErrTimeout, collective.CausePeerLost},
	{extended.ErrSession, collective.CausePeerLost},
	{handshake.ErrTimeout, collective.CausePeerLost},
	{handshake.ErrPartial, collective.CausePeerLost},
	{handshake.ErrDeadEnd, collective.CausePeerLost},
	{context.DeadlineExceeded, collective.CauseTimeout},
	{context.Canceled, collective.CauseCancelled},
	{ErrCancelled, collective.CauseCancelled},
}

// CauseOf implements collective.Engine. An error that causes does not list is CauseOther, unless the owner of a context
// chose it as the context's cause.
func (e callEngine) CauseOf(err error) collective.FailureCause {
	for _, c := range causes {
		if errors.Is(err, c.err) {
			return c.cause
		}
	}
	if _, ok := errors.AsType[*WaitError](err); ok { // the owner of a context may set any cause
		return collective.CauseCancelled
	}
	return collective.CauseOther
}

// SendInternal implements collective.Engine. It is a no-op for a peer of another profile, which has no communicators,
// so that such a peer learns of a failed call only by its own deadline.
func (e callEngine) SendInternal(rank int, comm, tag uint32, payload []byte, o *collective.Ordering) {
	if x := e.peers.at(rank).extended; x != nil && e.state != closed {
		x.sendInternal(comm, tag, payload, o)
	}
}

// DiscardStale implements collective.Engine. It receives the messages instead of deleting them, because only a match
// returns credit to their senders.
func (e callEngine) DiscardStale(comm uint32) {
	m := e.matching.matchers[comm]
	if m == nil {
		return
	}
	newest := map[int32]bool{} // with tag 0, by rank
	var stale [][2]int32       // rank and tag
	m.EachUnexpected(func(source, tag int32, _ unexpected) bool {
		if tag == 0 && !newest[source] { // an older one with tag 0 is stale
			newest[source] = true
		} else if tag <= collective.Tags { // package mpi uses larger tags
			stale = append(stale, [2]int32{source, tag})
		}
		return true
	})
	for _, s := range stale { // oldest first, as receives match them
		e.matching.discard(comm, int(s[0]), int(s[1]))
	}
}

func (e callEngine) UnsentBytes() (bytes int) {
	for p := range e.peers.created {
		if p.extended != nil {
			bytes += p.extended.unsentBytes()
		}
	}
	return bytes
}

// Finish implements collective.Engine. It detaches x from its request first, so that x can be reused while the program
// has yet to free the request.
func (e callEngine) Finish(x *collective.Execution, err error) {
	r := x.Request.(*Request)
	x.Request = nil
	e.finish(r, err)
}

// JobDone is called when a user's function has returned, with its error err.
func (e *Core) JobDone(j collective.Job, err error) {
	e.calls.JobDone(j, err)
	e.flush()
}

// openInternal accepts an internal message: one that the peer's engine sent for collective calls, rather than a
// program.
func (e callEngine) openInternal(p *peer, in *inbound) {
	in.accepted, in.clearedBytes = true, 0
	if e.calls.InternalOpened(p.rank, in.comm, in.tag, in.bytes) {
		in.clearedBytes = in.bytes
		in.buf, in.ownsBuf = e.buffers.get(int(in.bytes)), true
	}
	e.pending.accepts = append(e.pending.accepts, in)
}

// internalArrived delivers a complete internal message.
func (e callEngine) internalArrived(p *peer, in *inbound) {
	if in.ownsBuf {
		e.calls.InternalArrived(p.rank, in.comm, in.buf)
		e.buffers.put(in.buf)
		in.buf, in.ownsBuf = nil, false
	}
}
