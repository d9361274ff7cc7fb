package wire

import (
	"sync/atomic"
	"unsafe"
)

// The memory that a daemon and a program share: a page of counters and flags, two rings of bytes,
// the program's first, and the arena. docs/attach.md specifies it.
const (
	// RingLen is how long a ring is that a daemon makes, in bytes.
	RingLen = 1 << 20
	// MinRing and maxRing are the shortest and the longest that a program accepts. A ring has
	// room for more than two frames of any length: see ringReader.done.
	MinRing, maxRing = 1 << 20, 1 << 30
	// countersLen is the length of the page with the counters of both rings, and ringCounters that of those of one.
	countersLen  = 4096
	ringCounters = countersLen / 2
	// Each counter and flag has two cache lines of its own, as processors fetch them in pairs.
	writtenAt, readAt, readerSleepsAt, writerSleepsAt, processorAt = 0, 128, 256, 384, 512
	// ArenaLen is how long an arena is that a daemon makes, in bytes.
	ArenaLen = 16 << 20
	// maxArena is the longest that a program accepts.
	maxArena = 1 << 40
	// wakePart is which part of a ring is free at least when a writer that sleeps is woken.
	wakePart = 2
)

// MemoryLen is the length of the memory with rings of n bytes, without the arena behind them.
func MemoryLen(n int) int { return countersLen + 2*n }

// ringSize reports whether a ring may have n bytes.
func ringSize(n int) bool { return n >= MinRing && n <= maxRing && n&(n-1) == 0 }

// Ring is one direction of a connection, as both sides see it.
type Ring struct {
	Data []byte
	// Written and read count bytes since the beginning, and never go back. What is followed by a load that must not
	// come before it is a Swap: with the race detector, a Store of memory that is not Go's is no fence.
	Written, Read *atomic.Uint64
	// ReaderSleeps and writerSleeps are 1 while that side is to be woken when there is
	// something to be read, or room. The side that clears one of them wakes the other side.
	ReaderSleeps, WriterSleeps *atomic.Uint32
	// Processor is that on which the writer has polled last, plus 1; 0 if the writer does not say.
	Processor *atomic.Uint32
}

// RingOf returns the ring with that number, 0 or 1, in memory with rings of n bytes.
func RingOf(mem []byte, number, n int) Ring {
	counters := mem[number*ringCounters : (number+1)*ringCounters]
	begin := countersLen + number*n
	return Ring{
		Data:         mem[begin : begin+n : begin+n],
		Written:      (*atomic.Uint64)(unsafe.Pointer(&counters[writtenAt])),
		Read:         (*atomic.Uint64)(unsafe.Pointer(&counters[readAt])),
		ReaderSleeps: (*atomic.Uint32)(unsafe.Pointer(&counters[readerSleepsAt])),
		WriterSleeps: (*atomic.Uint32)(unsafe.Pointer(&counters[writerSleepsAt])),
		Processor:    (*atomic.Uint32)(unsafe.Pointer(&counters[processorAt])),
	}
}

// ringWriter is the side of a ring that writes. It does not believe what the other side may
// write, and reads each value once.
type ringWriter struct {
	Ring
	// pos is how much has been written, and seen the last valid value of read.
	pos, seen uint64
}

// room returns how many bytes may be written, which is at least want if there are so many.
func (w *ringWriter) room(want int) (int, error) {
	size := uint64(len(w.Data))
	if free := size - (w.pos - w.seen); free >= uint64(want) {
		return int(free), nil
	}
	read := w.Read.Load()
	if w.pos-read > size {
		return 0, Violationf("the counter of bytes read from a ring is %d where %d were written", read, w.pos)
	}
	w.seen = read
	return int(size - (w.pos - read)), nil
}

// write writes as much of b as there is room for. The caller wakes the reader if wake is set.
func (w *ringWriter) write(b []byte) (n int, wake bool, err error) {
	if n, err = w.room(len(b)); n == 0 || err != nil {
		return 0, false, err
	}
	n = min(n, len(b))
	at := int(w.pos & uint64(len(w.Data)-1))
	first := copy(w.Data[at:], b[:n])
	copy(w.Data, b[first:n])
	w.pos += uint64(n)
	w.Written.Swap(w.pos)
	return n, clears(w.ReaderSleeps), nil
}

// waits asks the reader to wake this side when there is room. It reports false if there is some now.
func (w *ringWriter) waits() bool {
	w.WriterSleeps.Swap(1)
	n, err := w.room(len(w.Data) / wakePart)
	return n == 0 || err != nil
}

// ringReader is the side of a ring that reads, with the same caution.
type ringReader struct {
	Ring
	// pos is how much has been read, and seen the last valid value of written.
	pos, seen uint64
}

// available returns how many bytes there are to be read, which is at least want if there are so many.
func (r *ringReader) available(want int) (int, error) {
	if n := r.seen - r.pos; n >= uint64(want) {
		return int(n), nil
	}
	written := r.Written.Load()
	if written-r.pos > uint64(len(r.Data)) {
		return 0, Violationf("the counter of bytes written to a ring of %d is %d where %d were read", len(r.Data), written, r.pos)
	}
	r.seen = written
	return int(written - r.pos), nil
}

// get reads what there is. The caller wakes the writer if wake is set.
func (r *ringReader) get(b []byte) (n int, wake bool, err error) {
	if n, err = r.available(1); n == 0 || err != nil {
		return 0, false, err
	}
	n = min(n, len(b))
	at := int(r.pos & uint64(len(r.Data)-1))
	first := copy(b[:n], r.Data[at:])
	copy(b[first:n], r.Data)
	r.pos += uint64(n)
	r.Read.Swap(r.pos)
	return n, r.done(), nil
}

// done reports whether the writer is to be woken now: not for the first byte of room, or it would be woken for each
// frame. A reader that waits for the rest of a frame has less than half of the ring unread.
func (r *ringReader) done() bool {
	if r.WriterSleeps.Load() == 0 {
		return false
	}
	unread, err := r.available(len(r.Data)) // all that there is
	return err == nil && unread <= len(r.Data)/wakePart && clears(r.WriterSleeps)
}

// waits asks the writer to wake this side when there is more than was seen. It reports false if there is now.
func (r *ringReader) waits() bool {
	before := r.seen - r.pos
	r.ReaderSleeps.Swap(1)
	n, err := r.available(int(before) + 1)
	return uint64(n) == before && err == nil
}

// clears clears a flag and reports whether it was set.
func clears(flag *atomic.Uint32) bool {
	return flag.Load() != 0 && flag.CompareAndSwap(1, 0)
}
