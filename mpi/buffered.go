package mpi

import (
	"bytes"
	"context"
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
	// failed are the errors of buffered sends, which have no other place to
	// be told.
	failed requestsError
}

// maxFailed is how many errors are kept for DetachBuffer. The rest is counted.
const maxFailed = 16

// bufferedSend is a message that is on its way.
type bufferedSend struct {
	call call
	op   mpe.Op
	size int
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
// size of the buffer, which is detached then. Its error tells of buffered sends
// that have failed. When ctx ends first, the buffer stays attached, and the
// messages stay on their way.
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
	if err := b.drain(ctx, k); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	size, failed := b.size, b.failed
	b.attached, b.size, b.failed = false, 0, requestsError{}
	return size, failed.result(k.op)
}

func (c *Comm) bsend(k call, w words) error {
	if k.peer == ProcNull {
		return k.check()
	}
	o, err := k.outgoing(mpe.OpSend, w)
	if err != nil {
		return err
	}
	return c.p.buffer.send(k, o)
}

// send copies a message and posts the copy.
func (b *sendBuffer) send(k call, o mpe.Operation) error {
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
	size := len(o.Buf)
	o.Buf = bytes.Clone(o.Buf)
	op, err := k.comm.p.dev.Start(o)
	if err != nil {
		return k.fail(err)
	}
	b.used += size
	b.sends = append(b.sends, bufferedSend{k, op, size})
	return nil
}

// sweep frees the room of messages that have been sent.
func (b *sendBuffer) sweep() {
	kept := b.sends[:0]
	for _, s := range b.sends {
		st, done, err := s.op.Test()
		if !done {
			kept = append(kept, s)
			continue
		}
		b.ended(s, st, err)
	}
	clear(b.sends[len(kept):])
	b.sends = kept
}

func (b *sendBuffer) ended(s bufferedSend, st mpe.Status, err error) {
	b.used -= s.size
	_, err = s.call.end(st, err)
	b.failed.add(b.failed.total, err)
	b.failed.total++
	if len(b.failed.errs) > maxFailed {
		b.failed.errs = b.failed.errs[:maxFailed]
	}
}

// drain waits until everything has been sent, without taking anything back.
func (b *sendBuffer) drain(ctx context.Context, k call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	notify := make(chan struct{}, 1)
	for b.sweep(); len(b.sends) > 0; b.sweep() {
		s := b.sends[0]
		s.op.Notify(notify)
		b.mu.Unlock()
		select {
		case <-notify:
			b.mu.Lock()
		case <-ctx.Done():
			b.mu.Lock()
			s.op.Notify(nil)
			return k.failf(ErrPending, "%d buffered messages have not been sent, the oldest one of %d bytes to rank %d of %v with tag %d: %w",
				len(b.sends), s.size, s.call.peer, s.call.comm, s.call.tag, context.Cause(ctx))
		}
	}
	return nil
}

// flush waits for what is on its way, and takes back what is not sent when ctx
// ends.
func (b *sendBuffer) flush(ctx context.Context, k call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sends {
		st, err := s.op.Wait(ctx)
		b.ended(s, st, err)
	}
	b.sends, b.attached = nil, false
	return b.failed.result(k.op)
}
