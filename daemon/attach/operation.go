package attach

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/anonmem"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// operation is an operation or probe of a program. It exists until its answer has been written.
type operation struct {
	session *session
	// Start is the operation as posted. Buf is the received part of a send's payload or the buffer of a receive, and
	// points into memory or the arena.
	wire.Start
	// call describes a collective call. Later operations reuse its memory.
	call *programCall
	// memory is the payload buffer. payloadReceived is the number of payload bytes received.
	memory          []byte
	payloadReceived uint64
	// chargedBytes is the memory charged for the payload, workBytes the memory charged for a call's other needs.
	chargedBytes, workBytes int64
	rejected                bool

	// rankOp is the rank's operation while it is running. started is set once startOperation has started it. stopProbe
	// is non-nil for a waiting probe.
	rankOp    notifyingOp
	started   bool
	stopProbe context.CancelCauseFunc
	// running is set until the operation is about to be answered; completionQueue.mu guards it. The rank calls onEnd on
	// completion and, unless it is nil, isAwaited before that. Later operations reuse both functions.
	running   bool
	onEnd     func()
	isAwaited func() bool
	// queue[0] is the index of the queue that holds a send. queuesAhead is the number of queues in which other
	// operations are ahead of this one.
	queue       [1]int
	queuesAhead int

	// The ledger guards ended. Once it is set, only the outbox accesses done, bytesSent and answered.
	ended     bool
	done      wire.Done
	bytesSent int
	answered  bool
	// keepMemory is set if memory is kept for reuse and charged to the program.
	keepMemory bool
}

// operation returns an operation, recycling one with a buffer of about the given size if possible. Only the reading
// goroutine may call it, so that an operation found by id is not recycled while the reading goroutine uses it.
func (s *session) operation(start wire.Start, size uint64) *operation {
	if size >= anonmem.MinMapped { // spare does not keep large buffers
		size = 0
	}
	op, _ := s.spare[bits.Len64(size)].Get().(*operation)
	if op == nil {
		op = &operation{session: s}
	}
	*op = operation{session: s, Start: start, memory: op.memory, call: op.call, onEnd: op.onEnd, isAwaited: op.isAwaited}
	return op
}

// reserve allocates a buffer of n bytes for the operation.
func (op *operation) reserve(n int) (err error) {
	if n <= cap(op.memory) {
		return nil
	}
	b := op.session.takeSpare(n)
	if b == nil {
		b, err = anonmem.Get(n)
	}
	op.memory = b
	return err
}

// detachMemory removes and returns a large buffer that the operation no longer needs. Small buffers stay with the
// recycled operation.
func (op *operation) detachMemory() []byte {
	b := op.memory
	if cap(b) < anonmem.MinMapped {
		return nil
	}
	op.memory, op.Buf = nil, nil
	return b
}

// failUnstarted ends an operation that has not been started.
func (op *operation) failUnstarted(err error) { op.end(&mpe.Status{}, false, err, false) }

// end ends an operation and queues its answer. If the argument now is true, end writes the answer at once. Otherwise,
// the caller must be the reading goroutine, which writes deferred answers before it waits for more frames.
func (op *operation) end(st *mpe.Status, found bool, err error, now bool) {
	if err != nil {
		err = op.session.server.opts.Explain(err)
	}
	n := op.resultBytes(st, err)
	op.done = wire.Done{ID: op.ID, Found: found, Stored: uint64(n), Status: *st, Err: err}
	if op.rankOp != nil {
		op.rankOp.Free()
		op.rankOp = nil
	}
	if st.Claim != 0 {
		op.done.Stored = uint64(st.Claim)
		op.session.claim(st)
	}
	if op.InArena { // the payload is already in the arena
		n = 0
	}
	var memory []byte
	if op.Buf = op.Buf[:n]; n == 0 { // free the memory early: writing the answer may take a long time
		op.Buf = nil
		memory = op.detachMemory()
	}
	op.session.endOperation(op, n > 0, memory)
	if now {
		op.session.outbox.Send(op)
		return
	}
	op.session.outbox.Queue(op)
	op.session.deferredAnswers = true
}

// resultBytes returns how many bytes of a received message, or of a call's result, must be sent to the program.
func (op *operation) resultBytes(st *mpe.Status, err error) int {
	if op.Kind == wire.OpCall && err == nil {
		return len(op.Buf)
	}
	if op.Kind != mpe.OpRecv || (err != nil && !errors.Is(err, handshake.ErrTruncated)) || st.Bytes < 0 {
		return 0
	}
	return int(min(st.Bytes, int64(len(op.Buf))))
}

// Frame returns the next frame of the answer. Before it returns the last frame, it removes the operation from the
// ledger, because the program may reuse the id as soon as it reads that frame.
func (op *operation) Frame(b []byte) (head, payload []byte, more bool) {
	left := op.Buf[op.bytesSent:]
	if len(left) > wire.ChunkLen {
		op.bytesSent += wire.ChunkLen
		return wire.AppendID(b, wire.FrameData, op.ID, wire.ChunkLen), left[:wire.ChunkLen], true
	}
	op.keepMemory = op.session.removeAnswered(op)
	op.answered = true
	if !op.keepMemory {
		anonmem.Trim(op.memory, op.bytesSent)
	}
	return wire.AppendDone(b, &op.done, len(left)), left, false
}

// Written recycles the operation after its whole answer has been written.
func (op *operation) Written() {
	if !op.answered {
		return
	}
	op.session.ledger.storeSpare(op.detachMemory(), op.keepMemory)
	op.session.spare[bits.Len(uint(cap(op.memory)))].Put(op)
}

// detacher is an operation that can end while its transfer continues to use its buffer.
type detacher interface {
	Detach(cause error, keep mpe.KeepFunc) (mpe.Status, error)
	Abandon(cause error, keep mpe.KeepFunc) (mpe.Status, error)
}

// detach ends an operation with the error cause, after the operation has been removed from the completionQueue. The
// argument gone means that the program is gone; otherwise, it only stopped waiting for the operation. If the transfer
// continues, its buffer is charged to common memory until the transfer ends.
func (op *operation) detach(cause error, gone bool) (mpe.Status, error) {
	l, ok := op.rankOp.(detacher)
	large := max(cap(op.memory), len(op.Buf)) >= anonmem.MinMapped
	if !ok || !gone && (op.Kind == wire.OpCall || !large) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		st, err := op.rankOp.Await(ctx)
		return *st, err
	}
	var keep mpe.KeepFunc
	if large && op.Kind != wire.OpCall {
		keep = op.detachPayload
	}
	if gone {
		return l.Abandon(cause, keep)
	}
	return l.Detach(cause, keep)
}

// detachPayload implements mpe.KeepFunc. It copies payload that lies in the arena for the rest of the transfer, because
// the program may reuse the arena.
func (op *operation) detachPayload(buf []byte) (kept []byte, release func()) {
	pool, b := op.session.memory, op.detachMemory()
	if op.InArena {
		var err error
		if b, err = anonmem.Get(len(buf)); err != nil {
			b = make([]byte, len(buf))
		}
		copy(b, buf)
		buf = b
	}
	n := int64(cap(b))
	pool.forceDraw(n)
	return buf, func() {
		anonmem.Put(b)
		pool.forceDraw(-n)
	}
}

// unstartedError returns the error for a send or call that was aborted before it started. The error includes the
// reason.
func (op *operation) unstartedError(cause error) error {
	rank, have := op.session.rank, fmt.Sprintf("%d of %d bytes of payload received from the program", op.payloadReceived,
		op.Length)
	if op.Kind == wire.OpCall {
		if op.queuesAhead > 0 {
			have += ", and earlier sends or calls have not begun"
		}
		return fmt.Errorf("rank %d has not begun %v: %s (%w)", rank, op.call.Collective, have, cause)
	}
	pair := handshake.Wait{Local: uint32(rank), Remote: uint32(op.Peer)}
	wait := &mpe.WaitError{Wait: pair, Queued: op.session.queues.numAhead(op)}
	if wait.Queued > 0 {
		have += fmt.Sprintf(", and %d sends to that rank are queued ahead", wait.Queued)
	}
	text := fmt.Sprintf("rank %d waits to send to rank %d: %s: %v", rank, op.Peer, have, cause)
	return &wire.Error{Text: text, Causes: []error{wait, cause}}
}
