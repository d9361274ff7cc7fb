package attach

import (
	"maps"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/internal/anonmem"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// memory is what the payload of all programs may take in the daemon. Every program has a
// share of its own, so that what another one holds never keeps it from small operations.
// What it holds beyond that is drawn from what is common to all.
//
// An operation is charged when it is posted, with what it may need: a message that has
// begun to arrive cannot wait for memory, as its sender was cleared to send it. No
// memory is taken before there is payload: see package anonmem.
type memory struct {
	limit, share int64

	mu     sync.Mutex
	common int64 // that no program has
}

const (
	// maxShare is the largest share of a program in bytes.
	maxShare = 16 << 20
	// shareParts is how small a part of the limit the shares of all programs are, at
	// most.
	shareParts = 8
	// maxKept is how many bytes of buffers a program keeps for later operations. They are
	// returned when another program needs them.
	maxKept = 128 << 20
	// operationLen is what an operation takes beside its payload, in bytes.
	operationLen = 1 << 10
)

// divide sets the shares of so many programs aside.
func (m *memory) divide(limit int64, programs int) {
	n := int64(max(programs, 1))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit, m.share = limit, min(maxShare, limit/shareParts/n)
	m.common = limit - n*m.share
}

// draw takes from what is common, if there is enough. It returns what is left.
func (m *memory) draw(n int64) (left int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > m.common {
		return m.common, false
	}
	m.common -= n
	return m.common, true
}

// held is what a session is charged with, in bytes. The session is locked.
func (s *session) held() int64 {
	return s.bytes + s.work + s.listed + s.keptBytes + int64(len(s.ops))*operationLen
}

// charge draws what n bytes more take beyond the session's share. If there is not enough
// it returns how much there is. The session is locked.
func (s *session) charge(n int64) (left int64, ok bool) {
	m := &s.server.memory
	beyond := s.held() + n - m.share - s.drawn
	if beyond <= 0 {
		return 0, true
	}
	if left, ok = m.draw(beyond); ok {
		s.drawn += beyond
	}
	return left, ok
}

// uncharge gives back what is drawn and no longer held. The session is locked.
func (s *session) uncharge() {
	m := &s.server.memory
	if excess := s.drawn - max(s.held()-m.share, 0); excess > 0 {
		s.drawn -= excess
		_, _ = m.draw(-excess)
	}
}

// reserve gives an operation a buffer of n bytes. The error says that there is none.
func (op *operation) reserve(n int) error {
	if n <= cap(op.memory) {
		return nil
	}
	b := op.s.takeKept(n)
	if b == nil {
		var err error
		if b, err = anonmem.Get(n); err != nil {
			return err
		}
	}
	op.memory = b
	return nil
}

// detachMemory takes a large buffer from an operation that needs it no longer, and returns
// it. Small ones stay, for the operation that it is next.
func (op *operation) detachMemory() []byte {
	b := op.memory
	if cap(b) < anonmem.Least {
		return nil
	}
	op.memory, op.buf = nil, nil
	return b
}

// mayKeep charges the session with a buffer that it is going to keep, if there is room
// for it. The session is locked.
func (s *session) mayKeep(b []byte) bool {
	n := int64(cap(b))
	if n < anonmem.Least || s.ending || s.keptBytes+n > maxKept {
		return false
	}
	if _, ok := s.charge(n); !ok {
		return false
	}
	s.keptBytes += n
	return true
}

// takeKept returns a buffer of n bytes that was kept and is not much larger, or nil.
func (s *session) takeKept(n int) []byte {
	if n < anonmem.Least {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.kept) - 1; i >= 0; i-- {
		if have := cap(s.kept[i]); have >= n && have <= 2*n {
			b := s.removeKept(i)
			s.uncharge()
			return b
		}
	}
	return nil
}

// removeKept removes the buffer with that index. The session is locked.
func (s *session) removeKept(i int) []byte {
	b := s.kept[i]
	s.keptBytes -= int64(cap(b))
	s.kept = slices.Delete(s.kept, i, i+1)
	return b
}

// returnKept returns the buffers that the session keeps to the system.
func (s *session) returnKept() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.kept) > 0 {
		anonmem.Put(s.removeKept(len(s.kept) - 1))
	}
	s.uncharge()
}

// returnKept has all sessions return what they keep.
func (s *Server) returnKept() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.attached))
	s.mu.Unlock()
	for _, ses := range all {
		ses.returnKept()
	}
}

// discharge forgets an operation and what it is charged with. The session is locked.
func (s *session) discharge(op *operation) {
	s.bytes -= op.charged
	s.work -= op.work
	op.charged, op.work = 0, 0
	delete(s.ops, op.id)
	s.uncharge()
}

// detacher is an operation that can end while its transfer keeps the buffer.
type detacher interface {
	Detach(cause error, keep mpe.Keep) (mpe.Status, error)
	Abandon(cause error, keep mpe.Keep) (mpe.Status, error)
}

// detach ends an operation because of cause, for a program that waits no longer, or is gone.
// If its transfer goes on, its buffer is charged to what is common until that has ended.
func (s *session) detach(op *operation, cause error, gone bool) (mpe.Status, error) {
	l, ok := op.dev.(detacher)
	large := max(cap(op.memory), len(op.buf)) >= anonmem.Least
	if !ok || !gone && (op.kind == opCall || !large) {
		st, err := op.dev.Await(endedContext(cause))
		return *st, err
	}
	var keep mpe.Keep
	if large && op.kind != opCall {
		keep = op.detachPayload
	}
	if gone {
		return l.Abandon(cause, keep)
	}
	return l.Detach(cause, keep)
}

// detachPayload implements mpe.Keep. The arena is the program's again: what goes on has a copy.
func (op *operation) detachPayload(buf []byte) (kept []byte, release func()) {
	m, b := &op.s.server.memory, op.detachMemory()
	if op.placed {
		var err error
		if b, err = anonmem.Get(len(buf)); err != nil {
			b = make([]byte, len(buf))
		}
		copy(b, buf)
		buf = b
	}
	m.force(int64(cap(b)))
	return buf, func() { m.release(b) }
}

// force takes from what is common, also more than there is. Less is drawn until it has
// been given back.
func (m *memory) force(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.common -= n
}

// release returns a buffer that was taken by force to the system.
func (m *memory) release(b []byte) {
	n := int64(cap(b))
	anonmem.Put(b)
	m.force(-n)
}

// returnMemory returns what the session holds, as it ends, but for operations whose
// answers are being written unless all is set.
func (s *session) returnMemory(all bool) {
	s.mu.Lock()
	s.ending = true
	var buffers [][]byte
	for len(s.kept) > 0 {
		buffers = append(buffers, s.removeKept(len(s.kept)-1))
	}
	for _, op := range s.ops {
		if !op.ended || all {
			buffers = append(buffers, op.memory)
			s.discharge(op)
		}
	}
	if all {
		s.listed, s.keptBytes = 0, 0
	}
	s.uncharge()
	s.mu.Unlock()
	for _, b := range buffers {
		anonmem.Put(b)
	}
}
