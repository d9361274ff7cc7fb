package attach

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// The operation of a reduction may be a function of the program. The daemon executes such a call like any other, and
// asks the program to combine elements: a REDUCE frame carries the operands, and a REDUCED frame the result. Each call
// has at most one REDUCE frame in flight.

// reduction asks the program to combine elements for a call. It is also the outbox item that writes the REDUCE
// frame.
type reduction struct {
	session *session
	id      uint64
	elemLen int

	// idle holds a value while no REDUCE frame is in flight. changed is signaled when sent, answered or cause is set.
	idle, changed chan struct{}

	mu sync.Mutex
	// sent is set once REDUCE has been written; answered is set once REDUCED has been read.
	sent, answered bool
	// cause is the reason why the call ended, or nil while it is running.
	cause error
	// operands holds both operands for the REDUCE frame, or nil if no REDUCE frame must be sent.
	operands []byte
	// result is the destination for the payload of the REDUCED frame, or nil if no REDUCED frame is expected. err is
	// the error reported by the program.
	result []byte
	err    error
}

// cancel records why the call ended and wakes up the method reduce. It does not block.
func (r *reduction) cancel(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil {
		r.cause = cause
		wire.Notify(r.changed)
	}
}

// reduce is the reduction operation of the call: inout = in ∘ inout. It waits for the program's results, and returns
// the program's error or the reason why the call ended.
func (r *reduction) reduce(in, inout []byte) error {
	if err := r.session.stream.Await(r.session.ctx, r.idle); err != nil {
		return err
	}
	defer wire.Notify(r.idle)
	most := wire.OperandLen / r.elemLen * r.elemLen
	memory := operands.Get().(*[]byte)
	for len(in) > 0 {
		n := min(len(in), most)
		b := slices.Grow((*memory)[:0], 3*n)[:3*n]
		copy(b, in[:n])
		copy(b[n:], inout[:n])
		if err := r.askProgram(b[:2*n], b[2*n:]); err != nil {
			r.cancel(err) // combine no further elements
			return err    // do not recycle the memory, which may still be in use
		}
		copy(inout, b[2*n:])
		in, inout, *memory = in[n:], inout[n:], b
	}
	operands.Put(memory)
	return nil
}

// operands is a pool of buffers for REDUCE and REDUCED.
var operands = sync.Pool{New: func() any { return new([]byte) }}

// askProgram sends REDUCE and waits for REDUCED. operands and result must not overlap, because the call may end while
// REDUCE is still being written or REDUCED is being read.
func (r *reduction) askProgram(operands, result []byte) error {
	r.mu.Lock()
	if r.cause != nil {
		defer r.mu.Unlock()
		return r.cause
	}
	r.operands, r.result, r.err = operands, result, nil
	r.sent, r.answered = false, false
	r.mu.Unlock()
	r.session.outbox.Send(r)
	for {
		gone := r.session.stream.Await(r.session.ctx, r.changed) // non-nil if the session ended
		r.mu.Lock()
		err := cmp.Or(r.cause, gone)
		if err != nil || r.sent && r.answered {
			r.operands, r.result = nil, nil
			defer r.mu.Unlock()
			return cmp.Or(err, r.err)
		}
		r.mu.Unlock()
	}
}

// Frame returns the REDUCE frame, or no frame if the call is complete.
func (r *reduction) Frame(b []byte) (head, payload []byte, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.operands == nil {
		return b, nil, false
	}
	return wire.AppendID(b, wire.FrameReduce, r.id, len(r.operands)), r.operands, false
}

// Written implements wire.Item. Only then is the outbox done with the operands, so askProgram waits for it as well as
// for the answer.
func (r *reduction) Written() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = true
	wire.Notify(r.changed)
}

// readReduced handles REDUCED.
func (s *session) readReduced() error {
	b, err := s.reader.NextBytes(wire.ReducedLen)
	if err != nil {
		return err
	}
	id, flags := wire.Order.Uint64(b), wire.Order.Uint64(b[8:])
	if flags&^wire.FlagFailed != 0 {
		return wire.Violationf("REDUCED with flags %#x", flags)
	}
	op := s.find(id)
	if op == nil { // the call has already ended
		return s.reader.Skip()
	}
	if op.Kind != wire.OpCall || op.call.reduction == nil {
		return wire.Violationf("REDUCED for operation %d, which is not a call with a user-defined operation", id)
	}
	return op.call.reduction.readResult(s.reader, flags&wire.FlagFailed != 0)
}

// readResult reads the rest of REDUCED. It reads the result into separate memory first, because the call may end during
// the read.
func (r *reduction) readResult(in *wire.Reader, failed bool) error {
	r.mu.Lock()
	result, ended := r.result, r.cause != nil
	r.result = nil
	r.mu.Unlock()
	var reply error
	switch {
	case ended:
		return in.Skip()
	case result == nil:
		return wire.Violationf("REDUCED for operation %d, which has no outstanding REDUCE", r.id)
	case failed:
		text, err := in.Text()
		if err != nil {
			return err
		}
		reply = fmt.Errorf("the program's operation: %s", text)
	case in.Remaining != len(result):
		return wire.Violationf("REDUCED for operation %d has %d bytes, and its operands %d each", r.id, in.Remaining,
			len(result))
	default:
		if err := in.Read(result); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered, r.err = true, reply
	wire.Notify(r.changed)
	return nil
}

// newReduction returns the reduction of a call about to be posted, and makes it the call's reduction operation. It
// returns nil if that operation is not a function of the program.
func newReduction(sess *session, call *wire.Call, op *collective.Operation) (*reduction, error) {
	if call.Flags&wire.FlagUser == 0 {
		return nil, nil
	}
	if elem := max(op.Call.Elem, 1); !op.Reduces() || elem > wire.OperandLen {
		return nil, call.CallError("it has a user-defined operation on elements of %d bytes: only reductions allow one, on "+
			"elements of at most %d bytes", elem, wire.OperandLen)
	}
	r := &reduction{
		session: sess, id: call.ID, elemLen: max(op.Call.Elem, 1),
		idle: make(chan struct{}, 1), changed: make(chan struct{}, 1),
	}
	wire.Notify(r.idle)
	op.User, op.CancelUser = r.reduce, r.cancel
	return r, nil
}
