package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// errNothing: nothing more has come.
var errNothing = errors.New("nothing has come")

// reading is a frame that has not come as a whole.
type reading struct {
	// into is where a frame's payload goes, and behind it there are more bytes, which
	// go to further pieces of the call of op. id is whose payload it is.
	into []byte
	more int
	op   *Op
	id   uint64
	// reducing is set if the payload is that of REDUCE.
	reducing *reducing
	// done ends the operation after that, if ends is set.
	done done
	ends bool
}

// pump handles the daemon's frames until there are no more, which is errNothing,
// or the connection ends. The caller is the one that polls.
func (c *Client) pump() (frames int, err error) {
	for {
		if err := c.step(); err != nil {
			return frames, err
		}
		frames++
	}
}

// step goes on with a frame, or begins the next one when as much of it is here
// as has to be examined as a whole.
func (c *Client) step() error {
	r := &c.read
	if len(r.into) == 0 && !r.ends {
		if err := c.in.have(frameHeaderLen); err != nil {
			return err
		}
		if err := c.in.haveHead(); err != nil {
			return err
		}
		if err := c.begin(); err != nil {
			return err
		}
	}
	for len(r.into) > 0 {
		n, err := c.in.some(r.into)
		r.into = r.into[n:]
		if err != nil {
			return err
		}
		if len(r.into) == 0 && r.more > 0 {
			r.into = r.op.call.take.next(r.more)
			r.more -= len(r.into)
		}
	}
	r.into, r.op = nil, nil
	if r.reducing != nil {
		c.stream.Go(r.reducing.run)
		r.reducing = nil
	}
	if r.ends {
		r.ends = false
		if op := c.remove(r.id); op != nil {
			op.reply(&r.done)
		}
		r.done.err = nil
	}
	return nil
}

// begin begins a frame.
func (c *Client) begin() error {
	if err := c.in.next(); err != nil {
		return err
	}
	switch c.in.typ {
	case frameDone:
		if err := c.in.readDone(&c.read.done); err != nil {
			return err
		}
		d := &c.read.done
		op, err := c.store(d.id)
		if err != nil {
			return err
		}
		c.read.ends = true
		if op.calls && d.err == nil && d.stored != op.call.result {
			return violation("DONE of operation %#x, a call whose result has %d bytes, says that it has %d", d.id, op.call.result, d.stored)
		}
		if op.block.n > 0 {
			return op.placed(d.stored)
		}
		if op.probing && op.probe.claim {
			if d.stored > math.MaxInt32 {
				return violation("DONE of operation %#x, a matched probe, says that it is message %d", d.id, d.stored)
			}
			d.status.Claim = int(d.stored)
			return nil
		}
		if uint64(op.got) != d.stored {
			return violation("DONE of operation %#x says that %d bytes were stored, but %d have come", d.id, d.stored, op.got)
		}
		return nil
	case frameData:
		id, err := c.in.readID()
		if err != nil {
			return err
		}
		_, err = c.store(id)
		return err
	case frameReduce:
		return c.readReduce()
	case frameRefused:
		return c.in.readRefused()
	case frameBye:
		return errBye
	}
	return violation("%v is not a frame that a daemon sends to a program that has a rank", c.in.typ)
}

// store has the rest of the frame read into a receive's buffer.
func (c *Client) store(id uint64) (*Op, error) {
	op, n := c.find(id), c.in.left
	switch {
	case op == nil:
		return nil, violation("%v for operation %#x, which is not under way", c.in.typ, id)
	case n > op.room():
		return nil, violation("%v with %d bytes of payload after %d for operation %#x, which has no room for them", c.in.typ, n, op.got, id)
	}
	c.read.id = id
	c.read.into, c.read.more = nil, 0
	switch {
	case n == 0:
	case op.calls:
		if err := op.given(); err != nil {
			return nil, err
		}
		c.read.into = op.call.take.next(n)
		c.read.more, c.read.op = n-len(c.read.into), op
	default:
		c.read.into = op.req.Buf[op.got : op.got+n]
	}
	op.got += n
	return op, nil
}

// placed takes n bytes of a receive's payload out of the arena.
func (op *Op) placed(n uint64) error {
	if most := uint64(len(op.req.Buf)); n > most || n > 0 && op.req.Kind != mpe.OpRecv {
		return violation("DONE of operation %#x says that %d bytes were stored, where there is room for %d", op.id, n, most)
	}
	copy(op.req.Buf[:n], op.c.arena.mem[op.block.at:])
	return nil
}

// given waits until a call's payload is not read any longer: the result may go to the same
// memory. The daemon has all of it, so its writer is about to report that.
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
		return violation("%v with the result of operation %#x, a call whose payload has not been sent", op.c.in.typ, op.id)
	}
	return nil
}

// room is how many bytes more the daemon may send for an operation.
func (op *Op) room() int {
	switch {
	case op.calls:
		return op.call.take.left
	case op.probing || op.req.Kind != mpe.OpRecv || op.block.n > 0:
		return 0
	}
	return len(op.req.Buf) - op.got
}

// end ends everything because the connection has ended with err.
func (c *Client) end(err error) {
	c.fail(c.broken(err))
	c.group.Remove()
	c.stop()
	c.arena.close()
	c.stream.Close()
	close(c.ended)
}

// hangUp ends the connection from this side.
func (c *Client) hangUp(why error) {
	c.mu.Lock()
	if c.hung == nil {
		c.hung = why
	}
	c.mu.Unlock()
	c.stream.HangUp()
}

// broken explains how the connection has ended.
func (c *Client) broken(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.hung != nil:
		return c.hung
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it went away (%w)", err)
	}
	return err
}
