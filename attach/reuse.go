package attach

import "math/bits"

// operation makes an operation of one that is over, if there is one whose buffer
// is of about the size that is needed. Only the reading goroutine calls it, so that what it
// has found by an id stays what it is while it looks at it.
func (s *session) operation(r start, size uint64) *operation {
	op, _ := s.spare[bits.Len64(size)].Get().(*operation)
	if op == nil {
		op = &operation{s: s}
	}
	*op = operation{s: s, start: r, memory: op.memory, call: op.call}
	return op
}

// recycle takes an operation whose answer has been written.
func (s *session) recycle(op *operation) { s.spare[bits.Len(uint(cap(op.memory)))].Put(op) }

// reserve makes the operation's buffer n bytes long, and keeps what is in it. If
// that needs memory, there will be some for room bytes.
func (op *operation) reserve(n, room int) {
	if n > cap(op.memory) {
		grown := make([]byte, room)
		copy(grown, op.buf)
		op.memory = grown
	}
	op.buf = op.memory[:n]
}
