package attach

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/anonmem"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// maxRefusals limits the unread answers to rejected operations. Only these answers are not bounded by the program's
// operations.
const maxRefusals = 1024

// maxProbes limits the waiting probes of a program. Each of them needs a goroutine.
const maxProbes = 64

// ledger has the operations of a program and accounts for their memory.
type ledger struct {
	rank   int
	limits wire.Limits
	memory *memory // shared by all programs

	mu    sync.Mutex
	ops   map[uint64]*operation
	bytes int64
	// work is the memory that calls may need in addition to their bytes, listed the memory of the calls'
	// communicators, and drawn the part drawn from common memory.
	work, listed, drawn int64
	// kept holds large buffers for later operations, oldest first.
	kept      [][]byte
	keptBytes int64
	ending    bool
	probes    int
	// claims has the sources of the messages removed from matching by matched probes, by number. The program must
	// receive each of them once; the rest is dropped when the session ends.
	claims map[int]int
	// refusals is the number of unread answers to rejected operations. less is signaled when it decreases, and when
	// gone is set, at the end of the session.
	refusals int
	less     chan struct{}
	gone     bool
}

// errCommon means that the common memory of all programs does not suffice.
var errCommon = errors.New("more than the limit of all attached programs together")

// enter charges an operation to the program's memory and to the common memory, or returns the answer to the program
// if a limit would be exceeded. work is memory in addition to bytes. err ends the session.
func (l *ledger) enter(op *operation, bytes, work uint64) (answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := func(format string, args ...any) (answer, err error) {
		return fmt.Errorf("rank %d: %w: %w", l.rank, mpe.ErrFull, fmt.Errorf(format, args...)), nil
	}
	switch limit := l.limits.Bytes; {
	case l.ops[op.ID] != nil:
		return nil, wire.Violationf("%v has id %d, which is in use by another operation", op.s.in.Type, op.ID)
	case len(l.ops) >= l.limits.Operations:
		return full("a program may have %d operations in progress", l.limits.Operations)
	case bytes > uint64(limit):
		return fmt.Errorf("rank %d: %d bytes: %w: a program may have %d bytes in progress", l.rank, bytes,
			handshake.ErrTooLong, limit), nil
	case l.bytes+int64(bytes) > limit:
		return full("%d bytes would be more than the %d that a program may have in progress, of which %d are in use",
			bytes, limit, l.bytes)
	case work > uint64(limit):
		return fmt.Errorf("rank %d: %d bytes of working memory may be needed: %w: the limit is %d",
			l.rank, work, handshake.ErrTooLong, limit), nil
	case l.work+int64(work) > limit:
		return full("%d bytes of working memory would exceed the limit of %d, of which %d are in use", work, limit,
			l.work)
	}
	if left, ok := l.charge(int64(bytes) + int64(work) + operationLen); !ok {
		return full("%d bytes are needed, %w: %d are left of %d: try again when operations complete, or raise "+
			"limits.attached_bytes",
			bytes+work, errCommon, left, l.memory.limit)
	}
	op.charged, op.work = int64(bytes), int64(work)
	l.bytes += op.charged
	l.work += op.work
	l.ops[op.ID] = op
	return nil, nil
}

// charge draws from common memory the part of n more bytes that exceeds the program's share. If there is not enough,
// it returns the amount left. The ledger is locked.
func (l *ledger) charge(n int64) (left int64, ok bool) {
	beyond := l.held() + n - l.memory.share - l.drawn
	if beyond <= 0 {
		return 0, true
	}
	if left, ok = l.memory.draw(beyond); ok {
		l.drawn += beyond
	}
	return left, ok
}

// held returns the number of bytes that the program is charged. The ledger is locked.
func (l *ledger) held() int64 {
	return l.bytes + l.work + l.listed + l.keptBytes + int64(len(l.ops))*operationLen
}

// uncharge returns memory to the common memory that is no longer needed. The ledger is locked.
func (l *ledger) uncharge() {
	if excess := l.drawn - max(l.held()-l.memory.share, 0); excess > 0 {
		l.drawn -= excess
		_, _ = l.memory.draw(-excess)
	}
}

// release ends an operation. It stays charged for its payload if the answer needs it; otherwise buffer, if not nil,
// is kept or freed.
func (l *ledger) release(op *operation, payload bool, buffer []byte) {
	l.mu.Lock()
	op.ended = true
	l.work, op.work = l.work-op.work, 0
	if !payload {
		l.bytes, op.charged = l.bytes-op.charged, 0
	}
	l.uncharge()
	keep := l.mayKeep(buffer)
	l.mu.Unlock()
	l.keep(buffer, keep)
}

// forget discharges an operation whose answer is complete. keep reports whether the program is charged for its
// memory, to be kept for later operations.
func (l *ledger) forget(op *operation) (keep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if op.refused {
		l.refusals--
		wire.Notify(l.less)
		return false
	}
	l.discharge(op)
	return l.mayKeep(op.memory)
}

// discharge removes an operation and its charges. The ledger is locked.
func (l *ledger) discharge(op *operation) {
	l.bytes -= op.charged
	l.work -= op.work
	op.charged, op.work = 0, 0
	delete(l.ops, op.ID)
	l.uncharge()
}

// find returns the operation with an id, or nil. It ignores ended operations.
func (l *ledger) find(id uint64) *operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if op := l.ops[id]; op != nil && !op.ended {
		return op
	}
	return nil
}

func (l *ledger) underWay() (operations int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ops), l.bytes
}

// refuse counts an answer to a rejected operation.
func (l *ledger) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusals++
}

// full reports whether there are so many unread answers to rejected operations that the session must not handle more
// frames. A program that reads its answers is never blocked by this.
func (l *ledger) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusals >= maxRefusals && !l.gone
}

// endSession makes full return false from now on.
func (l *ledger) endSession() {
	l.mu.Lock()
	l.gone = true
	l.mu.Unlock()
	wire.Notify(l.less)
}

// probing changes the number of waiting probes, or returns an error if there would be too many.
func (l *ledger) probing(change int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.probes+change > maxProbes {
		return fmt.Errorf("rank %d: %w: a program may have %d probes that wait", l.rank, mpe.ErrFull, maxProbes)
	}
	l.probes += change
	return nil
}

// mayClaim returns an error if a matched probe may not take another message.
func (l *ledger) mayClaim() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.claims) >= l.limits.Operations {
		return fmt.Errorf("rank %d: %w: a program may have %d messages of matched probes", l.rank, mpe.ErrFull,
			l.limits.Operations)
	}
	return nil
}

// claim records a message taken by a matched probe.
func (l *ledger) claim(st *mpe.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims[st.Claim] = st.Peer
}

// checkClaim rejects an operation in mpe.ClaimComm unless it receives a message of a matched probe.
func (l *ledger) checkClaim(r *wire.Start) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if peer, ok := l.claims[r.Tag]; r.Comm == mpe.ClaimComm && (!ok || peer != r.Peer || r.Kind != mpe.OpRecv) {
		return wire.Violationf("START of kind %d for message %d of rank %d, which no matched probe returned to "+
			"the program", r.Kind, r.Tag, r.Peer)
	}
	return nil
}

// endClaim removes the claim of a message that an admitted operation receives.
func (l *ledger) endClaim(r *wire.Start) {
	if r.Comm == mpe.ClaimComm {
		l.mu.Lock()
		delete(l.claims, r.Tag)
		l.mu.Unlock()
	}
}

// list charges for a communicator's members, and reports whether they may be kept.
func (l *ledger) list(cost int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed+cost > groupsLen {
		return false
	}
	if _, ok := l.charge(cost); !ok {
		return false
	}
	l.listed += cost
	return true
}

// mayKeep reports whether a buffer may be kept, and charges the program for it. The ledger is locked.
func (l *ledger) mayKeep(b []byte) bool {
	n := int64(cap(b))
	if n < anonmem.Least || l.ending || l.keptBytes+n > maxKept {
		return false
	}
	if _, ok := l.charge(n); !ok {
		return false
	}
	l.keptBytes += n
	return true
}

// keep keeps a buffer for later operations if the program was charged for it, and frees it otherwise.
func (l *ledger) keep(b []byte, charged bool) {
	if charged {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.ending {
			l.kept = append(l.kept, b)
			return
		}
	}
	anonmem.Put(b)
}

// takeKept returns a kept buffer of n to 2n bytes, or nil.
func (l *ledger) takeKept(n int) []byte {
	if n < anonmem.Least {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.kept) - 1; i >= 0; i-- {
		if b := l.kept[i]; cap(b) >= n && cap(b) <= 2*n {
			l.keptBytes -= int64(cap(b))
			l.kept = slices.Delete(l.kept, i, i+1)
			l.uncharge()
			return b
		}
	}
	return nil
}

// returnKept frees all kept buffers.
func (l *ledger) returnKept() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.kept {
		l.keptBytes -= int64(cap(b))
		anonmem.Put(b)
	}
	clear(l.kept)
	l.kept = l.kept[:0]
	l.uncharge()
}

// close frees the memory of a session that ends. Unless all is set, it does not free memory of operations whose
// answers are being written.
func (l *ledger) close(all bool) {
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	l.returnKept()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, op := range l.ops {
		if !op.ended || all {
			anonmem.Put(op.memory)
			l.discharge(op)
		}
	}
	if all {
		l.listed, l.keptBytes = 0, 0
	}
	l.uncharge()
}

// memory is the limit of payload memory in the daemon for all programs. Every program has a fixed share, so that
// other programs can never block its small operations. It draws memory beyond its share from the common memory.
//
// An operation is charged when it is posted, for all that it may need: a message in transfer cannot wait for memory,
// because its sender was cleared to send it. Memory is not allocated before there is payload: see package anonmem.
type memory struct {
	limit, share int64

	mu     sync.Mutex
	common int64 // not drawn by any program
}

const (
	// maxShare limits the share of a program, in bytes.
	maxShare = 16 << 20
	// shareParts limits the sum of all shares to 1/shareParts of the limit.
	shareParts = 8
	// maxKept limits the bytes of buffers kept by a program for later operations. They are freed when another program
	// needs them.
	maxKept = 128 << 20
	// operationLen is the memory of an operation in addition to its payload, in bytes.
	operationLen = 1 << 10
)

// draw draws common memory if there is enough. It returns the amount left.
func (m *memory) draw(n int64) (left int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > m.common {
		return m.common, false
	}
	m.common -= n
	return m.common, true
}

// force draws common memory even if there is not enough, or returns it. A deficit blocks draw until it is returned.
func (m *memory) force(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.common -= n
}
