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

// operation is one operation of a program, or a probe, until its answer has been written.
type operation struct {
	s *session
	// start is what was posted. Its buffer is the payload of a send as far as it has arrived, or the buffer of a
	// receive, in memory or in the arena.
	wire.Start
	// call is what a collective call asks for. It is kept for the next one.
	call *called
	// memory has room for all of the payload. got is how much has arrived.
	memory []byte
	got    uint64
	// charged is what it takes of the program's bytes, and work what a call takes of the daemon's.
	charged, work int64
	refused       bool

	// dev is of an operation that runs, which begun is set for once it has; stop is of a probe that waits.
	dev   ender
	begun bool
	stop  context.CancelCauseFunc
	// runs is set until the operation's end is about to be answered, and guarded by ends. onEnd reports the end, and is
	// kept for the next operation.
	runs  bool
	onEnd func()
	// queue is that of a send, and ahead in how many queues it is not the first.
	queue [1]int
	ahead int

	// ended is guarded by the ledger. done, sent and answered are the outbox's from then on.
	ended    bool
	done     wire.Done
	sent     int
	answered bool
	// keep: the program is charged with memory, which is kept for later operations.
	keep bool
}

// operation makes an operation of one that is over, if there is one whose buffer is of about the size that is needed.
// Only the reading goroutine calls it, so that what it has found by an id stays what it is while it examines it.
func (s *session) operation(r wire.Start, size uint64) *operation {
	if size >= anonmem.Least { // those come without
		size = 0
	}
	op, _ := s.spare[bits.Len64(size)].Get().(*operation)
	if op == nil {
		op = &operation{s: s}
	}
	*op = operation{s: s, Start: r, memory: op.memory, call: op.call, onEnd: op.onEnd}
	return op
}

// reserve gives an operation a buffer of n bytes. The error says that there is none.
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

// detachMemory takes a large buffer from an operation that needs it no longer, and returns it. Small ones stay, for the
// operation that it is next.
func (op *operation) detachMemory() []byte {
	b := op.memory
	if cap(b) < anonmem.Least {
		return nil
	}
	op.memory, op.Buf = nil, nil
	return b
}

// fail ends an operation that has not begun.
func (op *operation) fail(err error) { op.end(&mpe.Status{}, false, err, false) }

// end ends an operation. The answer is written now, or, as only the reading goroutine may have it, before that waits for
// more.
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
	if op.Placed { // it is where the program wants it
		n = 0
	}
	var memory []byte
	if op.Buf = op.Buf[:n]; n == 0 { // its answer may wait for long
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

// stored is how much of a receive, or of a call's result, is to be sent to the program.
func (op *operation) stored(st *mpe.Status, err error) int {
	if op.Kind == wire.OpCall && err == nil {
		return len(op.Buf)
	}
	if op.Kind != mpe.OpRecv || (err != nil && !errors.Is(err, handshake.ErrTruncated)) || st.Bytes < 0 {
		return 0
	}
	return int(min(st.Bytes, int64(len(op.Buf))))
}

// Frame returns the next frame of the answer. The operation is over when the program can know of it.
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

// Written makes room for another operation when all of the answer is out.
func (op *operation) Written() {
	if !op.answered {
		return
	}
	op.s.ledger.keep(op.detachMemory(), op.keep)
	op.s.spare[bits.Len(uint(cap(op.memory)))].Put(op)
}

// detacher is an operation that can end while its transfer keeps the buffer.
type detacher interface {
	Detach(cause error, keep mpe.Keep) (mpe.Status, error)
	Abandon(cause error, keep mpe.Keep) (mpe.Status, error)
}

// detach ends an operation that was taken, because of cause, for a program that waits no longer, or is gone. If its
// transfer goes on, its buffer is charged to what is common until that has ended.
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

// detachPayload implements mpe.Keep. The arena is the program's again: what goes on has a copy.
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

// unstarted says what a send or a call that has not been started waits for.
func (op *operation) unstarted(cause error) error {
	rank, have := op.s.rank, fmt.Sprintf("%d of %d bytes of payload have come from the program", op.got, op.Length)
	if op.Kind == wire.OpCall {
		if op.ahead > 0 {
			have += ", and sends or calls that were posted before it have not begun"
		}
		return fmt.Errorf("rank %d has not begun %v: %s (%w)", rank, op.call.Collective, have, cause)
	}
	pair := handshake.Wait{Local: uint32(rank), Remote: uint32(op.Peer)}
	wait := &mpe.WaitError{Wait: pair, Queued: op.s.queues.before(op)}
	if wait.Queued > 0 {
		have += fmt.Sprintf(", and %d sends to that rank are ahead", wait.Queued)
	}
	text := fmt.Sprintf("rank %d waits to send to rank %d: %s: %v", rank, op.Peer, have, cause)
	return &wire.Error{Text: text, Parts: []error{wait, cause}}
}
