package wire

import (
	"context"
	"sync"
	"sync/atomic"
)

// Item is something to be written: one frame, or several if it has much payload.
type Item interface {
	// Frame appends the item's next frame to b, but for the payload at its
	// end, which is returned beside it. more says that further frames follow.
	Frame(b []byte) (head, payload []byte, more bool)
	// written says that the payload that frame returned is not needed any longer.
	Written()
}

const (
	// CopyLen is the longest payload that is copied to be written with its
	// neighbours, in bytes: a system call costs as much as this copy.
	CopyLen = 16 << 10
	// longWait is how many bytes of new items may pass an item that has begun.
	longWait = 4 * ChunkLen
	// BatchLen is how many bytes are gathered for one system call.
	BatchLen = 64 << 10
)

// Outbox writes the items of a connection. New items go first; an item with more than one frame goes on behind the
// others after each, so that small operations are not stuck behind a large one. The goroutine that puts an item may
// write what the kernel has room for, if no other one is writing, which saves waking a goroutine; the rest is written
// by run.
type Outbox struct {
	to Stream
	// Failed is called when the connection has failed.
	Failed func()

	mu     sync.Mutex
	fresh  fifo // not begun
	begun  fifo // to be gone on with
	since  int  // bytes of fresh items since one of begun was written
	busy   bool // a goroutine writes, or run has been woken to do it
	closed bool
	wake   chan struct{}
	// Rings is where to, if it is polled: then what there is no room for is written by
	// advance, and not by run. stalled is set while there is such.
	Rings   Rings
	Stalled atomic.Bool

	drained chan struct{} // is closed when the last item is written, if one was given

	// What follows belongs to the goroutine that writes: bytes to be written, and after
	// them the payload of an item that was not worth copying.
	buf     []byte
	payload []byte
	owner   Item
}

// NewOutbox returns the Outbox of a connection.
func NewOutbox(to Stream) *Outbox {
	return &Outbox{
		to: to, Failed: func() {}, wake: make(chan struct{}, 1),
		buf: make([]byte, 0, BatchLen),
	}
}

// toRun wakes run. The channel has room: only who has made the outbox busy wakes.
func (o *Outbox) toRun() { o.wake <- struct{}{} }

// PutNow writes an item, if no other goroutine is writing, and others that were put meanwhile. It never waits either:
// what the kernel has no room for is left to run, and so are large payloads.
func (o *Outbox) PutNow(it Item) {
	if o.push(it, true) {
		o.writeNow()
	}
}

// PutOff queues an item for the next writer. The caller ensures that a goroutine does, by flush at the latest.
func (o *Outbox) PutOff(it Item) { o.push(it, false) }

// Flush is PutNow for items that were put off.
func (o *Outbox) Flush() { o.PutNow(nil) }

// push queues an item, unless that is nil. A caller that can write has to if push returns true: no other goroutine is
// writing.
func (o *Outbox) push(it Item, canWrite bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if it != nil && !o.closed {
		o.fresh.push(it)
	}
	if !canWrite || o.busy || o.fresh.len() == 0 {
		return false
	}
	o.busy = true
	return true
}

func (o *Outbox) writeNow() {
	for !o.write(false) {
		if !o.stall() {
			o.toRun()
			return
		}
		// Either there is room now, or this side is woken when there is.
		if o.Rings.Waits() || !o.Stalled.CompareAndSwap(true, false) {
			return
		}
	}
}

// Run writes until ctx is done.
func (o *Outbox) Run(ctx context.Context) {
	for o.to.Await(ctx, o.wake) == nil {
		o.write(true)
	}
}

// write writes all that is queued, if it may wait. Otherwise it writes what there is room for, but not too much, and
// reports whether there is nothing left.
func (o *Outbox) write(wait bool) bool {
	most := BatchLen
	if o.Rings != nil {
		most = RingLen
	}
	for total := 0; wait || total < most; {
		n := 0
		if o.owner == nil && len(o.buf) < BatchLen-CopyLen {
			n = o.gather()
		}
		total += n
		switch {
		case o.owner != nil && o.Rings == nil && !wait:
			return false
		case n > 0 && o.owner == nil && len(o.buf) < BatchLen-CopyLen: // there may be more to be gathered
		case !o.emit(wait):
			return false
		case n == 0 && o.rest():
			return true
		}
	}
	return false
}

// emit writes what was gathered, or what there is room for, and reports whether that was all.
func (o *Outbox) emit(wait bool) bool {
	o.buf = o.buf[:copy(o.buf, o.buf[o.send(o.buf, wait):])]
	if len(o.buf) > 0 {
		return false
	}
	if cap(o.buf) > 2*BatchLen {
		o.buf = make([]byte, 0, BatchLen)
	}
	if o.owner != nil {
		o.payload = o.payload[o.send(o.payload, wait):]
		if len(o.payload) > 0 {
			return false
		}
		o.owner.Written()
		o.payload, o.owner = nil, nil
	}
	return true
}

// send writes b, or what there is room for, and returns how much that was. After an error there is nothing to write any
// longer.
func (o *Outbox) send(b []byte, wait bool) int {
	if !wait {
		return o.to.TryWrite(b)
	}
	if len(b) > 0 {
		if _, err := o.to.Write(b); err != nil {
			o.Close()
			o.Failed()
		}
	}
	return len(b)
}

// stall leaves the rest to advance, if that is called.
func (o *Outbox) stall() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Rings == nil || o.closed {
		return false
	}
	o.Stalled.Store(true)
	return true
}

// Advance writes what there was no room for. It is called with every poll.
func (o *Outbox) Advance() {
	if o.Stalled.Load() && o.Stalled.CompareAndSwap(true, false) {
		o.writeNow()
	}
}

// gather takes the next frame, and returns its length, or 0 if there is none. It queues the rest of its item.
func (o *Outbox) gather() int {
	it, fresh := o.next()
	if it == nil {
		return 0
	}
	before := len(o.buf)
	head, payload, more := it.Frame(o.buf)
	n := len(head) - before + len(payload)
	o.buf = head
	if len(payload) <= CopyLen {
		o.buf = append(o.buf, payload...)
		it.Written()
	} else {
		o.payload, o.owner = payload, it
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if fresh {
		o.since += n
	}
	if more && !o.closed {
		o.begun.push(it)
	}
	return max(n, 1) // an item may have nothing to say any longer
}

// next takes the item that is next.
func (o *Outbox) next() (it Item, fresh bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun.len() > 0 && (o.fresh.len() == 0 || o.since >= longWait) {
		o.since = 0
		return o.begun.pop(), false
	}
	return o.fresh.pop(), true
}

// rest ends the writing if there is nothing to write.
func (o *Outbox) rest() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fresh.len()+o.begun.len() > 0 {
		return false
	}
	o.busy = false
	if o.drained != nil {
		close(o.drained)
		o.drained = nil
	}
	return true
}

// Close drops what is queued, and what is put from now on.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.fresh, o.begun = fifo{}, fifo{}
}

// CloseWith drops what is queued but for one last item, and waits until run has written it, or failed to.
func (o *Outbox) CloseWith(last Item) {
	o.mu.Lock()
	drained := make(chan struct{})
	o.closed, o.drained = true, drained
	o.begun, o.fresh = fifo{}, fifo{}
	o.fresh.push(last)
	idle := !o.busy || o.Stalled.CompareAndSwap(true, false)
	o.busy = true
	o.mu.Unlock()
	if idle {
		o.toRun()
	}
	_ = o.to.Await(context.Background(), drained) // which never ends
}

// fifo is a queue of items.
type fifo struct {
	items []Item
	head  int
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(it Item) {
	if q.head > 64 && q.head > len(q.items)/2 { // mostly behind us
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, it)
}

func (q *fifo) pop() Item {
	if q.len() == 0 {
		return nil
	}
	it := q.items[q.head]
	q.items[q.head] = nil
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
		if cap(q.items) > 4096 { // a rush is over
			q.items = nil
		}
	}
	return it
}

// Raw is an item of one frame without payload.
type Raw []byte

// Frame implements Item.
func (f Raw) Frame(b []byte) (head, payload []byte, more bool) { return append(b, f...), nil, false }

// Written implements Item.
func (f Raw) Written() {}
