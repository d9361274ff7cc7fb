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

// maxRefusals is the maximum number of unread answers to rejected operations. These answers need their own limit,
// because rejected operations do not count toward the program's limit on operations.
const maxRefusals = 1024

// maxProbes is the maximum number of waiting probes of one program. Each of them needs a goroutine.
const maxProbes = 64

// ledger tracks a program's operations and accounts for their memory.
type ledger struct {
	rank   int
	limits wire.Limits
	memory *memoryPool // shared by all programs

	mu    sync.Mutex
	ops   map[uint64]*operation
	bytes int64
	// workBytes is the memory that calls may need in addition to their payload, and memberBytes is the memory for lists
	// of communicator members. drawnBytes is the part of all charges that common memory covers.
	workBytes, memberBytes, drawnBytes int64
	// spareBuffers holds large buffers for reuse by later operations, oldest first.
	spareBuffers [][]byte
	spareBytes   int64
	// closing is set when the session ends; from then on, no buffers are kept. probes is the number of waiting probes.
	closing bool
	probes  int
	// claims maps the number of each message claimed by a matched probe to the message's source. A claimed message no
	// longer matches other operations, and the program must receive it exactly once. Claims left at the end of the
	// session are dropped.
	claims map[int]int
	// refusals is the number of unread answers to rejected operations. refusalRead is signaled when refusals decreases
	// and when sessionEnded is set.
	refusals     int
	refusalRead  chan struct{}
	sessionEnded bool
}

// errCommonFull is returned when common memory, which all attached programs share, is exhausted.
var errCommonFull = errors.New("more than the limit of all attached programs together")

// addOperation charges an operation to the program's memory and, if needed, to common memory. The argument work is the
// amount of memory needed in addition to bytes. If a limit would be exceeded, addOperation returns the answer to send
// to the program. A non-nil err ends the session.
func (l *ledger) addOperation(op *operation, bytes, work uint64) (answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := func(format string, args ...any) (answer, err error) {
		return fmt.Errorf("rank %d: %w: %w", l.rank, mpe.ErrFull, fmt.Errorf(format, args...)), nil
	}
	switch limit := l.limits.Bytes; {
	case l.ops[op.ID] != nil:
		return nil, wire.Violationf("%v has id %d, which is in use by another operation", op.session.reader.Type, op.ID)
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
	case l.workBytes+int64(work) > limit:
		return full("%d bytes of working memory would exceed the limit of %d, of which %d are in use", work, limit,
			l.workBytes)
	}
	if left, ok := l.charge(int64(bytes) + int64(work) + operationCost); !ok {
		return full("%d bytes are needed, %w: %d are left of %d: try again when operations complete, or raise "+
			"limits.attached_bytes",
			bytes+work, errCommonFull, left, l.memory.limit)
	}
	op.chargedBytes, op.workBytes = int64(bytes), int64(work)
	l.bytes += op.chargedBytes
	l.workBytes += op.workBytes
	l.ops[op.ID] = op
	return nil, nil
}

// charge charges n bytes. Common memory supplies the bytes beyond the program's share. If it cannot, charge fails and
// returns the number of bytes that remain in common memory. The caller must hold the ledger's lock.
func (l *ledger) charge(n int64) (left int64, ok bool) {
	beyond := l.chargedBytes() + n - l.memory.perProgram - l.drawnBytes
	if beyond <= 0 {
		return 0, true
	}
	if left, ok = l.memory.draw(beyond); ok {
		l.drawnBytes += beyond
	}
	return left, ok
}

// chargedBytes returns the number of bytes charged to the program. The caller must hold the ledger's lock.
func (l *ledger) chargedBytes() int64 {
	return l.bytes + l.workBytes + l.memberBytes + l.spareBytes + int64(len(l.ops))*operationCost
}

// returnExcess returns memory to common memory if the program has drawn more than its remaining charges need. The
// caller must hold the ledger's lock.
func (l *ledger) returnExcess() {
	if excess := l.drawnBytes - max(l.chargedBytes()-l.memory.perProgram, 0); excess > 0 {
		l.drawnBytes -= excess
		_, _ = l.memory.draw(-excess)
	}
}

// endOperation marks an operation as ended. If payload is set, the payload stays charged, because the answer still
// needs it. Otherwise, endOperation keeps buffer, unless it is nil, for reuse or frees it.
func (l *ledger) endOperation(op *operation, payload bool, buffer []byte) {
	l.mu.Lock()
	op.ended = true
	l.workBytes, op.workBytes = l.workBytes-op.workBytes, 0
	if !payload {
		l.bytes, op.chargedBytes = l.bytes-op.chargedBytes, 0
	}
	l.returnExcess()
	keep := l.chargeSpare(buffer)
	l.mu.Unlock()
	l.storeSpare(buffer, keep)
}

// removeAnswered removes an operation once its answer is complete. It reports whether it charged the program for the
// operation's memory, which the caller must then keep for reuse.
func (l *ledger) removeAnswered(op *operation) (keep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if op.rejected {
		l.refusals--
		wire.Notify(l.refusalRead)
		return false
	}
	l.discharge(op)
	return l.chargeSpare(op.memory)
}

// discharge removes an operation and its charges from the ledger. The caller must hold the ledger's lock.
func (l *ledger) discharge(op *operation) {
	l.bytes -= op.chargedBytes
	l.workBytes -= op.workBytes
	op.chargedBytes, op.workBytes = 0, 0
	delete(l.ops, op.ID)
	l.returnExcess()
}

// find returns the operation with the given id if it has not ended, and nil otherwise.
func (l *ledger) find(id uint64) *operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if op := l.ops[id]; op != nil && !op.ended {
		return op
	}
	return nil
}

// pendingTotals returns the number of pending operations, and the bytes charged for their payload.
func (l *ledger) pendingTotals() (operations int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ops), l.bytes
}

// countRefusal counts an answer to a rejected operation.
func (l *ledger) countRefusal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusals++
}

// tooManyRefusals reports whether the session must stop handling frames, because too many answers to rejected
// operations are unread. A program that reads its answers never reaches this limit.
func (l *ledger) tooManyRefusals() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusals >= maxRefusals && !l.sessionEnded
}

// endSession makes tooManyRefusals return false, so that the reading goroutine notices the end of the session.
func (l *ledger) endSession() {
	l.mu.Lock()
	l.sessionEnded = true
	l.mu.Unlock()
	wire.Notify(l.refusalRead)
}

// addProbes adds change to the number of waiting probes. It returns an error if the number would exceed maxProbes.
func (l *ledger) addProbes(change int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.probes+change > maxProbes {
		return fmt.Errorf("rank %d: %w: a program may have %d probes that wait", l.rank, mpe.ErrFull, maxProbes)
	}
	l.probes += change
	return nil
}

// checkClaimLimit returns an error if the program holds too many claims to make another matched probe.
func (l *ledger) checkClaimLimit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.claims) >= l.limits.Operations {
		return fmt.Errorf("rank %d: %w: a program may have %d messages of matched probes", l.rank, mpe.ErrFull,
			l.limits.Operations)
	}
	return nil
}

// claim records the message of a matched probe.
func (l *ledger) claim(st *mpe.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims[st.Claim] = st.Peer
}

// checkClaim rejects an operation in mpe.ClaimComm, the communicator for claimed messages, unless it receives a message
// claimed by a matched probe.
func (l *ledger) checkClaim(r *wire.Start) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if peer, ok := l.claims[r.Tag]; r.Comm == mpe.ClaimComm && (!ok || peer != r.Peer || r.Kind != mpe.OpRecv) {
		return wire.Violationf("START of kind %d for message %d of rank %d, which no matched probe returned to "+
			"the program", r.Kind, r.Tag, r.Peer)
	}
	return nil
}

// endClaim deletes the claim of a message after the operation that receives it has been admitted.
func (l *ledger) endClaim(r *wire.Start) {
	if r.Comm == mpe.ClaimComm {
		l.mu.Lock()
		delete(l.claims, r.Tag)
		l.mu.Unlock()
	}
}

// chargeMembers charges the program for a communicator's list of members. It reports whether the list may be cached.
func (l *ledger) chargeMembers(cost int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memberBytes+cost > maxCommBytes {
		return false
	}
	if _, ok := l.charge(cost); !ok {
		return false
	}
	l.memberBytes += cost
	return true
}

// chargeSpare charges the program for a buffer to keep for reuse, and reports whether the buffer may be kept. The
// caller must hold the ledger's lock.
func (l *ledger) chargeSpare(b []byte) bool {
	n := int64(cap(b))
	if n < anonmem.MinMapped || l.closing || l.spareBytes+n > maxSpareBytes {
		return false
	}
	if _, ok := l.charge(n); !ok {
		return false
	}
	l.spareBytes += n
	return true
}

// storeSpare keeps a buffer for reuse if chargeSpare has charged it, and frees it otherwise.
func (l *ledger) storeSpare(b []byte, charged bool) {
	if charged {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.closing {
			l.spareBuffers = append(l.spareBuffers, b)
			return
		}
	}
	anonmem.Put(b)
}

// takeSpare removes and returns a kept buffer with a capacity between n and 2n bytes. It returns nil if it finds none.
func (l *ledger) takeSpare(n int) []byte {
	if n < anonmem.MinMapped {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.spareBuffers) - 1; i >= 0; i-- {
		if b := l.spareBuffers[i]; cap(b) >= n && cap(b) <= 2*n {
			l.spareBytes -= int64(cap(b))
			l.spareBuffers = slices.Delete(l.spareBuffers, i, i+1)
			l.returnExcess()
			return b
		}
	}
	return nil
}

// freeSpares frees all kept buffers.
func (l *ledger) freeSpares() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.spareBuffers {
		l.spareBytes -= int64(cap(b))
		anonmem.Put(b)
	}
	clear(l.spareBuffers)
	l.spareBuffers = l.spareBuffers[:0]
	l.returnExcess()
}

// close frees the memory of a session that is ending. Unless the argument all is true, operations whose answers are
// being written keep their memory.
func (l *ledger) close(all bool) {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.freeSpares()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, op := range l.ops {
		if !op.ended || all {
			anonmem.Put(op.memory)
			l.discharge(op)
		}
	}
	if all {
		l.memberBytes, l.spareBytes = 0, 0
	}
	l.returnExcess()
}

// memoryPool limits the payload memory that the daemon uses for all programs together. Each program has a fixed share,
// so that other programs can never block its small operations. Beyond its share, a program draws on common memory.
//
// When an operation is posted, it is charged for all the memory that it may ever need: a message in transfer cannot
// wait for memory, because its sender has already been cleared to send. Memory is actually allocated only as payload
// arrives; see package anonmem.
type memoryPool struct {
	limit, perProgram int64

	mu         sync.Mutex
	commonLeft int64 // not drawn by any program
}

const (
	// maxShare is the maximum size in bytes of one program's share of memory.
	maxShare = 16 << 20
	// shareParts limits the sum of all programs' shares to the fraction 1/shareParts of the memory limit.
	shareParts = 8
	// maxSpareBytes is the maximum total size in bytes of the buffers kept by one program for reuse. They are freed
	// when common memory is exhausted.
	maxSpareBytes = 128 << 20
	// operationCost is the memory charged for an operation in addition to its payload, in bytes.
	operationCost = 1 << 10
)

// draw takes n bytes from common memory if at least n bytes are left. It returns the number of bytes left.
func (m *memoryPool) draw(n int64) (left int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > m.commonLeft {
		return m.commonLeft, false
	}
	m.commonLeft -= n
	return m.commonLeft, true
}

// forceDraw takes n bytes from common memory even if fewer are left; a negative n returns bytes. During a deficit, draw
// fails.
func (m *memoryPool) forceDraw(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commonLeft -= n
}
