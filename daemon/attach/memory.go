package attach

import (
	"sync"

	"github.com/zrlmpi/zrlmpid/internal/anonmem"
)

// memory is what the payload of all programs may take in the daemon. Every program has a share of its own, so that what
// another one holds never keeps it from small operations. What it holds beyond that is drawn from what is common to all.
//
// An operation is charged when it is posted, with what it may need: a message that has begun to arrive cannot wait for
// memory, as its sender was cleared to send it. No memory is taken before there is payload: see package anonmem.
type memory struct {
	limit, share int64

	mu     sync.Mutex
	common int64 // that no program has
}

const (
	// maxShare is the largest share of a program in bytes.
	maxShare = 16 << 20
	// shareParts is how small a part of the limit the shares of all programs are, at most.
	shareParts = 8
	// maxKept is how many bytes of buffers a program keeps for later operations. They are returned when another program
	// needs them.
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

// force takes from what is common, also more than there is. Less is drawn until it has been given back.
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
