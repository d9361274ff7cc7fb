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

// maxRefusals is how many answers to refused operations may wait for the program. They are the only answers that are not
// bounded by its operations.
const maxRefusals = 1024

// maxProbes is how many probes of a program may wait at once: each costs a goroutine.
const maxProbes = 64

// ledger is what a program has under way, and what it is charged with for that.
type ledger struct {
	rank   int
	limits wire.Limits
	memory *memory // of all programs

	mu    sync.Mutex
	ops   map[uint64]*operation
	bytes int64
	// work is how much memory calls may need beside their bytes, and listed what the communicators of calls take; drawn
	// is what the session has of what is common to all.
	work, listed, drawn int64
	// kept are large buffers for later operations, the oldest first.
	kept      [][]byte
	keptBytes int64
	ending    bool
	probes    int
	// claims are the sources of the messages that matched probes have taken out of the matching, by number. The program
	// has to receive each of them, once, and what it has not received ends with it.
	claims map[int]int
	// refusals counts answers to operations that were refused and that the program has not read; less has a value when
	// it does, or when gone is set: the session ends.
	refusals int
	less     chan struct{}
	gone     bool
}

// errCommon: the memory of all programs does not suffice.
var errCommon = errors.New("more than all attached programs together may have under way")

// enter charges an operation to the program and to what all of them may have, or returns the answer if that is more than
// there may be. work is what the daemon may need beside the bytes. err is of the session.
func (l *ledger) enter(op *operation, bytes, work uint64) (answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := func(format string, args ...any) (answer, err error) {
		return fmt.Errorf("rank %d: %w: %w", l.rank, mpe.ErrFull, fmt.Errorf(format, args...)), nil
	}
	switch limit := l.limits.Bytes; {
	case l.ops[op.ID] != nil:
		return nil, wire.Violationf("%v has id %d, which another operation has", op.s.in.Type, op.ID)
	case len(l.ops) >= l.limits.Operations:
		return full("a program may have %d under way", l.limits.Operations)
	case bytes > uint64(limit):
		return fmt.Errorf("rank %d: %d bytes: %w: a program may have %d bytes under way", l.rank, bytes, handshake.ErrTooLong, limit), nil
	case l.bytes+int64(bytes) > limit:
		return full("%d bytes would be more than the %d that a program may have under way, of which %d are in use", bytes, limit, l.bytes)
	case work > uint64(limit):
		return fmt.Errorf("rank %d: %d bytes may be needed to work on it: %w: there are %d bytes for that",
			l.rank, work, handshake.ErrTooLong, limit), nil
	case l.work+int64(work) > limit:
		return full("%d bytes to work on it would be more than the %d that there are for that, of which %d are in use", work, limit, l.work)
	}
	if left, ok := l.charge(int64(bytes) + int64(work) + operationLen); !ok {
		return full("%d bytes are needed, %w: %d are left of %d: try again when operations have ended, or raise limits.attached_bytes",
			bytes+work, errCommon, left, l.memory.limit)
	}
	op.charged, op.work = int64(bytes), int64(work)
	l.bytes += op.charged
	l.work += op.work
	l.ops[op.ID] = op
	return nil, nil
}

// charge draws what n bytes more take beyond the program's share. If there is not enough it returns how much there is.
// The ledger is locked.
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

// held is what the program is charged with, in bytes. The ledger is locked.
func (l *ledger) held() int64 {
	return l.bytes + l.work + l.listed + l.keptBytes + int64(len(l.ops))*operationLen
}

// uncharge gives back what is drawn and no longer held. The ledger is locked.
func (l *ledger) uncharge() {
	if excess := l.drawn - max(l.held()-l.memory.share, 0); excess > 0 {
		l.drawn -= excess
		_, _ = l.memory.draw(-excess)
	}
}

// release ends an operation, whose answer needs its payload if that is kept. Otherwise it takes over a buffer, if there is
// one.
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

// forget gives back what an operation took whose answer is complete. keep reports whether its memory is charged to the
// program, for later operations.
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

// discharge forgets an operation and what it is charged with. The ledger is locked.
func (l *ledger) discharge(op *operation) {
	l.bytes -= op.charged
	l.work -= op.work
	op.charged, op.work = 0, 0
	delete(l.ops, op.ID)
	l.uncharge()
}

// find returns the operation with an id, unless it has ended, or nil.
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

// refuse counts an answer to an operation that was not entered.
func (l *ledger) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusals++
}

// full reports whether there are so many answers to operations that were refused and that the program has not read that
// no more of its frames are handled for now: a program that reads its answers need not wait for that.
func (l *ledger) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusals >= maxRefusals && !l.gone
}

// endSession makes full report false from here on.
func (l *ledger) endSession() {
	l.mu.Lock()
	l.gone = true
	l.mu.Unlock()
	wire.Notify(l.less)
}

// probing counts probes that wait, and returns why there may be no other one, or nil.
func (l *ledger) probing(change int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.probes+change > maxProbes {
		return fmt.Errorf("rank %d: %w: a program may have %d probes that wait", l.rank, mpe.ErrFull, maxProbes)
	}
	l.probes += change
	return nil
}

// mayClaim returns why a matched probe may not take a message, or nil.
func (l *ledger) mayClaim() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.claims) >= l.limits.Operations {
		return fmt.Errorf("rank %d: %w: a program may have %d messages of matched probes", l.rank, mpe.ErrFull, l.limits.Operations)
	}
	return nil
}

// claim notes the message that a probe has taken.
func (l *ledger) claim(st *mpe.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims[st.Claim] = st.Peer
}

// checkClaim refuses an operation in the communicator of such messages that is not the receive of one.
func (l *ledger) checkClaim(r *wire.Start) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if peer, ok := l.claims[r.Tag]; r.Comm == mpe.ClaimComm && (!ok || peer != r.Peer || r.Kind != mpe.OpRecv) {
		return wire.Violationf("START of kind %d for message %d of rank %d, which no matched probe has given to the program", r.Kind, r.Tag, r.Peer)
	}
	return nil
}

// endClaim forgets the message that an operation receives, which has been admitted.
func (l *ledger) endClaim(r *wire.Start) {
	if r.Comm == mpe.ClaimComm {
		l.mu.Lock()
		delete(l.claims, r.Tag)
		l.mu.Unlock()
	}
}

// list counts what is kept of a communicator, and reports whether it may be.
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

// mayKeep charges the program with a buffer that is going to be kept, if there is room for it. The ledger is locked.
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

// keep takes over a buffer, for later operations if the program is charged with it.
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

// takeKept returns a buffer of n bytes that was kept and is not much larger, or nil.
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

// returnKept returns the buffers that are kept to the system.
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

// close returns what the program holds, as its session ends, but for operations whose answers are being written unless
// all is set.
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

// force takes from what is common, also more than there is, or gives back what was taken so. Less is drawn until then.
func (m *memory) force(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.common -= n
}
