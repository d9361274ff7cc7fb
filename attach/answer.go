package attach

import "github.com/zrlmpi/zrlmpid/mpe"

// end ends an operation. Its answer is written by run.
func (op *operation) end(st mpe.Status, found bool, err error) {
	op.finish(st, found, err)
	op.s.out.put(op)
}

// finish makes the answer.
func (op *operation) finish(st mpe.Status, found bool, err error) {
	s := op.s
	op.done = done{id: op.id, found: found, status: st, err: err}
	s.mu.Lock()
	defer s.mu.Unlock()
	op.ended = true
	if n := op.stored(st, err); n > 0 {
		op.done.stored, op.buf = uint64(n), op.buf[:n]
		return
	}
	op.buf = nil
	s.bytes -= op.charged
	op.charged = 0
}

// frame returns the next frame of the answer. The operation is over when the
// program can know of it.
func (op *operation) frame(b []byte) (head, payload []byte, more bool) {
	left := op.buf[op.sent:]
	if len(left) > chunkLen {
		op.sent += chunkLen
		return appendData(b, op.id, chunkLen), left[:chunkLen], true
	}
	op.forget()
	return appendDone(b, &op.done, len(left)), left, false
}

func (op *operation) written() {}

// forget gives back what the operation took of the budget.
func (op *operation) forget() {
	s := op.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if op.refused {
		s.refusals--
		s.less.Signal()
		return
	}
	s.bytes -= op.charged
	op.charged = 0
	delete(s.ops, op.id)
}
