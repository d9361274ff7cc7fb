package attach

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// opCall is the kind of operations that are collective calls.
const opCall mpe.OpKind = 255

// operation is one operation of a program, or a probe, until its answer has
// been written.
type operation struct {
	s *session
	start
	// call is what a collective call asks for. It is kept for the next one.
	call *called
	// memory has room for all of the payload. buf is the payload of a send as far
	// as it has arrived, or the buffer of a receive, in memory, or in the arena. got is how much has
	// arrived.
	buf, memory []byte
	got         uint64
	// charged is what it takes of the program's bytes, and work what a call takes of
	// the daemon's.
	charged, work int64
	refused       bool

	// dev and watcher are of an operation that runs; stop is of a probe that
	// waits.
	dev     mpe.Op
	watcher *watcher
	stop    context.CancelCauseFunc
	// watched is set for an operation that runs and is polled for, and over when it is one
	// of those that have ended, with the next one behind it: see polling. onEnd is what
	// reports that, and is kept for the next operation.
	watched, over bool
	behind        *operation
	onEnd         func()
	// places are those of a send or a call in the send queues, and ahead is how
	// many of them are not the first of their line. alone is memory for one.
	places []place
	alone  [1]place
	ahead  int

	// ended is guarded by the session's mu. done, sent and answered are the
	// outbox's from then on.
	ended    bool
	done     done
	sent     int
	answered bool
	// keep: the session is charged with memory, and keeps it for later operations.
	keep bool
}

// errCommon: the memory of all programs does not suffice.
var errCommon = errors.New("more than all attached programs together may have under way")

// admit enters an operation and gives it memory, if there is enough, and returns the
// answer if not. err is of the session. work is what the daemon may need beside the bytes.
func (s *session) admit(op *operation, bytes, work, room uint64) (answer, err error) {
	answer, err = s.account(op, bytes, work)
	if errors.Is(answer, errCommon) {
		s.server.returnKept()
		answer, err = s.account(op, bytes, work)
	}
	if answer != nil || err != nil {
		return answer, err
	}
	if err := op.reserve(int(room)); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.discharge(op)
		return fmt.Errorf("rank %d: %w: %w", s.rank, mpe.ErrFull, err), nil
	}
	return nil, nil
}

// account charges an operation to the program and to what all of them may have.
func (s *session) account(op *operation, bytes, work uint64) (answer, err error) {
	limits := s.server.opts.Limits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ops[op.id] != nil {
		return nil, violation("%v has id %d, which another operation has", s.in.typ, op.id)
	}
	s.unsent.remove(op.id)
	switch {
	case len(s.ops) >= limits.Operations:
		return fmt.Errorf("rank %d: %w: a program may have %d under way", s.rank, mpe.ErrFull, limits.Operations), nil
	case bytes > uint64(limits.Bytes):
		return fmt.Errorf("rank %d: %d bytes: %w: a program may have %d bytes under way", s.rank, bytes, handshake.ErrTooLong, limits.Bytes), nil
	case s.bytes+int64(bytes) > limits.Bytes:
		return fmt.Errorf("rank %d: %w: %d bytes would be more than the %d that a program may have under way, of which %d are in use",
			s.rank, mpe.ErrFull, bytes, limits.Bytes, s.bytes), nil
	case work > uint64(limits.Bytes):
		return fmt.Errorf("rank %d: %d bytes may be needed to work on it: %w: there are %d bytes for that", s.rank, work, handshake.ErrTooLong, limits.Bytes), nil
	case s.work+int64(work) > limits.Bytes:
		return fmt.Errorf("rank %d: %w: %d bytes to work on it would be more than the %d that there are for that, of which %d are in use",
			s.rank, mpe.ErrFull, work, limits.Bytes, s.work), nil
	}
	if left, ok := s.charge(int64(bytes) + int64(work) + operationLen); !ok {
		return fmt.Errorf("rank %d: %w: %d bytes are needed, %w: %d are left of %d: try again when operations have ended, or raise limits.attached_bytes",
			s.rank, mpe.ErrFull, bytes+work, errCommon, left, s.server.memory.limit), nil
	}
	op.charged, op.work = int64(bytes), int64(work)
	s.bytes += op.charged
	s.work += op.work
	s.ops[op.id] = op
	return nil, nil
}

// full reports whether there are so many answers to operations that were refused and that
// the program has not read that no more of its frames are handled for now: a program that
// reads its answers need not wait for that.
func (s *session) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusals >= maxRefusals && !s.gone
}

// refuse answers an operation that was not admitted.
func (s *session) refuse(op *operation, err error) {
	s.mu.Lock()
	s.refusals++
	s.mu.Unlock()
	op.refused = true
	op.end(&mpe.Status{}, false, err)
}

// readStart starts an operation, or the collecting of a send's payload.
func (s *session) readStart() error {
	r, err := s.in.readStart()
	if err != nil {
		return err
	}
	own := r.length // memory that it needs beside the arena
	if r.placed {
		if room := uint64(len(s.arena)); r.length > room || r.place > room-r.length {
			return violation("START places %d bytes at %d of an arena that has %d", r.length, r.place, room)
		}
		own = 0
	}
	if err := s.checkClaim(&r); err != nil {
		return err
	}
	op := s.operation(r, own)
	answer, err := s.admit(op, r.length, 0, own)
	if err != nil {
		return err
	}
	if answer != nil {
		if r.kind != mpe.OpRecv {
			s.unsent.add(r.id, own-min(own, uint64(s.in.left)))
		}
		s.refuse(op, answer)
		return s.in.skip()
	}
	s.endClaim(&r)
	switch {
	case r.placed:
		op.buf, op.got = s.arena[r.place:r.place+r.length:r.place+r.length], r.length
	case r.kind == mpe.OpRecv:
		op.buf = op.memory[:r.length]
	default:
		err = s.collect(op)
	}
	switch {
	case err != nil:
	case r.kind == mpe.OpRecv:
		s.begin(op)
	default:
		s.enter(op)
	}
	return err
}

// collect adds the rest of the frame to the payload of a send or a call.
func (s *session) collect(op *operation) error {
	have, n := len(op.buf), s.in.left
	op.buf = op.memory[:have+n]
	op.got += uint64(n)
	return s.in.read(op.buf[have:])
}

// readData goes on with the payload of a send or a call. What comes for one that has ended without it is discarded.
func (s *session) readData() error {
	id, err := s.in.readID()
	if err != nil {
		return err
	}
	op := s.find(id)
	if op == nil {
		if n := uint64(s.in.left); !s.unsent.take(id, n) {
			return violation("DATA has %d bytes for operation %d, which is not a send or a call that lacks them", n, id)
		}
		return s.in.skip()
	}
	if n := uint64(s.in.left); op.kind == mpe.OpRecv || n == 0 || n > chunkLen || n > op.length-op.got {
		return violation("DATA has %d bytes for operation %d, which has %d of %d bytes of payload to send, in pieces of %d at most", n, id, op.got, op.length, chunkLen)
	}
	if err := s.collect(op); err != nil {
		return err
	}
	if op.complete() && op.ahead == 0 {
		s.ready = append(s.ready, op)
		s.proceed()
	}
	return nil
}

// begin hands an operation to the rank.
func (s *session) begin(op *operation) {
	dev, err := s.post(op)
	if err != nil {
		op.end(&mpe.Status{}, false, err)
		return
	}
	op.dev = dev
	if s.polling != nil && s.polling.watchEnd(op) {
		return
	}
	if st, ended, err := dev.Test(); ended {
		op.end(&st, false, err)
		return
	}
	s.watch(op)
}

func (s *session) post(op *operation) (mpe.Op, error) {
	if op.kind == opCall {
		return s.postCall(op)
	}
	return s.dev.Start(mpe.Operation{
		Kind: op.kind, Peer: int(op.peer), Tag: int(op.tag), Comm: op.comm,
		Buf: op.buf, Datatype: op.datatype, AnyDatatype: op.anyDatatype,
		NoWait: true, // other programs' operations are carried by the same goroutine
	})
}

// cancel asks for an operation to be canceled. Calls go on: the other ranks would wait
// for this one.
func (s *session) cancel(op *operation) {
	switch {
	case op == nil || op.kind == opCall:
	case op.stop != nil:
		op.stop(mpe.ErrCancelled)
	case op.watcher != nil:
		op.watcher.cancel(op)
	case op.watched:
		op.dev.Cancel()
	case op.dev == nil:
		s.endUnstarted(op, fmt.Errorf("rank %d: the send to rank %d: %w", s.rank, op.peer, mpe.ErrCancelled))
	}
}

// abort takes an operation back for a caller that waits no longer.
func (s *session) abort(op *operation, cause error) {
	switch {
	case op == nil:
	case op.stop != nil:
		op.stop(cause)
	case op.runs():
		if op.take() {
			st, err := s.detach(op, cause, false)
			op.end(&st, false, err)
		}
	case op.dev == nil:
		s.endUnstarted(op, s.unstarted(op, cause))
	}
}

// runs reports whether an operation has been handed to the rank, and not ended at once.
func (op *operation) runs() bool { return op.watcher != nil || op.watched }

// take has nothing else end an operation that runs, and reports whether nothing has.
func (op *operation) take() bool {
	if op.watcher != nil {
		return op.watcher.take(op)
	}
	return op.s.polling.take(op)
}

// endUnstarted ends a send or a call that waits for its payload or its place in the queue.
func (s *session) endUnstarted(op *operation, err error) {
	s.unsent.add(op.id, op.length-op.got)
	s.dequeue(op)
	op.end(&mpe.Status{}, false, err)
	s.proceed()
}

// unstarted says what a send or a call that has not been started waits for.
func (s *session) unstarted(op *operation, cause error) error {
	have := fmt.Sprintf("%d of %d bytes of payload have come from the program", op.got, op.length)
	if op.kind == opCall {
		if op.ahead > 0 {
			have += ", and sends or calls that were posted before it have not begun"
		}
		return &causedError{fmt.Errorf("rank %d has not begun %v: %s", s.rank, op.call.collective, have), cause}
	}
	ahead := 0
	for at := s.sendQueues[op.peer].first; at.op != op; at = at.behind {
		ahead++
	}
	e := &unstartedError{
		text: fmt.Sprintf("rank %d waits to send to rank %d: %s", s.rank, op.peer, have),
		wait: &mpe.WaitError{Wait: handshake.Wait{Local: uint32(s.rank), Remote: uint32(op.peer)}, Queued: ahead}, cause: cause,
	}
	if ahead > 0 {
		e.text += fmt.Sprintf(", and %d sends to that rank are ahead", ahead)
	}
	return e
}

// unstartedError is a send that was aborted before it had been started.
type unstartedError struct {
	text  string
	wait  *mpe.WaitError
	cause error
}

func (e *unstartedError) Error() string   { return fmt.Sprintf("%s: %v", e.text, e.cause) }
func (e *unstartedError) Unwrap() []error { return []error{e.wait, e.cause} }

// find returns the operation with an id, or nil.
func (s *session) find(id uint64) *operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op := s.ops[id]; op != nil && !op.ended {
		return op
	}
	return nil
}

func (s *session) underWay() (operations int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ops), s.bytes
}

// stored is how much of a receive, or of a call's result, is to be sent to the program.
func (op *operation) stored(st *mpe.Status, err error) int {
	if op.kind == opCall && err == nil {
		return len(op.buf)
	}
	if op.kind != mpe.OpRecv || (err != nil && !errors.Is(err, handshake.ErrTruncated)) || st.Bytes < 0 {
		return 0
	}
	return int(min(st.Bytes, int64(len(op.buf))))
}
