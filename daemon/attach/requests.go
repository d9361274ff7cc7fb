package attach

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// handleFrame reads and handles one frame.
func (s *session) handleFrame() error {
	if err := s.reader.Next(); err != nil {
		return err
	}
	if err := s.dispatchFrame(s.reader.Type); err != nil {
		return err
	}
	return s.reader.CheckEnd()
}

// dispatchFrame handles a frame. Its error ends the session: a violation of the protocol, or ErrDetached after BYE.
func (s *session) dispatchFrame(frameType wire.FrameType) error {
	switch frameType {
	case wire.FrameStart:
		return s.readStart()
	case wire.FrameCall:
		return s.readCall()
	case wire.FrameData:
		return s.readData()
	case wire.FrameReduced:
		return s.readReduced()
	case wire.FrameProbe:
		return s.readProbe()
	case wire.FrameCancel:
		id, err := s.reader.ReadID()
		if err == nil {
			s.cancel(s.find(id))
		}
		return err
	case wire.FrameAbort:
		id, cause, err := s.reader.ReadAbort()
		if err == nil {
			s.abort(s.find(id), cause)
		}
		return err
	case wire.FrameBye:
		return wire.ErrDetached
	}
	return wire.Violationf("%v is not a frame that an attached program sends", frameType)
}

// admit registers an operation and allocates a buffer of room bytes for it. If a limit would be exceeded, admit answers
// the program and skips the rest of the frame. In that case, lacking is the number of payload bytes that the program
// may still send for the operation. A non-nil err ends the session.
func (s *session) admit(op *operation, bytes, work, room, lacking uint64) (ok bool, err error) {
	answer, err := s.addOperation(op, bytes, work)
	if errors.Is(answer, errCommonFull) {
		s.server.freeSpares()
		answer, err = s.addOperation(op, bytes, work)
	}
	if err != nil {
		return false, err
	}
	delete(s.unsent.remaining, op.ID) // the id now refers to this operation
	if answer == nil {
		if err = op.reserve(int(room)); err == nil {
			return true, nil
		}
		s.removeAnswered(op)
		answer = fmt.Errorf("rank %d: %w: %w", s.rank, mpe.ErrFull, err)
	}
	s.unsent.add(op.ID, lacking)
	s.countRefusal()
	op.rejected = true
	op.failUnstarted(answer)
	return false, s.reader.Skip()
}

// readStart handles START. It starts or queues the operation; a send waits until its payload is complete.
func (s *session) readStart() error {
	start, err := s.reader.ReadStart()
	if err != nil {
		return err
	}
	own := start.Length // memory needed outside the arena
	if start.InArena {
		if room := uint64(len(s.arena)); start.Length > room || start.ArenaOffset > room-start.Length {
			return wire.Violationf("START places %d bytes at offset %d of an arena of %d", start.Length, start.ArenaOffset, room)
		}
		own = 0
	}
	if err := s.checkClaim(&start); err != nil {
		return err
	}
	op, lacking := s.operation(start, own), uint64(0)
	if start.Kind != mpe.OpRecv {
		lacking = own - min(own, uint64(s.reader.Remaining))
	}
	if ok, err := s.admit(op, start.Length, 0, own, lacking); !ok {
		return err
	}
	s.endClaim(&start)
	op.NoWait = true // the goroutine also serves other programs
	switch {
	case start.InArena:
		end := start.ArenaOffset + start.Length
		op.Buf, op.payloadReceived = s.arena[start.ArenaOffset:end:end], start.Length
	case start.Kind == mpe.OpRecv:
		op.Buf = op.memory[:start.Length]
	default:
		if err := s.readPayload(op); err != nil {
			return err
		}
	}
	s.startOrQueue(op)
	return nil
}

// readPayload appends the rest of the frame to the payload of a send or call.
func (s *session) readPayload(op *operation) error {
	have, n := len(op.Buf), s.reader.Remaining
	op.Buf = op.memory[:have+n]
	op.payloadReceived += uint64(n)
	return s.reader.Read(op.Buf[have:])
}

// startOrQueue starts an operation, or queues it if its payload is incomplete or other operations are ahead of it.
func (s *session) startOrQueue(op *operation) {
	if op.Kind == mpe.OpRecv || op.hasPayload() && s.queues.isFirst(op) {
		s.startOperation(op)
	} else {
		s.queues.add(op)
	}
}

// readData handles DATA, which carries more payload of a send or call. It discards payload of an operation that ended
// early.
func (s *session) readData() error {
	id, err := s.reader.ReadID()
	if err != nil {
		return err
	}
	op, n := s.find(id), uint64(s.reader.Remaining)
	if op == nil {
		if !s.unsent.discard(id, n) {
			return wire.Violationf("DATA has %d bytes for operation %d, which is not a send or call that "+
				"expects payload", n, id)
		}
		return s.reader.Skip()
	}
	if op.Kind == mpe.OpRecv || n == 0 || n > wire.ChunkLen || n > op.Length-op.payloadReceived {
		return wire.Violationf("DATA has %d bytes for operation %d, which has %d of %d bytes of payload to send, in "+
			"pieces of %d at most", n, id, op.payloadReceived, op.Length, wire.ChunkLen)
	}
	if err := s.readPayload(op); err != nil {
		return err
	}
	if op.hasPayload() && op.queuesAhead == 0 {
		s.queues.ready = append(s.queues.ready, op)
		s.startReady()
	}
	return nil
}

// startReady starts all ready operations whose payload is complete. Starting one operation may make others ready.
func (s *session) startReady() {
	q := &s.queues
	for i := 0; i < len(q.ready); i++ {
		if op := q.ready[i]; op.hasPayload() {
			q.remove(op)
			s.startOperation(op)
		}
	}
	clear(q.ready)
	q.ready = q.ready[:0]
}

// startOperation starts an operation on the rank.
func (s *session) startOperation(op *operation) {
	var dev mpe.Op
	var err error
	if op.Kind == wire.OpCall {
		dev, err = s.postCall(op)
	} else {
		dev, err = s.dev.Start(op.Operation)
	}
	if err != nil {
		op.failUnstarted(err)
		return
	}
	op.rankOp = dev.(notifyingOp)
	if s.polling == nil {
		if st, ended, err := dev.Test(); ended {
			op.end(&st, false, err, false)
			return
		}
	}
	op.started = true
	if s.completions.watch(op) && s.polling == nil {
		wire.Notify(s.completionReady) // makes answerEnds poll until op completes
	}
}

// cancel requests the cancellation of an operation. It ignores calls: if a rank cancelled a call, the other ranks would
// wait for it forever.
func (s *session) cancel(op *operation) {
	switch {
	case op == nil || op.Kind == wire.OpCall:
	case op.stopProbe != nil:
		op.stopProbe(mpe.ErrCancelled)
	case op.started:
		s.completions.cancel(op)
	default:
		s.endUnstarted(op, fmt.Errorf("rank %d: the send to rank %d: %w", s.rank, op.Peer, mpe.ErrCancelled))
	}
}

// abort ends an operation that the program no longer waits for.
func (s *session) abort(op *operation, cause error) {
	switch {
	case op == nil:
	case op.stopProbe != nil:
		op.stopProbe(cause)
	case !op.started:
		s.endUnstarted(op, op.unstartedError(cause))
	case s.completions.remove(op):
		st, err := op.detach(cause, false)
		op.end(&st, false, err, false)
	}
}

// endUnstarted ends a send or call that is still queued.
func (s *session) endUnstarted(op *operation, err error) {
	s.unsent.add(op.ID, op.Length-op.payloadReceived)
	s.queues.remove(op)
	op.failUnstarted(err)
	s.startReady()
}

// readProbe handles PROBE. It answers at once, or starts a goroutine that waits for a matching message.
func (s *session) readProbe() error {
	start, err := s.reader.ReadProbe()
	if err != nil {
		return err
	}
	op, match := s.operation(start, 0), mpe.Match{Source: start.Peer, Tag: start.Tag, Comm: start.Comm, Claim: start.Claim}
	if ok, err := s.admit(op, 0, 0, 0, 0); !ok {
		return err
	}
	if start.Claim {
		if err := s.checkClaimLimit(); err != nil {
			op.failUnstarted(err)
			return nil
		}
	}
	st, found, err := s.dev.Probe(s.ctx, match, false)
	if !start.Wait || found || err != nil {
		op.end(&st, found, err, false)
		return nil
	}
	if err := s.addProbes(1); err != nil {
		op.failUnstarted(err)
		return nil
	}
	ctx, stop := context.WithCancelCause(s.ctx)
	op.stopProbe = stop
	s.spawn(func() {
		defer stop(nil)
		st, found, err := s.dev.Probe(ctx, match, true)
		_ = s.addProbes(-1)
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", err, cause)
		}
		op.end(&st, found, err, true)
	})
	return nil
}
