package collective

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// advance begins all steps that can begin, and ends the call when all steps are done. It begins steps with messages
// before steps without messages.
func (x *Execution) advance() {
	if x.sharedCall != nil {
		x.advanceShared()
		return
	}
	for x.failErr == nil {
		for x.failErr == nil {
			step, number, ok := x.progress.Next()
			if !ok {
				break
			}
			if step.Sends() || step.Receives() {
				x.post(step, number)
			} else {
				x.localSteps = append(x.localSteps, localStep{*step, number})
			}
		}
		if len(x.localSteps) == 0 || x.failErr != nil {
			break
		}
		s := x.localSteps[0]
		x.localSteps = append(x.localSteps[:0], x.localSteps[1:]...)
		x.runLocal(&s)
	}
	if len(x.inFlight) == 0 && x.computing == 0 && (x.failErr != nil || x.progress.IsDone()) {
		x.end(x.failErr)
	}
}

// blanks is the payload of tokens, whose content does not matter.
var blanks [16]byte

// bytesAt returns the n bytes at the location at.
func (x *Execution) bytesAt(at coll.Loc, n int) ([]byte, error) {
	var b []byte
	switch at.Buf {
	case coll.SendBuf:
		b = x.Send
	case coll.RecvBuf:
		b = x.Recv
	case coll.Scratch:
		b = x.scratch
	case coll.Blank:
		b = blanks[:]
	case coll.Shared:
		slot, _ := x.sharedCall.buffers.View(x.executor.engine.Rank(), x.sharedCall.slot)
		b = x.sharedCall.halfOf(slot)
	}
	return x.subslice(b, at, n)
}

// subslice returns a part of a buffer.
func (x *Execution) subslice(b []byte, at coll.Loc, n int) ([]byte, error) {
	if at.Off < 0 || n < 0 || at.Off > len(b)-n {
		return nil, x.callError("it needs %d bytes at %d of the %v, which has %d", n, at.Off, at.Buf, len(b))
	}
	return b[at.Off : at.Off+n : at.Off+n], nil
}

// post posts the message of a step, or both of its messages.
func (x *Execution) post(step *coll.Step, number int) {
	var err error
	switch step.Kind {
	case coll.StepForward:
		err = x.forward(step, number)
	case coll.StepSend:
		var buf []byte
		if buf, err = x.bytesAt(step.From, step.Len); err == nil {
			m := x.message(true, step.Peer, number, buf)
			m.Piece = step.Piece
			err = x.executor.engine.Start(m)
		}
	default:
		var buf []byte
		if buf, err = x.bytesAt(step.Into, step.Len); err == nil {
			if step.Into.Buf == coll.Blank { // another rank may send a longer token
				buf = x.discardBuf[:]
			}
			err = x.executor.engine.Start(x.message(false, step.Peer, number, buf))
		}
	}
	if err != nil {
		x.fail(number, err)
	}
}

// forward posts the two messages of a StepForward.
func (x *Execution) forward(step *coll.Step, number int) error {
	buf, err := x.bytesAt(step.Into, step.Len)
	if err != nil {
		return err
	}
	recv, send := x.message(false, step.Peer, number, buf), x.message(true, step.To, number, buf)
	recv.Piece, send.Piece = step.Piece, step.Piece
	recv.sibling, send.sibling = send, recv
	recv.later, err = x.executor.engine.Forward(recv, send)
	if recv.later { // MessageDone posts send as a whole
		send.Piece = 0
		remove(&x.inFlight, send)
	}
	return err
}

// message returns a new message to or from a rank of the communicator. The message counts as in flight until release is
// called.
func (x *Execution) message(send bool, peer, number int, buf []byte) *Message {
	executor := x.executor
	var msg *Message
	if last := len(executor.spare) - 1; last >= 0 {
		msg = executor.spare[last]
		executor.spare = executor.spare[:last]
	} else {
		msg = new(Message)
	}
	executor.lastID++
	*msg = Message{Call: &x.Operation, Tag: x.messageTag(), Send: send, Sync: x.Tag == agreementTag,
		Peer: x.Members[peer], Buf: buf, x: x, step: number, id: executor.lastID}
	x.inFlight = append(x.inFlight, msg)
	return msg
}

// release records that a message is no longer in flight, and recycles it.
func (x *Execution) release(m *Message) {
	remove(&x.inFlight, m)
	m.Call, m.Buf, m.Request, m.x, m.sibling = nil, nil, nil, nil, nil // message sets all fields
	x.executor.spare = append(x.executor.spare, m)
}

// runLocal executes a step without a message.
func (x *Execution) runLocal(step *localStep) {
	reads, writes := step.Extents()
	from, err := x.bytesAt(step.From, reads)
	if err != nil && step.Kind != coll.StepJoin {
		x.fail(step.number, err)
		return
	}
	var into []byte
	switch step.Kind {
	case coll.StepJoin:
	default:
		if into, err = x.bytesAt(step.Into, writes); err != nil {
			x.fail(step.number, err)
			return
		}
		if step.Kind == coll.StepPack {
			step.Pack(into, from)
			break
		}
		if x.User != nil && step.Kind != coll.StepCopy {
			x.computing++
			x.executor.engine.Compute(Job{x, step.Kind, step.number, into, from})
			return
		}
		_ = x.combine(step.Kind, into, from) // only a user's function returns an error
	}
	x.progress.MarkDone(step.number)
}

// combine combines or copies the bytes of a step. It returns an error only if the user function does.
func (x *Execution) combine(kind coll.Kind, into, from []byte) error {
	switch {
	case kind == coll.StepCopy:
		copy(into, from)
	case kind == coll.StepReduce && x.User != nil:
		return x.User(from, into)
	case kind == coll.StepReduce:
		x.reduce(into, from, into)
	case x.User == nil:
		x.reduce(into, into, from)
	default: // a user function stores its result in from, which may be overwritten
		if err := x.User(into, from); err != nil {
			return err
		}
		copy(into, from)
	}
	return nil
}

// Job is a call of a user function.
type Job struct {
	x          *Execution
	kind       coll.Kind
	number     int
	into, from []byte
}

// Run calls the user function, which may take a long time, and returns its error.
func (j *Job) Run() error { return j.x.combine(j.kind, j.into, j.from) }

// JobDone records the end of a job. err is the result of Run.
func (e *Executor) JobDone(job Job, err error) {
	exec := job.x
	exec.computing--
	switch {
	case exec.failErr != nil:
	case err != nil:
		exec.fail(job.number, err)
	default:
		exec.progress.MarkDone(job.number)
	}
	exec.wake()
}

// wake ensures that the next Advance continues the call.
func (x *Execution) wake() {
	if !x.woken {
		x.woken = true
		x.executor.woken = append(x.executor.woken, x)
	}
}

// MessageDone records the end of a message, with its length or an error. An error that matches ErrCallFailed means that
// the peer aborted the call.
func (e *Executor) MessageDone(message *Message, bytes int64, err error) {
	exec, number := message.x, message.step
	exec.aborted = exec.aborted || errors.Is(err, ErrCallFailed)
	if s := exec.progress.Step(number); err == nil && !message.Send && s.Into.Buf != coll.Blank && bytes != int64(s.Len) {
		err = fmt.Errorf("it has %d bytes: %w", bytes, ErrMismatch)
	}
	other, later := message.sibling, message.later
	exec.release(message)
	switch {
	case err != nil:
		exec.fail(number, err)
	case other == nil:
		exec.progress.MarkDone(number)
	default: // the sibling is in flight, or is to be posted now
		other.sibling = nil
		if later {
			exec.inFlight = append(exec.inFlight, other)
			if err := e.engine.Start(other); err != nil {
				exec.fail(number, err)
			}
		}
	}
	exec.wake()
}

// fail makes the call fail because a step failed. No further step begins, and cancelAll cancels the messages in flight.
// The call ends only when no user function is running.
func (x *Execution) fail(number int, err error) {
	if x.failErr != nil {
		return
	}
	x.failErr = x.stepError(number, err)
	x.cancelAll()
	if x.computing > 0 && x.CancelUser != nil {
		x.CancelUser(x.failErr)
	}
}

func (x *Execution) stepError(number int, err error) *StepError {
	s := x.progress.Step(number)
	e := &StepError{Collective: x.Call.Collective, Algorithm: x.algorithm.Name, Number: number, Kind: s.Kind, Peer: -1,
		Bytes: s.Len, Err: err}
	if (s.Sends() || s.Receives()) && s.Peer >= 0 {
		e.Peer = x.Members[s.Peer]
	}
	return e
}
