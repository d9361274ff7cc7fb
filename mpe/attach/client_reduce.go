package attach

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// reducing is the memory of a REDUCE. In the program it is an item of the outbox: REDUCED.
type reducing struct {
	c    *Client
	id   uint64
	user func(in, inout []byte) error
	// operands are in and inout, one behind the other, and in the daemon the result.
	operands []byte
	err      error
}

// reserve makes room for n bytes.
func (x *reducing) reserve(n int) { x.operands = slices.Grow(x.operands[:0], n)[:n] }

// reducings are for reuse.
var reducings = sync.Pool{New: func() any { return new(reducing) }}

// readReduce begins REDUCE, whose operands are read next.
func (c *Client) readReduce() error {
	id, err := c.in.ReadID()
	if err != nil {
		return err
	}
	op, n := c.find(id), c.in.Left
	switch {
	case op == nil || op.req.Kind != wire.OpCall || op.call.user == nil:
		return wire.Violationf("REDUCE for operation %#x, which is no call with a function of the program", id)
	case n == 0 || n%(2*int(op.call.Elem)) != 0:
		return wire.Violationf("REDUCE for operation %#x has %d bytes, and an element %d", id, n, op.call.Elem)
	}
	x := reducings.Get().(*reducing)
	x.c, x.id, x.user = c, id, op.call.user
	x.reserve(n)
	if err := c.in.Read(x.operands); err != nil {
		return err
	}
	c.stream.Go(x.run)
	return nil
}

// run calls the program's function. It has a goroutine of its own: it may take as long as
// it likes, and the caller of the collective call can still end that.
func (x *reducing) run() {
	x.err = errors.New("it has not returned")
	defer func() {
		if v := recover(); v != nil {
			x.err = fmt.Errorf("panic: %v", v)
		}
		x.c.out.PutNow(x)
	}()
	half := len(x.operands) / 2
	x.err = x.user(x.operands[:half], x.operands[half:])
}

// frame returns REDUCED.
func (x *reducing) Frame(b []byte) (head, payload []byte, more bool) {
	payload = x.operands[len(x.operands)/2:]
	if x.err != nil {
		payload = []byte(wire.Clip(x.err.Error()))
	}
	return wire.AppendReduced(b, x.id, x.err != nil, len(payload)), payload, false
}

func (x *reducing) Written() {
	*x = reducing{operands: x.operands}
	reducings.Put(x)
}
