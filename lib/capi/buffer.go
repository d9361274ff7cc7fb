package capi

import (
	"context"
	"slices"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// sendBuffer is the buffer that a program has attached for buffered sends on the rank, a communicator or a session (MPI
// 4.1, section 3.6). The library copies messages to other memory, and keeps the program's memory only to return it.
type sendBuffer struct {
	*mpi.SendBuffer
	memory unsafe.Pointer
}

// In calls for a communicator or a session, the first argument is that object. The other arguments are the same as in
// the corresponding call for the rank.
var _ = add(map[string]implementation{
	"Buffer_attach":         func(a *args) { a.attachBuffer(&a.lib.buffer, 0) },
	"Buffer_detach":         func(a *args) { a.detachBuffer(&a.lib.buffer, 0) },
	"Buffer_flush":          func(a *args) { a.flushBuffer(&a.lib.buffer, 0) },
	"Buffer_iflush":         func(a *args) { a.iflushBuffer(&a.lib.buffer, 0) },
	"Comm_attach_buffer":    withBuffer((*args).commBuffer, (*args).attachBuffer),
	"Comm_detach_buffer":    withBuffer((*args).commBuffer, (*args).detachBuffer),
	"Comm_flush_buffer":     withBuffer((*args).commBuffer, (*args).flushBuffer),
	"Comm_iflush_buffer":    withBuffer((*args).commBuffer, (*args).iflushBuffer),
	"Session_attach_buffer": withBuffer((*args).sessionBuffer, (*args).attachBuffer),
	"Session_detach_buffer": withBuffer((*args).sessionBuffer, (*args).detachBuffer),
	"Session_flush_buffer":  withBuffer((*args).sessionBuffer, (*args).flushBuffer),
	"Session_iflush_buffer": withBuffer((*args).sessionBuffer, (*args).iflushBuffer),
})

// withBuffer returns a call on the buffer of the object in argument 0.
func withBuffer(of func(*args) *sendBuffer, do func(a *args, b *sendBuffer, next int)) implementation {
	return func(a *args) { do(a, of(a), 1) }
}

// commBuffer returns the buffer of the communicator in argument 0. On first use, it takes precedence over the buffer of
// the communicator's session.
func (a *args) commBuffer() *sendBuffer {
	c := a.communicator(0)
	a.lib.mu.Lock()
	defer a.lib.mu.Unlock()
	if c.buffer.SendBuffer == nil {
		c.buffer.SendBuffer = c.NewSendBuffer()
		list := []*mpi.SendBuffer{c.buffer.SendBuffer, c.sessionBuf}
		c.SetSendBuffers(slices.DeleteFunc(list, func(b *mpi.SendBuffer) bool { return b == nil })...)
	}
	return &c.buffer
}

func (a *args) sessionBuffer() *sendBuffer { return &a.session(a.handle(0, kindSession)).buffer }

// close detaches the buffer, if one is attached, when the rank, communicator or session that uses it ends.
func (b *sendBuffer) close() error {
	b.memory = nil
	if _, err := b.Detach(context.Background()); mpi.ClassOf(err) != mpi.ErrBuffer {
		return err
	}
	return nil
}

// attachBuffer decodes buffer, size.
func (a *args) attachBuffer(buffer *sendBuffer, next int) {
	n, memory := a.count(next+1), a.pointer(next)
	if automatic := a.lib.abi.constants["BUFFER_AUTOMATIC"]; automatic != 0 && int64(uintptr(memory)) == automatic {
		n = mpi.AutomaticBuffer
	}
	if n < 0 {
		panic(failf(mpi.ErrArg, "a buffer of %d bytes", n))
	}
	check(buffer.Attach(int(n)))
	buffer.memory = memory
}

// detachBuffer decodes buffer_addr, size.
func (a *args) detachBuffer(b *sendBuffer, next int) {
	a.checkedPointer(next + 1)
	to := a.checkedPointer(next)
	n := must(b.Detach(context.Background()))
	*(*unsafe.Pointer)(to) = b.memory
	b.memory = nil
	if n == mpi.AutomaticBuffer {
		n = 0
	}
	a.setCount(next+1, int64(n))
}

// flushBuffer implements the flush calls, which take no further arguments.
func (a *args) flushBuffer(b *sendBuffer, _ int) { check(b.Flush(context.Background())) }

// iflushBuffer decodes request.
func (a *args) iflushBuffer(b *sendBuffer, next int) {
	r, handle := newObject(a, a.lib.requests, next)
	g := &generalized{lib: a.lib, done: make(chan struct{})}
	r.ownDetails, r.comm = &requestDetails{generalized: g}, a.comm
	go func() {
		g.err = b.Flush(context.Background())
		_ = g.complete(handle) // has no functions to call
	}()
}
