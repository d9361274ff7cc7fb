package mpi

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// SendBuffer limits the memory of buffered sends on a rank or on one or more communicators (MPI 4.1, section 3.6).
type SendBuffer struct {
	comm *Comm // for errors of Attach, Detach and Flush

	mu       sync.Mutex
	attached bool
	size     int
	// bytesUsed is the number of bytes of unfinished sends, at most size.
	bytesUsed   int
	sends       []bufferedSend
	sendsPosted uint64 // number of sends so far
	// spare holds the memory of sent messages for reuse. It is indexed by the number of bits in the memory's size.
	spare      [bits.UintSize + 1][][]byte
	spareBytes int // number of bytes in spare
	// failed holds the errors of buffered sends until Detach or Flush reports them.
	failed requestsError
}

// AutomaticBuffer is a value for the size of a buffer that means unlimited (MPI_BUFFER_AUTOMATIC).
const AutomaticBuffer = math.MaxInt

// maxBufferErrors is the maximum number of errors of which a buffer keeps a record. It only counts any further errors.
const maxBufferErrors = 16

// bufferedSend is a message in progress.
type bufferedSend struct {
	call   call // describes the copy of the message
	op     mpe.Op
	number uint64
}

// NewSendBuffer returns a buffer for SetSendBuffers. Buffered sends cannot use it until Attach is called.
func (c *Comm) NewSendBuffer() *SendBuffer {
	return &SendBuffer{comm: c}
}

// SendBuffer returns the buffer of the calling rank, to which AttachBuffer applies.
func (c *Comm) SendBuffer() *SendBuffer { return c.proc.sendBuffer }

// SetSendBuffers makes buffered sends on the communicator use the first of these buffers that is attached, or
// the rank's buffer if none of them is.
func (c *Comm) SetSendBuffers(buffers ...*SendBuffer) { c.buffers.Store(&buffers) }

// sendBuffer returns the buffer that the next buffered send uses.
func (c *Comm) sendBuffer() *SendBuffer {
	if list := c.buffers.Load(); list != nil {
		for _, b := range *list {
			if b.isAttached() {
				return b
			}
		}
	}
	return c.proc.sendBuffer
}

func (b *SendBuffer) isAttached() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.attached
}

// sendBuffers lists the attached buffers of a rank, so that Finalize can wait for their messages.
type sendBuffers struct {
	mu   sync.Mutex
	list []*SendBuffer
}

func (s *sendBuffers) add(b *SendBuffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, b)
}

func (s *sendBuffers) remove(b *SendBuffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other *SendBuffer) bool { return other == b })
}

// AttachBuffer allows the rank's buffered sends to hold copies of up to size bytes at a time. It applies to all
// communicators without an attached buffer. Only the sizes of messages count; there is no overhead per message.
func (c *Comm) AttachBuffer(size int) error {
	k := c.newCall("AttachBuffer")
	if err := k.check(); err != nil {
		return err
	}
	return c.proc.sendBuffer.attach(&k, size)
}

// Attach is like AttachBuffer but applies to the communicators that use this buffer.
func (b *SendBuffer) Attach(size int) error {
	k := b.comm.newCall("Attach")
	return b.attach(&k, size)
}

func (b *SendBuffer) attach(k *call, size int) error {
	if size < 0 {
		return k.failf(ErrArg, "a buffer cannot have %d bytes", size)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attached {
		return k.failf(ErrBuffer, "a buffer of %d bytes is attached already: detach it first", b.size)
	}
	b.attached, b.size = true, size
	b.comm.proc.attachedBuffers.add(b)
	return nil
}

// DetachBuffer waits until all messages in the rank's buffer have been sent, detaches the buffer and returns its size.
// The error contains the errors of buffered sends that failed. If ctx is done first, the buffer remains attached and
// its messages are still sent.
func (c *Comm) DetachBuffer(ctx context.Context) (int, error) {
	k := c.newCall("DetachBuffer")
	if err := k.check(); err != nil {
		return 0, err
	}
	return c.proc.sendBuffer.detach(ctx, &k, c.proc)
}

// Detach is like DetachBuffer, for this buffer.
func (b *SendBuffer) Detach(ctx context.Context) (int, error) {
	k := b.comm.newCall("Detach")
	return b.detach(ctx, &k, b.comm.proc)
}

// detach waits for the buffer's messages, and returns its size. The error reports failed sends that Flush has not
// reported.
func (b *SendBuffer) detach(ctx context.Context, k *call, p *process) (int, error) {
	if !b.isAttached() {
		return 0, k.failf(ErrBuffer, "no buffer is attached")
	}
	if err := b.drain(ctx, k, p); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	size, failed := b.size, b.failed
	b.attached, b.size, b.failed = false, 0, requestsError{}
	p.attachedBuffers.remove(b)
	clear(b.spare[:])
	b.spareBytes = 0
	return size, failed.result(k.op)
}

// Flush waits until all messages currently in the buffer have been sent. The error contains the errors of sends that
// failed since the last Flush.
func (b *SendBuffer) Flush(ctx context.Context) error {
	k := b.comm.newCall("Flush")
	if err := b.drain(ctx, &k, b.comm.proc); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	failed := b.failed
	b.failed = requestsError{}
	return failed.result(k.op)
}

func (k *call) bsend() error {
	if k.peer == ProcNull {
		return k.check()
	}
	var o mpe.Operation
	if err := k.buildSend(&o); err != nil {
		return err
	}
	return k.comm.sendBuffer().send(k, &o)
}

// send copies the message that o describes, and posts a send of the copy. On return, o describes the copy.
func (b *SendBuffer) send(k *call, o *mpe.Operation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.attached {
		return k.failf(ErrBuffer, "no buffer is attached: call AttachBuffer first")
	}
	b.freeSent()
	if len(o.Buf) > b.size-b.bytesUsed {
		return k.failf(ErrBuffer, "the message has %d bytes, and %d of the buffer's %d are in use by messages on "+
			"their way: attach a larger one, or wait for receives",
			len(o.Buf), b.bytesUsed, b.size)
	}
	data := b.allocate(len(o.Buf))
	copy(data, o.Buf)
	o.Buf = data
	op, err := k.comm.proc.dev.Start(*o)
	if err != nil {
		b.storeSpare(data)
		return k.fail(err)
	}
	b.bytesUsed += len(data)
	b.sendsPosted++
	b.sends = append(b.sends, bufferedSend{*k, op, b.sendsPosted})
	sent := &b.sends[len(b.sends)-1].call
	sent.bytes, sent.packedBuf = data, nil
	return nil
}

// allocate returns a slice of n bytes. It reuses the memory of an earlier message of similar size.
func (b *SendBuffer) allocate(n int) []byte {
	like := &b.spare[bits.Len(uint(n))]
	last := len(*like) - 1
	if last < 0 {
		return make([]byte, n)
	}
	m := (*like)[last]
	(*like)[last] = nil
	*like = (*like)[:last]
	b.spareBytes -= cap(m)
	if cap(m) < n {
		return make([]byte, n)
	}
	return m[:n]
}

// storeSpare keeps a message's memory for reuse, unless the buffer's total memory would then exceed its size.
func (b *SendBuffer) storeSpare(m []byte) {
	if cap(m) == 0 || b.spareBytes+b.bytesUsed+cap(m) > b.size {
		return
	}
	b.spareBytes += cap(m)
	like := &b.spare[bits.Len(uint(cap(m)))]
	*like = append(*like, m)
}

// freeSent frees the space of sent messages.
func (b *SendBuffer) freeSent() {
	kept := b.sends[:0]
	for i := range b.sends {
		send := &b.sends[i]
		st, done, err := send.op.Test()
		if !done {
			kept = append(kept, *send)
			continue
		}
		b.finishSend(send, &st, err)
	}
	clear(b.sends[len(kept):])
	b.sends = kept
}

// finishSend frees a completed send, and keeps its error for Detach or Flush. The caller holds mu.
func (b *SendBuffer) finishSend(s *bufferedSend, st *mpe.Status, err error) {
	b.bytesUsed -= len(s.call.bytes)
	b.storeSpare(s.call.bytes)
	var status Status
	err = s.call.finish(&status, st, err)
	s.op.Free()
	b.failed.add(b.failed.total, err)
	b.failed.total++
	if len(b.failed.errs) > maxBufferErrors {
		b.failed.errs = b.failed.errs[:maxBufferErrors]
	}
}

// drain waits until all messages posted before the call have been sent. It never cancels them.
func (b *SendBuffer) drain(ctx context.Context, k *call, p *process) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	wake := wakeChans.Get().(chan struct{})
	defer wakeChans.Put(wake)
	last := b.sendsPosted
	for b.freeSent(); len(b.sends) > 0 && b.sends[0].number <= last; b.freeSent() {
		b.sends[0].op.Notify(wake)
		b.mu.Unlock()
		err := p.dev.Await(ctx, wake)
		b.mu.Lock()
		if err == nil {
			continue
		}
		if b.freeSent(); len(b.sends) == 0 {
			return nil
		}
		s := &b.sends[0]
		s.op.Notify(nil)
		return k.failf(ErrPending,
			"%d buffered messages have not been sent, the oldest one of %d bytes to rank %d of %v with tag %d: %w",
			len(b.sends), len(s.call.bytes), s.call.peer, s.call.comm, s.call.tag, err)
	}
	return nil
}

// awaitSends waits for messages in progress and cancels them when ctx is done.
func (b *SendBuffer) awaitSends(ctx context.Context, k call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.sends {
		st, err := b.sends[i].op.Await(ctx)
		b.finishSend(&b.sends[i], st, err)
	}
	b.sends, b.attached = nil, false
	return b.failed.result(k.op)
}
