package attach

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// read handles the daemon's frames until the connection ends.
func (c *Client) read() error {
	for {
		if err := c.in.next(); err != nil {
			return err
		}
		switch c.in.typ {
		case frameDone:
			if err := c.readDone(); err != nil {
				return err
			}
		case frameData:
			id, err := c.in.readID()
			if err != nil {
				return err
			}
			if err := c.store(c.find(id), id); err != nil {
				return err
			}
		case frameRefused:
			return c.in.readRefused()
		case frameBye:
			return errBye
		default:
			return violation("%v is not a frame that a daemon sends to a program that has a rank", c.in.typ)
		}
	}
}

// store reads the rest of the frame into a receive's buffer.
func (c *Client) store(op *Op, id uint64) error {
	n := c.in.left
	switch {
	case op == nil:
		return violation("%v for operation %#x, which is not under way", c.in.typ, id)
	case n == 0:
		return nil
	case op.req.Kind != mpe.OpRecv || n > len(op.req.Buf)-op.got:
		return violation("%v with %d bytes of payload after %d for operation %#x, which has no room for them", c.in.typ, n, op.got, id)
	}
	op.got += n
	return c.in.read(op.req.Buf[op.got-n : op.got])
}

// readDone ends an operation.
func (c *Client) readDone() error {
	d, err := c.in.readDone()
	if err != nil {
		return err
	}
	op := c.find(d.id)
	if err := c.store(op, d.id); err != nil {
		return err
	}
	if uint64(op.got) != d.stored {
		return violation("DONE of operation %#x says that %d bytes were stored, but %d have come", d.id, d.stored, op.got)
	}
	c.leave(d.id)
	op.reply(d.status, d.found, d.err)
	return nil
}

// hangUp ends the connection from this side.
func (c *Client) hangUp(why error) {
	c.mu.Lock()
	if c.hung == nil {
		c.hung = why
	}
	c.mu.Unlock()
	c.conn.Close()
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
