package wire

import (
	"context"
	"sync"
	"sync/atomic"
)

// Item is something that an Outbox writes: one frame, or several frames if the payload is long.
type Item interface {
	// Frame appends the item's next frame to b and returns the result as head. If the frame ends with payload, that is
	// returned separately. The result more reports whether more frames follow.
	Frame(b []byte) (head, payload []byte, more bool)
	// Written is called when the payload returned by Frame is no longer in use.
	Written()
}

const (
	// CopyLen is the maximum length in bytes of a payload that is copied so that it can be written together
	// with other frames. A system call costs as much as copying this many bytes.
	CopyLen = 16 << 10
	// maxOvertaking is the number of bytes of new items that may be written before the next frame of an item in
	// progress.
	maxOvertaking = 4 * ChunkLen
	// BatchLen is the number of bytes written with a single system call.
	BatchLen = 64 << 10
)

// Outbox writes items to a connection. It writes new items first. An item of several frames is queued again after each
// of its frames, so that small operations do not have to wait for a large one. If no other goroutine is writing, the
// goroutine that sends an item writes as much as the connection accepts without blocking, which avoids waking up
// another goroutine. Run writes the rest.
type Outbox struct {
	stream Stream
	// OnFailure is called when the connection fails.
	OnFailure func()

	mu           sync.Mutex
	newItems     fifo // items that have not been begun
	startedItems fifo // items in progress
	newBytes     int  // number of bytes of new items written since the last frame of a started item
	isWriting    bool // a goroutine is writing, or Run has been woken up to write
	closed       bool
	wake         chan struct{}
	// Rings is the connection if that uses rings, and nil otherwise. FlushStalled rather than Run then writes the data
	// that did not fit into the ring. Stalled is set while there is such data.
	Rings   Rings
	Stalled atomic.Bool

	drained chan struct{} // if not nil, closed when the last item has been written

	// The fields below are owned by the writing goroutine. buf holds the bytes to write; it is followed on the
	// connection by payload, the payload of an item that was too long to copy.
	buf         []byte
	payload     []byte
	payloadItem Item
}

// NewOutbox returns an Outbox that writes to a connection.
func NewOutbox(to Stream) *Outbox {
	return &Outbox{
		stream: to, OnFailure: func() {}, wake: make(chan struct{}, 1),
		buf: make([]byte, 0, BatchLen),
	}
}

// wakeRun wakes up Run. It never blocks, because only the goroutine that has set isWriting calls it.
func (o *Outbox) wakeRun() { o.wake <- struct{}{} }

// Send queues an item. If no other goroutine is writing, it also writes the queued items. It never blocks:
// Run writes large payloads and data that the connection does not accept.
func (o *Outbox) Send(it Item) {
	if o.push(it, true) {
		o.writeNow()
	}
}

// Queue queues an item without writing it. The caller must make sure that the item is written, at the latest
// by calling Flush.
func (o *Outbox) Queue(it Item) { o.push(it, false) }

// Flush writes the items queued by Queue, in the same way as Send.
func (o *Outbox) Flush() { o.Send(nil) }

// push queues an item unless it is nil. If push returns true, the caller must write the queued items; this happens only
// if the argument canWrite is set and no other goroutine is writing.
func (o *Outbox) push(it Item, canWrite bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if it != nil && !o.closed {
		o.newItems.push(it)
	}
	if !canWrite || o.isWriting || o.newItems.len() == 0 {
		return false
	}
	o.isWriting = true
	return true
}

// writeNow writes until all items are written or the connection accepts no more. Who writes the rest depends on the
// connection: the poller of the ring, or Run.
func (o *Outbox) writeNow() {
	for !o.write(false) {
		if !o.deferToPoll() {
			o.wakeRun()
			return
		}
		// Either the ring has free space now, or the other side wakes up this side when there is space.
		if o.Rings.RequestSpace() || !o.Stalled.CompareAndSwap(true, false) {
			return
		}
	}
}

// Run writes queued items until ctx is done.
func (o *Outbox) Run(ctx context.Context) {
	for o.stream.Await(ctx, o.wake) == nil {
		o.write(true)
	}
}

// write writes queued items. If the argument wait is set, it writes all of them; otherwise, it writes as much as the
// connection accepts, up to a limit. It reports whether all items have been written.
func (o *Outbox) write(wait bool) bool {
	most := BatchLen
	if o.Rings != nil {
		most = RingLen
	}
	for total := 0; wait || total < most; {
		n := 0
		if o.payloadItem == nil && len(o.buf) < BatchLen-CopyLen {
			n = o.gatherFrame()
		}
		total += n
		switch {
		case o.payloadItem != nil && o.Rings == nil && !wait:
			return false
		case n > 0 && o.payloadItem == nil && len(o.buf) < BatchLen-CopyLen: // gather more frames
		case !o.writeGathered(wait):
			return false
		case n == 0 && o.becomeIdle():
			return true
		}
	}
	return false
}

// writeGathered writes the gathered bytes. If wait is not set, it writes only as many as the connection accepts. It
// reports whether all bytes have been written.
func (o *Outbox) writeGathered(wait bool) bool {
	o.buf = o.buf[:copy(o.buf, o.buf[o.writeBytes(o.buf, wait):])]
	if len(o.buf) > 0 {
		return false
	}
	if cap(o.buf) > 2*BatchLen {
		o.buf = make([]byte, 0, BatchLen)
	}
	if o.payloadItem != nil {
		o.payload = o.payload[o.writeBytes(o.payload, wait):]
		if len(o.payload) > 0 {
			return false
		}
		o.payloadItem.Written()
		o.payload, o.payloadItem = nil, nil
	}
	return true
}

// writeBytes writes b and returns the number of bytes written. If wait is not set, it writes only as much as the
// connection accepts. After an error, b counts as written.
func (o *Outbox) writeBytes(b []byte, wait bool) int {
	if !wait {
		return o.stream.TryWrite(b)
	}
	if len(b) > 0 {
		if _, err := o.stream.Write(b); err != nil {
			o.Close()
			o.OnFailure()
		}
	}
	return len(b)
}

// deferToPoll leaves the remaining data to the next call of FlushStalled. It returns false if nothing would call
// FlushStalled.
func (o *Outbox) deferToPoll() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Rings == nil || o.closed {
		return false
	}
	o.Stalled.Store(true)
	return true
}

// FlushStalled writes the data for which the ring had too little space before. Every poll calls it.
func (o *Outbox) FlushStalled() {
	if o.Stalled.Load() && o.Stalled.CompareAndSwap(true, false) {
		o.writeNow()
	}
}

// gatherFrame appends the next frame to the bytes to write and returns its length, or 0 if nothing is queued. If the
// item has more frames, gatherFrame queues it again.
func (o *Outbox) gatherFrame() int {
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
		o.payload, o.payloadItem = payload, it
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if fresh {
		o.newBytes += n
	}
	if more && !o.closed {
		o.startedItems.push(it)
	}
	return max(n, 1) // the item may have no more frames
}

// next removes and returns the next item.
func (o *Outbox) next() (it Item, fresh bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.startedItems.len() > 0 && (o.newItems.len() == 0 || o.newBytes >= maxOvertaking) {
		o.newBytes = 0
		return o.startedItems.pop(), false
	}
	return o.newItems.pop(), true
}

// becomeIdle clears isWriting if nothing is queued, and reports whether it did so.
func (o *Outbox) becomeIdle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.newItems.len()+o.startedItems.len() > 0 {
		return false
	}
	o.isWriting = false
	if o.drained != nil {
		close(o.drained)
		o.drained = nil
	}
	return true
}

// Close drops all queued items. Items that are sent later are dropped as well.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.newItems, o.startedItems = fifo{}, fifo{}
}

// CloseWith drops all queued items and queues the item last instead. It returns after Run has written that item or
// failed to write it.
func (o *Outbox) CloseWith(last Item) {
	o.mu.Lock()
	drained := make(chan struct{})
	o.closed, o.drained = true, drained
	o.startedItems, o.newItems = fifo{}, fifo{}
	o.newItems.push(last)
	idle := !o.isWriting || o.Stalled.CompareAndSwap(true, false)
	o.isWriting = true
	o.mu.Unlock()
	if idle {
		o.wakeRun()
	}
	_ = o.stream.Await(context.Background(), drained) // this context is never cancelled
}

// fifo is a queue of items.
type fifo struct {
	items []Item
	head  int
}

func (q *fifo) len() int { return len(q.items) - q.head }

// push appends an item. It reuses the memory before head once that is most of the slice.
func (q *fifo) push(it Item) {
	if q.head > 64 && q.head > len(q.items)/2 { // q.items is mostly unused
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
		if cap(q.items) > 4096 { // shrink after a burst
			q.items = nil
		}
	}
	return it
}

// RawFrame is an item that consists of a single frame without payload.
type RawFrame []byte

// Frame implements Item.
func (f RawFrame) Frame(b []byte) (head, payload []byte, more bool) {
	return append(b, f...), nil, false
}

// Written implements Item.
func (f RawFrame) Written() {}
