package attach

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/internal/anonmem"
)

// operation makes an operation of one that is over, if there is one whose buffer
// is of about the size that is needed. Only the reading goroutine calls it, so that what it
// has found by an id stays what it is while it examines it.
func (s *session) operation(r start, size uint64) *operation {
	if size >= anonmem.Least { // those come without
		size = 0
	}
	op, _ := s.spare[bits.Len64(size)].Get().(*operation)
	if op == nil {
		op = &operation{s: s}
	}
	*op = operation{s: s, start: r, memory: op.memory, call: op.call, onEnd: op.onEnd}
	return op
}

// recycle takes an operation whose answer has been written.
func (s *session) recycle(op *operation) {
	memory := op.detachMemory()
	if op.keep {
		s.mu.Lock()
		if !s.ending {
			s.kept = append(s.kept, memory)
			memory = nil
		}
		s.mu.Unlock()
	}
	anonmem.Put(memory)
	s.spare[bits.Len(uint(cap(op.memory)))].Put(op)
}
