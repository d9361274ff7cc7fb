package attach

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// operation is one operation of a program, or a probe, until its answer has
// been written.
type operation struct {
	s *session
	start
	// buf is the payload of a send as far as it has arrived, or the buffer of
	// a receive, in memory. got is how much has arrived.
	buf, memory []byte
	got         uint64
	// charged is what it takes of the program's bytes.
	charged int64
	refused bool

	// dev and watcher are of an operation that runs; stop is of a probe that
	// waits.
	dev     mpe.Op
	watcher *watcher
	stop    context.CancelCauseFunc
	// behind is the next send that waits for its turn.
	behind *operation

	// ended is guarded by the session's mu. done, sent and answered are the
	// outbox's from then on.
	ended    bool
	done     done
	sent     int
	answered bool
}

// complete reports whether a send's payload is.
func (op *operation) complete() bool { return op.got == op.length }

// admit enters an operation, if the budget allows, and returns the answer if
// not. err is of the session.
func (s *session) admit(op *operation, bytes uint64) (answer, err error) {
	limits := s.server.opts.Limits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ops[op.id] != nil {
		return nil, violation("%v has id %d, which another operation has", s.in.typ, op.id)
	}
	switch {
	case len(s.ops) >= limits.Operations:
		return fmt.Errorf("rank %d: %w: a program may have %d under way", s.rank, mpe.ErrFull, limits.Operations), nil
	case bytes > uint64(limits.Bytes):
		return fmt.Errorf("rank %d: %d bytes: %w: a program may have %d bytes under way", s.rank, bytes, handshake.ErrTooLong, limits.Bytes), nil
	case s.bytes+int64(bytes) > limits.Bytes:
		return fmt.Errorf("rank %d: %w: %d bytes would be more than the %d that a program may have under way, of which %d are in use",
			s.rank, mpe.ErrFull, bytes, limits.Bytes, s.bytes), nil
	}
	op.charged = int64(bytes)
	s.bytes += op.charged
	s.ops[op.id] = op
	return nil, nil
}

// refuse answers an operation that was not admitted. It waits while too many
// such answers have not been read: a program that reads its answers need not
// wait for that.
func (s *session) refuse(op *operation, err error) {
	s.payUp()
	s.mu.Lock()
	for s.refusals >= maxRefusals && !s.gone {
		s.less.Wait()
	}
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
	op := s.operation(r)
	answer, err := s.admit(op, r.length)
	if err != nil {
		return err
	}
	if answer != nil {
		s.refuse(op, answer)
		return s.in.skip()
	}
	if r.kind == mpe.OpRecv {
		op.reserve(int(r.length), int(r.length))
		s.begin(op)
		return nil
	}
	if err := s.collect(op); err != nil {
		return err
	}
	queue := s.sends[r.peer]
	switch {
	case op.complete() && queue.first == nil:
		s.begin(op)
		return nil
	case queue.first == nil:
		queue.first = op
	default:
		queue.last.behind = op
	}
	queue.last = op
	s.sends[r.peer] = queue
	return nil
}

// collect adds the rest of the frame to the payload of a send. The buffer grows
// with what arrives.
func (s *session) collect(op *operation) error {
	have, n := len(op.buf), s.in.left
	op.reserve(have+n, min(int(op.length), max(have+n, 4*cap(op.memory))))
	op.got += uint64(n)
	return s.in.read(op.buf[have:])
}

// readData goes on with the payload of a send. One that has ended already, or
// was refused, is of no interest.
func (s *session) readData() error {
	id, err := s.in.readID()
	if err != nil {
		return err
	}
	op := s.find(id)
	if op == nil {
		return s.in.skip()
	}
	if n := uint64(s.in.left); op.kind == mpe.OpRecv || n == 0 || n > chunkLen || n > op.length-op.got {
		return violation("DATA has %d bytes for operation %d, which has %d of %d bytes of payload to send, in pieces of %d at most", n, id, op.got, op.length, chunkLen)
	}
	if err := s.collect(op); err != nil {
		return err
	}
	if op.complete() {
		s.beginSends(op.peer)
	}
	return nil
}

// sendQueue has the sends to a peer that have not been started. None of them has
// ended.
type sendQueue struct{ first, last *operation }

// beginSends starts the sends to a peer whose turn it is: those whose payload
// is complete, in the order of their STARTs, which is the order in which they
// are matched.
func (s *session) beginSends(peer int32) {
	queue := s.sends[peer]
	for queue.first != nil && queue.first.complete() {
		op := queue.first
		queue.first, op.behind = op.behind, nil
		s.begin(op)
	}
	if queue.first == nil {
		delete(s.sends, peer)
	} else {
		s.sends[peer] = queue
	}
}

// unqueue takes a send out of its queue.
func (s *session) unqueue(op *operation) {
	queue := s.sends[op.peer]
	var before *operation
	for at := queue.first; at != op; at = at.behind {
		before = at
	}
	if before == nil {
		queue.first = op.behind
	} else {
		before.behind = op.behind
	}
	if queue.last == op {
		queue.last = before
	}
	op.behind = nil
	s.sends[op.peer] = queue
}

// begin hands an operation to the rank.
func (s *session) begin(op *operation) {
	dev, err := s.dev.Start(mpe.Operation{
		Kind: op.kind, Peer: int(op.peer), Tag: int(op.tag), Comm: op.comm,
		Buf: op.buf, Datatype: op.datatype, AnyDatatype: op.anyDatatype,
	})
	if err != nil {
		op.end(&mpe.Status{}, false, err)
		return
	}
	op.dev = dev
	if st, ended, err := dev.Test(); ended {
		op.end(&st, false, err)
		return
	}
	s.watch(op)
}

// cancel asks for an operation to be taken back.
func (s *session) cancel(op *operation) {
	switch {
	case op == nil:
	case op.stop != nil:
		op.stop(mpe.ErrCancelled)
	case op.watcher != nil:
		op.watcher.cancel(op)
	case op.dev == nil:
		s.endUnstarted(op, fmt.Errorf("rank %d: the send to rank %d: %w", s.rank, op.peer, mpe.ErrCancelled))
	}
}

// withdraw takes an operation back for a caller that waits no longer.
func (s *session) withdraw(op *operation, cause error) {
	switch {
	case op == nil:
	case op.stop != nil:
		op.stop(cause)
	case op.watcher != nil:
		if op.watcher.take(op) {
			st, err := op.dev.Wait(endedContext(cause))
			op.end(&st, false, err)
		}
	case op.dev == nil:
		s.endUnstarted(op, s.unstarted(op, cause))
	}
}

// endUnstarted ends a send that waits for its payload or its turn.
func (s *session) endUnstarted(op *operation, err error) {
	s.unqueue(op)
	op.end(&mpe.Status{}, false, err)
	s.beginSends(op.peer)
}

// unstarted says what a send that has not been started waits for.
func (s *session) unstarted(op *operation, cause error) error {
	ahead := 0
	for at := s.sends[op.peer].first; at != op; at = at.behind {
		ahead++
	}
	e := &unstartedError{
		text: fmt.Sprintf("rank %d waits to send to rank %d: %d of %d bytes of payload have come from the program", s.rank, op.peer, op.got, op.length),
		wait: &mpe.WaitError{Wait: handshake.Wait{Local: uint32(s.rank), Remote: uint32(op.peer)}, Queued: ahead}, cause: cause,
	}
	if ahead > 0 {
		e.text += fmt.Sprintf(", and %d sends to that rank are ahead", ahead)
	}
	return e
}

// unstartedError is a send that was withdrawn before it had been started.
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

// stored is how much payload of a receive is to be sent to the program.
func (op *operation) stored(st *mpe.Status, err error) int {
	if op.kind != mpe.OpRecv || (err != nil && !errors.Is(err, handshake.ErrTruncated)) || st.Bytes < 0 {
		return 0
	}
	return int(min(st.Bytes, int64(len(op.buf))))
}
