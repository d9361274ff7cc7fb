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

// operation is a program's operation or probe, until its answer has been written.
type operation struct {
	s *session
	// Start is the operation as posted. Its Buf is the received part of a send's payload or the buffer of a receive,
	// in memory or in the arena.
	wire.Start
	// call describes a collective call. Its memory is reused.
	call *called
	// memory is the buffer of the payload. got is the number of bytes received of it.
	memory []byte
	got    uint64
	// charged is the charge for the payload, and work the charge for a call's additional memory.
	charged, work int64
	refused       bool

	// dev is a running operation, and begun is set once it was started. stop is set for a waiting probe.
	dev   ender
	begun bool
	stop  context.CancelCauseFunc
	// runs is set until the operation's end is about to be answered; it is guarded by ends. onEnd reports the end,
	// and is reused by the next operation.
	runs  bool
	onEnd func()
	// queue holds the index of a send's queue. ahead is the number of queues in which the operation is not the first.
	queue [1]int
	ahead int

	// ended is guarded by the ledger. done, sent and answered belong to the outbox once it is set.
	ended    bool
	done     wire.Done
	sent     int
	answered bool
	// keep means that the program was charged for memory, which is kept for later operations.
	keep bool
}

// operation returns an operation, reusing a spare one with a buffer of about the needed size. Only the reading
// goroutine calls it, so that an operation found by its id is not reused while that goroutine examines it.
func (s *session) operation(r wire.Start, size uint64) *operation {
	if size >= anonmem.Least { // large buffers are not kept in spare
		size = 0
	}
	op, _ := s.spare[bits.Len64(size)].Get().(*operation)
	if op == nil {
		op = &operation{s: s}
	}
	*op = operation{s: s, Start: r, memory: op.memory, call: op.call, onEnd: op.onEnd}
	return op
}

// reserve allocates a buffer of n bytes for the operation.
func (op *operation) reserve(n int) (err error) {
	if n <= cap(op.memory) {
		return nil
	}
	b := op.s.takeKept(n)
	if b == nil {
		b, err = anonmem.Get(n)
	}
	op.memory = b
	return err
}

// detachMemory removes a large buffer from an operation that no longer needs it, and returns it. Small buffers stay
// with the operation for reuse.
func (op *operation) detachMemory() []byte {
	b := op.memory
	if cap(b) < anonmem.Least {
		return nil
	}
	op.memory, op.Buf = nil, nil
	return b
}

// fail ends an operation that was not started.
func (op *operation) fail(err error) { op.end(&mpe.Status{}, false, err, false) }

// end ends an operation and queues its answer. If now is set, the answer is written at once. Otherwise the caller
// must be the reading goroutine, which writes it before it waits for more frames.
func (op *operation) end(st *mpe.Status, found bool, err error, now bool) {
	if err != nil {
		err = op.s.server.opts.Explain(err)
	}
	n := op.stored(st, err)
	op.done = wire.Done{ID: op.ID, Found: found, Stored: uint64(n), Status: *st, Err: err}
	if op.dev != nil {
		op.dev.Free()
		op.dev = nil
	}
	if st.Claim != 0 {
		op.done.Stored = uint64(st.Claim)
		op.s.claim(st)
	}
	if op.Placed { // it is already in place
		n = 0
	}
	var memory []byte
	if op.Buf = op.Buf[:n]; n == 0 { // free it early: writing the answer may take long
		op.Buf = nil
		memory = op.detachMemory()
	}
	op.s.release(op, n > 0, memory)
	if now {
		op.s.out.PutNow(op)
		return
	}
	op.s.out.PutOff(op)
	op.s.deferredAnswers = true
}

// stored returns the number of bytes of a receive, or of a call's result, to send to the program.
func (op *operation) stored(st *mpe.Status, err error) int {
	if op.Kind == wire.OpCall && err == nil {
		return len(op.Buf)
	}
	if op.Kind != mpe.OpRecv || (err != nil && !errors.Is(err, handshake.ErrTruncated)) || st.Bytes < 0 {
		return 0
	}
	return int(min(st.Bytes, int64(len(op.Buf))))
}

// Frame returns the next frame of the answer. With the last one the operation is forgotten, before the program can
// see it.
func (op *operation) Frame(b []byte) (head, payload []byte, more bool) {
	left := op.Buf[op.sent:]
	if len(left) > wire.ChunkLen {
		op.sent += wire.ChunkLen
		return wire.AppendID(b, wire.FrameData, op.ID, wire.ChunkLen), left[:wire.ChunkLen], true
	}
	op.keep = op.s.forget(op)
	op.answered = true
	if !op.keep {
		anonmem.Trim(op.memory, op.sent)
	}
	return wire.AppendDone(b, &op.done, len(left)), left, false
}

// Written recycles the operation when the whole answer has been written.
func (op *operation) Written() {
	if !op.answered {
		return
	}
	op.s.ledger.keep(op.detachMemory(), op.keep)
	op.s.spare[bits.Len(uint(cap(op.memory)))].Put(op)
}

// detacher is an operation that can end while its transfer continues to use the buffer.
type detacher interface {
	Detach(cause error, keep mpe.Keep) (mpe.Status, error)
	Abandon(cause error, keep mpe.Keep) (mpe.Status, error)
}

// detach ends an operation that was taken, because of cause. gone means that the program is gone; otherwise it no
// longer waits. If the transfer continues, its buffer is charged to the common memory until the end of the transfer.
func (op *operation) detach(cause error, gone bool) (mpe.Status, error) {
	l, ok := op.dev.(detacher)
	large := max(cap(op.memory), len(op.Buf)) >= anonmem.Least
	if !ok || !gone && (op.Kind == wire.OpCall || !large) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		st, err := op.dev.Await(ctx)
		return *st, err
	}
	var keep mpe.Keep
	if large && op.Kind != wire.OpCall {
		keep = op.detachPayload
	}
	if gone {
		return l.Abandon(cause, keep)
	}
	return l.Detach(cause, keep)
}

// detachPayload implements mpe.Keep. The transfer gets a copy of payload in the arena, which the program may reuse.
func (op *operation) detachPayload(buf []byte) (kept []byte, release func()) {
	m, b := op.s.memory, op.detachMemory()
	if op.Placed {
		var err error
		if b, err = anonmem.Get(len(buf)); err != nil {
			b = make([]byte, len(buf))
		}
		copy(b, buf)
		buf = b
	}
	n := int64(cap(b))
	m.force(n)
	return buf, func() {
		anonmem.Put(b)
		m.force(-n)
	}
}

// unstarted returns the error of an aborted send or call that was not started, with the reason for the delay.
func (op *operation) unstarted(cause error) error {
	rank, have := op.s.rank, fmt.Sprintf("%d of %d bytes of payload received from the program", op.got, op.Length)
	if op.Kind == wire.OpCall {
		if op.ahead > 0 {
			have += ", and earlier sends or calls have not begun"
		}
		return fmt.Errorf("rank %d has not begun %v: %s (%w)", rank, op.call.Collective, have, cause)
	}
	pair := handshake.Wait{Local: uint32(rank), Remote: uint32(op.Peer)}
	wait := &mpe.WaitError{Wait: pair, Queued: op.s.queues.before(op)}
	if wait.Queued > 0 {
		have += fmt.Sprintf(", and %d sends to that rank are queued ahead", wait.Queued)
	}
	text := fmt.Sprintf("rank %d waits to send to rank %d: %s: %v", rank, op.Peer, have, cause)
	return &wire.Error{Text: text, Parts: []error{wait, cause}}
}
