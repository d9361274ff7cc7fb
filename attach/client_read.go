package attach

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// errNothing: nothing more has come.
var errNothing = errors.New("nothing has come")

// reading is a frame that has not come as a whole.
type reading struct {
	// into is where the rest of a frame's payload goes, and id whose it is.
	into []byte
	id   uint64
	// done ends the operation after that, if ends is set.
	done done
	ends bool
}

// pump handles the daemon's frames until there are no more, which is errNothing,
// or the connection ends. The caller has the turn.
func (c *Client) pump() (frames int, err error) {
	for {
		if err := c.step(); err != nil {
			return frames, err
		}
		frames++
	}
}

// step goes on with a frame, or begins the next one when as much of it is here
// as has to be looked at as a whole.
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
	}
	r.into = nil
	if r.ends {
		r.ends = false
		if op := c.leave(r.id); op != nil {
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
		if uint64(op.got) != d.stored {
			return violation("DONE of operation %#x says that %d bytes were stored, but %d have come", d.id, d.stored, op.got)
		}
		c.read.ends = true
		return nil
	case frameData:
		id, err := c.in.readID()
		if err != nil {
			return err
		}
		_, err = c.store(id)
		return err
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
	case n > 0 && (op.probing || op.req.Kind != mpe.OpRecv || n > len(op.req.Buf)-op.got):
		return nil, violation("%v with %d bytes of payload after %d for operation %#x, which has no room for them", c.in.typ, n, op.got, id)
	}
	c.read.id = id
	c.read.into = nil
	if n > 0 {
		c.read.into = op.req.Buf[op.got : op.got+n]
		op.got += n
	}
	return op, nil
}

// end ends everything because the connection has ended with err.
func (c *Client) end(err error) {
	c.fail(c.broken(err))
	c.group.Remove()
	c.link.close()
	close(c.ended)
}

// hangUp ends the connection from this side.
func (c *Client) hangUp(why error) {
	c.mu.Lock()
	if c.hung == nil {
		c.hung = why
	}
	c.mu.Unlock()
	c.link.hangUp()
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
