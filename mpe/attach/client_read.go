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

// pump handles frames from the daemon. It returns ErrNothing when no complete frame is available, and another
// error when the connection ends. Only the polling goroutine may call it.
func (c *Client) pump() (frames int, err error) {
	for {
		if err = c.in.Whole(); err == nil {
			err = c.frame()
		}
		if err != nil {
			return frames, err
		}
		frames++
	}
}

// frame reads and handles one frame.
func (c *Client) frame() error {
	if err := c.in.Next(); err != nil {
		return err
	}
	switch c.in.Type {
	case wire.FrameDone:
		return c.readDone()
	case wire.FrameData:
		id, err := c.in.ReadID()
		if err == nil {
			_, err = c.store(id)
		}
		return err
	case wire.FrameReduce:
		return c.readReduce()
	case wire.FrameRefused:
		return c.in.ReadRefused()
	case wire.FrameBye:
		return wire.ErrBye
	}
	return wire.Violationf("%v is not a frame that a daemon sends to an attached program", c.in.Type)
}

// readDone handles DONE, which reports that an operation has ended.
func (c *Client) readDone() error {
	d := &c.done
	if err := c.in.ReadDone(d); err != nil {
		return err
	}
	op, err := c.store(d.ID)
	if err != nil {
		return err
	}
	switch most := uint64(len(op.req.Buf)); {
	case op.req.Kind == wire.OpCall && d.Err == nil && d.Stored != op.call.Result:
		return wire.Violationf("DONE of operation %#x, a call whose result has %d bytes, says that it has %d", d.ID,
			op.call.Result, d.Stored)
	case op.req.Placed && (d.Stored > most || d.Stored > 0 && op.req.Kind != mpe.OpRecv):
		return wire.Violationf("DONE of operation %#x says that %d bytes were stored in a buffer of %d", d.ID, d.Stored,
			most)
	case op.req.Placed:
		copy(op.req.Buf[:d.Stored], c.arena.mem[op.req.Place:])
	case op.req.Claim:
		if d.Stored > math.MaxInt32 {
			return wire.Violationf("DONE of operation %#x, a matched probe, says that it is message %d", d.ID, d.Stored)
		}
		d.Status.Claim = int(d.Stored)
	case uint64(op.got) != d.Stored:
		return wire.Violationf("DONE of operation %#x says that %d bytes were stored, but %d were received", d.ID,
			d.Stored, op.got)
	}
	c.remove(op)
	op.reply(d)
	d.Err = nil
	return nil
}

// store reads the rest of a frame into the buffer of a receive or the result of a call.
func (c *Client) store(id uint64) (*Op, error) {
	op, n := c.find(id), c.in.Left
	switch {
	case op == nil:
		return nil, wire.Violationf("%v for operation %#x, which is not in progress", c.in.Type, id)
	case n > op.room():
		return nil, wire.Violationf("%v with %d bytes of payload after %d for operation %#x, which exceeds its buffer",
			c.in.Type, n, op.got, id)
	}
	op.got += n
	if n == 0 || op.req.Kind != wire.OpCall {
		return op, c.in.Read(op.req.Buf[op.got-n : op.got])
	}
	err := op.given()
	for err == nil && c.in.Left > 0 {
		err = c.in.Read(op.call.take.next(c.in.Left))
	}
	return op, err
}

// given waits until the outbox no longer reads a call's payload, because the result may be written to the same
// memory. The daemon has already received the whole payload, so the outbox is about to call Written.
func (op *Op) given() error {
	op.mu.Lock()
	writing, left := op.writing, op.call.give.left
	if writing && op.unread == nil {
		op.unread = make(chan struct{}, 1)
	}
	unread := op.unread
	op.mu.Unlock()
	if writing && left == 0 {
		within, stop := context.WithTimeout(context.Background(), op.c.spin)
		defer stop()
		writing = op.c.stream.Await(within, unread) != nil
	}
	if writing || left > 0 {
		return wire.Violationf("%v with the result of operation %#x, a call whose payload has not been sent",
			op.c.in.Type, op.req.ID)
	}
	return nil
}

// room returns the number of bytes that the daemon may still send for an operation.
func (op *Op) room() int {
	switch {
	case op.req.Kind == wire.OpCall:
		return op.call.take.left
	case op.req.Kind != mpe.OpRecv || op.req.Placed:
		return 0
	}
	return len(op.req.Buf) - op.got
}

// end ends the client and all its operations. err is the reason why the connection ended.
func (c *Client) end(err error) {
	c.out.Close()
	c.mu.Lock()
	why := c.broken(err)
	c.err, c.leaving = why, true
	ops := c.ops.drop()
	wire.Notify(c.fewer)
	c.mu.Unlock()
	for _, op := range ops {
		op.reply(&wire.Done{Err: why})
	}
	c.group.Remove()
	c.stop()
	c.arena.close()
	c.stream.Close()
	close(c.ended)
}

// broken returns the error for operations after the connection has failed with err. The client must be locked.
func (c *Client) broken(err error) error {
	var refusal *wire.RefusedError
	switch {
	case c.hung != nil:
		err = c.hung
	case errors.Is(err, wire.ErrBye):
		return fmt.Errorf("rank %d: %w: the program detached from it", c.rank, mpe.ErrClosed)
	case errors.As(err, &refusal):
		return fmt.Errorf("rank %d: %w: disconnected: %w", c.rank, mpe.ErrClosed, err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("it went away (%w)", err)
	}
	return fmt.Errorf("rank %d: %w: lost the connection to the zrlmpid at %s: %w", c.rank, mpe.ErrClosed, c.socket, err)
}

// wait waits for a value on n without a time limit.
func (c *Client) wait(n <-chan struct{}) {
	_ = c.Await(context.Background(), n) // this context is never cancelled
}

// Await waits for a value on n. If ctx ends first, it returns the cause of ctx.
func (c *Client) Await(ctx context.Context, n <-chan struct{}) error {
	if c.group.Len() == 0 {
		return c.stream.Await(ctx, n)
	}
	return c.group.Await(ctx, n)
}

// frames makes the client a progress.Source.
type frames Client

// Poll handles all frames that have been received. When the connection ends, it ends the client.
func (f *frames) Poll() (int, error) {
	c := (*Client)(f)
	c.out.Advance()
	n, err := c.pump()
	if errors.Is(err, wire.ErrNothing) {
		return n, nil
	}
	go c.end(err)
	return n, progress.ErrEnded
}

// Sleep implements progress.Source.
func (f *frames) Sleep() bool {
	return f.source.Sleep() && (!f.out.Stalled.Load() || f.out.Rings.Waits())
}
