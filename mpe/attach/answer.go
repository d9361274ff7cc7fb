package attach

import (
	"github.com/zrlmpi/zrlmpid/internal/anonmem"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// end ends an operation. The answer is written before the reading goroutine, the
// only one that calls it, waits for more.
func (op *operation) end(st *mpe.Status, found bool, err error) {
	op.finish(st, found, err)
	op.s.out.putOff(op)
	op.s.deferredAnswers = true
}

// finish makes the answer.
func (op *operation) finish(st *mpe.Status, found bool, err error) {
	s := op.s
	if err != nil {
		err = s.server.opts.Explain(err)
	}
	op.done.id, op.done.found, op.done.status, op.done.err = op.id, found, *st, err
	if op.dev != nil {
		op.dev.Free()
		op.dev = nil
	}
	var memory []byte
	n := op.stored(st, err)
	op.done.stored = uint64(n)
	if st.Claim != 0 {
		op.done.stored = uint64(st.Claim)
	}
	if op.placed { // it is where the program wants it
		n = 0
	}
	if op.buf = op.buf[:n]; n == 0 { // its answer may wait for long
		op.buf = nil
		memory = op.detachMemory()
	}
	s.mu.Lock()
	op.ended = true
	s.work, op.work = s.work-op.work, 0
	if n == 0 {
		s.bytes, op.charged = s.bytes-op.charged, 0
	}
	s.uncharge()
	if s.mayKeep(memory) {
		s.kept = append(s.kept, memory)
		memory = nil
	}
	s.mu.Unlock()
	anonmem.Put(memory)
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
	op.answered = true
	if !op.keep {
		anonmem.Trim(op.memory, op.sent)
	}
	return appendDone(b, &op.done, len(left)), left, false
}

// written makes room for another operation when all of the answer is out.
func (op *operation) written() {
	if op.answered {
		op.s.recycle(op)
	}
}

// forget gives back what the operation took of the budget.
func (op *operation) forget() {
	s := op.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if op.refused {
		s.refusals--
		notify(s.less)
		return
	}
	s.discharge(op)
	op.keep = s.mayKeep(op.memory)
}
