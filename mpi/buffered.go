package mpi

import (
	"context"
	"math/bits"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// sendBuffer bounds the memory of a rank's buffered sends.
type sendBuffer struct {
	mu       sync.Mutex
	attached bool
	size     int
	used     int
	sends    []bufferedSend
	// spare are copies of messages that have been sent, to be used again, by
	// the length in bits of their sizes.
	spare [bits.UintSize + 1][][]byte
	kept  int // bytes in spare
	// failed are the errors of buffered sends. DetachBuffer alone can report
	// them.
	failed requestsError
}

// maxFailed is how many errors are kept for DetachBuffer. The rest is counted.
const maxFailed = 16

// bufferedSend is a message that is being sent.
type bufferedSend struct {
	call call // of a copy of the message
	op   mpe.Op
}

// AttachBuffer lets the rank's buffered sends, on all communicators, take up to
// so many bytes of copies at a time. There is no overhead per message: it is
// the sum of the messages' sizes.
func (c *Comm) AttachBuffer(size int) error {
	k := c.callf("AttachBuffer")
	if err := k.check(); err != nil {
		return err
	}
	if size < 0 {
		return k.failf(ErrArg, "a buffer cannot have %d bytes", size)
	}
	b := &c.p.buffer
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attached {
		return k.failf(ErrBuffer, "a buffer of %d bytes is attached already: detach it first", b.size)
	}
	b.attached, b.size = true, size
	return nil
}

// DetachBuffer waits until all buffered messages have been sent, and gives the
// size of the buffer, which is detached then. Its error contains those of the buffered
// sends that have failed. When ctx ends first, the buffer stays attached, and the
// messages are still sent.
func (c *Comm) DetachBuffer(ctx context.Context) (int, error) {
	k := c.callf("DetachBuffer")
	if err := k.check(); err != nil {
		return 0, err
	}
	b := &c.p.buffer
	b.mu.Lock()
	attached := b.attached
	b.mu.Unlock()
	if !attached {
		return 0, k.failf(ErrBuffer, "no buffer is attached")
	}
	if err := b.drain(ctx, &k, c.p); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	size, failed := b.size, b.failed
	b.attached, b.size, b.failed = false, 0, requestsError{}
	clear(b.spare[:])
	b.kept = 0
	return size, failed.result(k.op)
}

func (k *call) bsend() error {
	if k.peer == ProcNull {
		return k.check()
	}
	var o mpe.Operation
	if err := k.outgoing(&o); err != nil {
		return err
	}
	return k.comm.p.buffer.send(k, &o)
}

// send copies a message and posts the copy, which o describes from then on.
func (b *sendBuffer) send(k *call, o *mpe.Operation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.attached {
		return k.failf(ErrBuffer, "no buffer is attached: call AttachBuffer first")
	}
	b.sweep()
	if len(o.Buf) > b.size-b.used {
		return k.failf(ErrBuffer, "the message has %d bytes, and %d of the buffer's %d are in use by messages on their way: attach a larger one, or wait for receives",
			len(o.Buf), b.used, b.size)
	}
	data := b.memory(len(o.Buf))
	copy(data, o.Buf)
	o.Buf = data
	op, err := k.comm.p.start(o)
	if err != nil {
		b.keep(data)
		return k.fail(err)
	}
	b.used += len(data)
	b.sends = append(b.sends, bufferedSend{*k, op})
	sent := &b.sends[len(b.sends)-1].call
	sent.bytes, sent.scattered = data, nil
	return nil
}

// memory returns n bytes, those of an earlier message if one had about as many.
func (b *sendBuffer) memory(n int) []byte {
	like := &b.spare[bits.Len(uint(n))]
	last := len(*like) - 1
	if last < 0 {
		return make([]byte, n)
	}
	m := (*like)[last]
	(*like)[last] = nil
	*like = (*like)[:last]
	b.kept -= cap(m)
	if cap(m) < n {
		return make([]byte, n)
	}
	return m[:n]
}

// keep keeps the memory of a message for later ones, within the size of the
// buffer.
func (b *sendBuffer) keep(m []byte) {
	if cap(m) == 0 || b.kept+b.used+cap(m) > b.size {
		return
	}
	b.kept += cap(m)
	like := &b.spare[bits.Len(uint(cap(m)))]
	*like = append(*like, m)
}

// sweep frees the room of messages that have been sent.
func (b *sendBuffer) sweep() {
	kept := b.sends[:0]
	for i := range b.sends {
		s := &b.sends[i]
		st, done, err := s.op.Test()
		if !done {
			kept = append(kept, *s)
			continue
		}
		b.ended(s, &st, err)
	}
	clear(b.sends[len(kept):])
	b.sends = kept
}

func (b *sendBuffer) ended(s *bufferedSend, st *mpe.Status, err error) {
	s.op.Free()
	b.used -= len(s.call.bytes)
	b.keep(s.call.bytes)
	var status Status
	err = s.call.end(&status, st, err)
	b.failed.add(b.failed.total, err)
	b.failed.total++
	if len(b.failed.errs) > maxFailed {
		b.failed.errs = b.failed.errs[:maxFailed]
	}
}

// drain waits until everything has been sent, and cancels nothing.
func (b *sendBuffer) drain(ctx context.Context, k *call, p *process) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	wake := wakers.Get().(chan struct{})
	defer wakers.Put(wake)
	for b.sweep(); len(b.sends) > 0; b.sweep() {
		b.sends[0].op.Notify(wake)
		b.mu.Unlock()
		err := p.dev.Await(ctx, wake)
		b.mu.Lock()
		if err == nil {
			continue
		}
		if b.sweep(); len(b.sends) == 0 {
			return nil
		}
		s := &b.sends[0]
		s.op.Notify(nil)
		return k.failf(ErrPending, "%d buffered messages have not been sent, the oldest one of %d bytes to rank %d of %v with tag %d: %w",
			len(b.sends), len(s.call.bytes), s.call.peer, s.call.comm, s.call.tag, err)
	}
	return nil
}

// flush waits for what is being sent, and cancels what is not sent when ctx
// ends.
func (b *sendBuffer) flush(ctx context.Context, k call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.sends {
		st, err := b.sends[i].op.Wait(ctx)
		b.ended(&b.sends[i], &st, err)
	}
	b.sends, b.attached = nil, false
	return b.failed.result(k.op)
}
