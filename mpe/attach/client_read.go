package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"

	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// readFrames handles frames from the daemon. It returns wire.ErrNoData when no complete frame is available, and another
// error when the connection is closed. Only the polling goroutine may call it.
func (c *Client) readFrames() (frames int, err error) {
	for {
		if err = c.reader.FrameReady(); err == nil {
			err = c.readFrame()
		}
		if err != nil {
			return frames, err
		}
		frames++
	}
}

// readFrame reads and handles one frame.
func (c *Client) readFrame() error {
	if err := c.reader.Next(); err != nil {
		return err
	}
	switch c.reader.Type {
	case wire.FrameDone:
		return c.readDone()
	case wire.FrameData:
		id, err := c.reader.ReadID()
		if err == nil {
			_, err = c.storePayload(id)
		}
		return err
	case wire.FrameReduce:
		return c.readReduce()
	case wire.FrameRefused:
		return c.reader.ReadRefused()
	case wire.FrameBye:
		return wire.ErrDetached
	}
	return wire.Violationf("%v is not a frame that a daemon sends to an attached program", c.reader.Type)
}

// readDone handles DONE, which ends an operation.
func (c *Client) readDone() error {
	done := &c.done
	if err := c.reader.ReadDone(done); err != nil {
		return err
	}
	op, err := c.storePayload(done.ID)
	if err != nil {
		return err
	}
	switch most := uint64(len(op.req.Buf)); {
	case op.req.Kind == wire.OpCall && done.Err == nil && done.Stored != op.call.Result:
		return wire.Violationf("DONE of operation %#x reports a result of %d bytes instead of %d", done.ID,
			done.Stored, op.call.Result)
	case op.req.InArena && (done.Stored > most || done.Stored > 0 && op.req.Kind != mpe.OpRecv):
		return wire.Violationf("DONE of operation %#x reports %d bytes stored in a buffer of %d", done.ID, done.Stored,
			most)
	case op.req.InArena:
		copy(op.req.Buf[:done.Stored], c.arena.mem[op.req.ArenaOffset:])
	case op.req.Claim:
		if done.Stored > math.MaxInt32 {
			return wire.Violationf("DONE of operation %#x, a matched probe, reports message %d", done.ID, done.Stored)
		}
		done.Status.Claim = int(done.Stored)
	case uint64(op.bytesReceived) != done.Stored:
		return wire.Violationf("DONE of operation %#x reports %d bytes stored, but %d were received", done.ID,
			done.Stored, op.bytesReceived)
	}
	c.remove(op)
	op.setOutcome(done)
	done.Err = nil
	return nil
}

// storePayload reads the rest of a frame into the buffer of a receive or the result of a call.
func (c *Client) storePayload(id uint64) (*Op, error) {
	op, n := c.find(id), c.reader.Remaining
	switch {
	case op == nil:
		return nil, wire.Violationf("%v for operation %#x, which is not in progress", c.reader.Type, id)
	case n > op.spaceLeft():
		return nil, wire.Violationf("%v with %d bytes of payload after %d for operation %#x, which exceeds its buffer",
			c.reader.Type, n, op.bytesReceived, id)
	}
	op.bytesReceived += n
	if n == 0 || op.req.Kind != wire.OpCall {
		return op, c.reader.Read(op.req.Buf[op.bytesReceived-n : op.bytesReceived])
	}
	err := op.awaitWritten()
	for err == nil && c.reader.Remaining > 0 {
		err = c.reader.Read(op.call.recvPieces.next(c.reader.Remaining))
	}
	return op, err
}

// awaitWritten waits until the outbox no longer reads a call's payload, because the result may be written to the same
// memory. It does not wait long: the daemon has already received the whole payload, so the outbox is about to call
// Written.
func (op *Op) awaitWritten() error {
	op.mu.Lock()
	writing, left := op.isWriting, op.call.sendPieces.bytesLeft
	if writing && op.writeDone == nil {
		op.writeDone = make(chan struct{}, 1)
	}
	unread := op.writeDone
	op.mu.Unlock()
	if writing && left == 0 {
		within, stop := context.WithTimeout(context.Background(), op.client.abortTimeout)
		defer stop()
		writing = op.client.stream.Await(within, unread) != nil
	}
	if writing || left > 0 {
		return wire.Violationf("%v with the result of operation %#x, a call whose payload has not been sent",
			op.client.reader.Type, op.req.ID)
	}
	return nil
}

// spaceLeft returns the number of bytes that the daemon may still send for an operation.
func (op *Op) spaceLeft() int {
	switch {
	case op.req.Kind == wire.OpCall:
		return op.call.recvPieces.bytesLeft
	case op.req.Kind != mpe.OpRecv || op.req.InArena:
		return 0
	}
	return len(op.req.Buf) - op.bytesReceived
}

// endAll ends the client and all its operations. The argument err is the reason why the connection ended.
func (c *Client) endAll(err error) {
	c.outbox.Close()
	c.mu.Lock()
	why := c.connectionError(err)
	c.err, c.closing = why, true
	ops := c.ops.removeAll()
	wire.Notify(c.slotsFreed)
	c.mu.Unlock()
	for _, op := range ops {
		op.setOutcome(&wire.Done{Err: why})
	}
	c.group.Remove()
	c.stop()
	c.arena.close()
	c.awaited.close()
	c.stream.Close()
	close(c.closed)
}

// connectionError returns the error for operations after the connection has failed with err. The caller must hold the
// lock of the client.
func (c *Client) connectionError(err error) error {
	var refusal *wire.RefusedError
	switch {
	case c.closeReason != nil:
		err = c.closeReason
	case errors.Is(err, wire.ErrDetached):
		return fmt.Errorf("rank %d: %w: the program detached from it", c.rank, mpe.ErrClosed)
	case errors.As(err, &refusal):
		return fmt.Errorf("rank %d: %w: disconnected: %w", c.rank, mpe.ErrClosed, err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("it went away (%w)", err)
	}
	return fmt.Errorf("rank %d: %w: lost the connection to the zrlmpid at %s: %w", c.rank, mpe.ErrClosed, c.socket, err)
}

// awaitForever waits for a value on the channel n without a time limit.
func (c *Client) awaitForever(n <-chan struct{}) {
	_ = c.Await(context.Background(), n) // this context is never cancelled
}

// Await waits for a value on the channel n. If ctx ends first, it returns the cause of ctx.
func (c *Client) Await(ctx context.Context, n <-chan struct{}) error {
	if c.group.Len() == 0 {
		return c.stream.Await(ctx, n)
	}
	return c.group.Await(ctx, n)
}

// awaitOp waits until op ends. While it sleeps, it lists op among the operations that the daemon can see. If ctx ends
// first, it returns the cause of ctx.
func (c *Client) awaitOp(ctx context.Context, op *Op) error {
	if c.group.Len() == 0 {
		return c.stream.Await(ctx, op.done)
	}
	polled := c.group.Poll(ctx, nil, op.done)
	select {
	case <-op.done:
		return nil
	default:
	}
	word := c.awaited.add(op.req.ID)
	defer c.awaited.remove(word)
	return c.group.AwaitSleeping(ctx, op.done, polled)
}

// frameSource makes the client a progress.Source.
type frameSource Client

// Poll handles all frames that have been received. If the connection has ended, it ends the client.
func (f *frameSource) Poll() (int, error) {
	client := (*Client)(f)
	client.outbox.FlushStalled()
	n, err := client.readFrames()
	if errors.Is(err, wire.ErrNoData) {
		return n, nil
	}
	go client.endAll(err)
	return n, progress.ErrSourceEnded
}

// Sleep implements progress.Source.
func (f *frameSource) Sleep() bool {
	return f.source.Sleep() && (!f.outbox.Stalled.Load() || f.outbox.Rings.RequestSpace())
}
