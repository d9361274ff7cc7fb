package wire

import (
	"sync/atomic"
	"unsafe"
)

// Layout of the memory shared by a daemon and a program: a page of counters and flags, two rings of bytes, the
// first of which the program writes, and the arena. docs/attach.md specifies it.
const (
	// RingLen is the length in bytes of the rings that the daemon offers.
	RingLen = 1 << 20
	// MinRing and maxRing are the minimum and maximum length of a ring that a program accepts. More than two
	// frames of any length fit in a ring; see ringReader.done.
	MinRing, maxRing = 1 << 20, 1 << 30
	// countersLen is the length of the page that contains the counters of both rings. ringCounters is the
	// length of the counters of one ring.
	countersLen  = 4096
	ringCounters = countersLen / 2
	// Each counter or flag occupies two cache lines, because processors prefetch pairs of cache lines.
	writtenOffset, readOffset, readerSleepsOffset, writerSleepsOffset, processorOffset, awaitedAt = 0, 128, 256, 384,
		512, 640
	// ArenaLen is the length in bytes of the arenas that the daemon offers.
	ArenaLen = 16 << 20
	// maxArena is the maximum length of an arena that a program accepts.
	maxArena = 1 << 40
	// wakeFraction determines when the reader wakes up a sleeping writer: once at least 1/wakeFraction of the ring is
	// free.
	wakeFraction = 2
)

// MemoryLen returns the length of the shared memory, without the arena, if each ring has n bytes.
func MemoryLen(n int) int { return countersLen + 2*n }

// isRingSize reports whether n bytes is a valid length for a ring.
func isRingSize(n int) bool { return n >= MinRing && n <= maxRing && n&(n-1) == 0 }

// Ring is one direction of a connection.
type Ring struct {
	Data []byte
	// Written and Read are the numbers of bytes written and read since the connection began. They never
	// decrease. A write that must precede a later load is a Swap, because under the race detector a Store to
	// memory outside Go's heap is not a fence.
	Written, Read *atomic.Uint64
	// ReaderSleeps and WriterSleeps are 1 while the reader waits for data and while the writer waits for space. The
	// side that clears a flag must wake up the other side.
	ReaderSleeps, WriterSleeps *atomic.Uint32
	// Processor is 1 plus the number of the processor on which the ring's writer last polled; 0 means unknown.
	Processor *atomic.Uint32
	// Awaited lists the operations that the program awaits. It is used in the first ring only.
	Awaited *Awaited
}

// awaitedWords is the number of words in which a program lists the operations that it awaits. Each sleeping thread
// needs one word.
const awaitedWords = 8

// Awaited lists operations that a program awaits: for each, a thread of the program sleeps until the operation
// completes. A word is 1 plus the number of an operation, or 0. The program writes the words, so the daemon uses
// them only to describe the program's own operations.
type Awaited [awaitedWords]atomic.Uint64

// Add lists an operation, and returns the index of the word that it uses. If all words are in use, it returns -1.
func (a *Awaited) Add(id uint64) (word int) {
	for i := range a {
		if a[i].Load() == 0 && a[i].CompareAndSwap(0, id+1) {
			return i
		}
	}
	return -1
}

// Remove clears the word whose index Add has returned.
func (a *Awaited) Remove(word int) {
	if word >= 0 {
		a[word].Store(0)
	}
}

// Has reports whether an operation is listed.
func (a *Awaited) Has(id uint64) bool {
	for i := range a {
		if word := a[i].Load(); word != 0 && word-1 == id {
			return true
		}
	}
	return false
}

// RingOf returns the first or the second ring (0 or 1) in memory whose rings are n bytes long.
func RingOf(mem []byte, number, n int) Ring {
	counters := mem[number*ringCounters : (number+1)*ringCounters]
	begin := countersLen + number*n
	return Ring{
		Data:         mem[begin : begin+n : begin+n],
		Written:      (*atomic.Uint64)(unsafe.Pointer(&counters[writtenOffset])),
		Read:         (*atomic.Uint64)(unsafe.Pointer(&counters[readOffset])),
		ReaderSleeps: (*atomic.Uint32)(unsafe.Pointer(&counters[readerSleepsOffset])),
		WriterSleeps: (*atomic.Uint32)(unsafe.Pointer(&counters[writerSleepsOffset])),
		Processor:    (*atomic.Uint32)(unsafe.Pointer(&counters[processorOffset])),
		Awaited:      (*Awaited)(unsafe.Pointer(&counters[awaitedAt])),
	}
}

// ringWriter is the writing side of a ring. It does not trust values that the other side can write, and reads
// each such value only once.
type ringWriter struct {
	Ring
	// pos is the number of bytes written. lastRead is the last valid value that the counter Read had.
	pos, lastRead uint64
}

// free returns the number of bytes that can be written. It reads the other side's counter only if fewer than
// want bytes are known to be free.
func (w *ringWriter) free(want int) (int, error) {
	size := uint64(len(w.Data))
	if free := size - (w.pos - w.lastRead); free >= uint64(want) {
		return int(free), nil
	}
	read := w.Read.Load()
	if w.pos-read > size {
		return 0, Violationf("the counter of bytes read from a ring is %d, but %d were written", read, w.pos)
	}
	w.lastRead = read
	return int(size - (w.pos - read)), nil
}

// write writes as much of b as fits. If wake is set, the caller must wake up the reader.
func (w *ringWriter) write(b []byte) (n int, wake bool, err error) {
	if n, err = w.free(len(b)); n == 0 || err != nil {
		return 0, false, err
	}
	n = min(n, len(b))
	at := int(w.pos & uint64(len(w.Data)-1))
	first := copy(w.Data[at:], b[:n])
	copy(w.Data, b[first:n])
	w.pos += uint64(n)
	w.Written.Swap(w.pos)
	return n, clearFlag(w.ReaderSleeps), nil
}

// requestSpace asks the reader to wake up this side when there is free space. It returns false if there is some
// already.
func (w *ringWriter) requestSpace() bool {
	w.WriterSleeps.Swap(1)
	n, err := w.free(len(w.Data) / wakeFraction)
	return n == 0 || err != nil
}

// ringReader is the reading side of a ring. Like ringWriter, it does not trust values that the other side can write.
type ringReader struct {
	Ring
	// pos is the number of bytes read. lastWritten is the last valid value that the counter Written had.
	pos, lastWritten uint64
}

// available returns the number of bytes that can be read. It reads the other side's counter only if fewer than
// want bytes are known to be available.
func (r *ringReader) available(want int) (int, error) {
	if n := r.lastWritten - r.pos; n >= uint64(want) {
		return int(n), nil
	}
	written := r.Written.Load()
	if written-r.pos > uint64(len(r.Data)) {
		return 0, Violationf("the counter of bytes written to a ring of %d is %d, but %d were read", len(r.Data),
			written, r.pos)
	}
	r.lastWritten = written
	return int(written - r.pos), nil
}

// read reads the available bytes. If wake is set, the caller must wake up the writer.
func (r *ringReader) read(b []byte) (n int, wake bool, err error) {
	if n, err = r.available(1); n == 0 || err != nil {
		return 0, false, err
	}
	n = min(n, len(b))
	at := int(r.pos & uint64(len(r.Data)-1))
	first := copy(b[:n], r.Data[at:])
	copy(b[first:n], r.Data)
	r.pos += uint64(n)
	r.Read.Swap(r.pos)
	return n, r.shouldWakeWriter(), nil
}

// shouldWakeWriter reports whether the writer should be woken up now. A single free byte is not enough, because the
// writer would then be woken up for each frame. A reader that waits for the rest of a frame has less than half of the
// ring unread, so it does wake up the writer.
func (r *ringReader) shouldWakeWriter() bool {
	if r.WriterSleeps.Load() == 0 {
		return false
	}
	unread, err := r.available(len(r.Data)) // all the data there is
	return err == nil && unread <= len(r.Data)/wakeFraction && clearFlag(r.WriterSleeps)
}

// requestData asks the writer to wake up this side when new data arrives. It returns false if new data has arrived
// already.
func (r *ringReader) requestData() bool {
	before := r.lastWritten - r.pos
	r.ReaderSleeps.Swap(1)
	n, err := r.available(int(before) + 1)
	return uint64(n) == before && err == nil
}

func clearFlag(flag *atomic.Uint32) bool {
	return flag.Load() != 0 && flag.CompareAndSwap(1, 0)
}
