package attach

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// StartCollective posts a collective call as one: the daemon's rank carries it out, also
// while the program computes. A function of the program that combines elements is called
// by a goroutine of the client whenever the daemon asks for it.
//
// The error is one that Start may return, or one that Engine.StartCollective returns:
// both check the call in the same way. The call is not made then.
func (c *Client) StartCollective(call *collective.Operation) (mpe.Op, error) {
	m := collectives.Get().(*collective.Operation)
	defer func() {
		*m = collective.Operation{}
		collectives.Put(m)
	}()
	*m = *call
	if err := c.check(m); err != nil {
		return nil, err
	}
	op, err := c.enter(wire.Start{Operation: mpe.Operation{Kind: wire.OpCall}}, m)
	if err != nil {
		return nil, err
	}
	c.out.PutNow(op)
	return op, nil
}

// collectives are for reuse.
var collectives = sync.Pool{New: func() any { return new(collective.Operation) }}

// check reports what the daemon's rank would say of a call, without asking it. A call that
// fails on one rank at once must not have been made by another one that gets its error later.
func (c *Client) check(m *collective.Operation) error {
	m.Call.Order, m.Call.FPGAs, m.Call.Token = nil, nil, 0
	limits, err := m.Check(c)
	if err != nil || m.Algorithm == "tree" { // which depends on what only the daemon knows
		return err
	}
	if err := m.CheckAlgorithm(); err != nil {
		return err
	}
	if !limits.Words {
		return nil
	}
	a, err := coll.ByOrder(&m.Call) // as engines choose
	if m.Algorithm != "" {
		a, err = coll.Find(m.Call.Collective, m.Algorithm)
	}
	if err != nil {
		return err
	}
	return m.CheckMessages(c, limits, a, new(coll.Schedule))
}

// Wire implements collective.Caller.
func (c *Client) Wire(rank int) (collective.Wire, error) { return mpe.WireOf(c.Peer(rank)) }

// collectiveOp is a collective call that the daemon carries out.
type collectiveOp struct {
	wire.Call
	// text is the description.
	text []byte
	// give is what goes out: the description, and blocks of the program's buffers; take is where the result goes. Of
	// give, sent bytes are written; got bytes of take have come.
	give, take pieces
	// user is the operation, if it is a function of the program.
	user func(in, inout []byte) error
}

// begin describes a call that can be.
func (x *collectiveOp) begin(id uint64, m *collective.Operation, size int) {
	var sh wire.Shape
	x.text, sh = x.Describe(id, m, size, x.text[:0])
	x.user = m.User
	x.give.reset()
	x.take.reset()
	x.give.add(x.text)
	x.blocks(m, &sh)
}

// blocks adds the blocks that go out and come back.
func (x *collectiveOp) blocks(m *collective.Operation, s *wire.Shape) {
	c := &m.Call
	from, layout := m.Send, &c.Send
	if s.InRecv {
		from, layout = m.Recv, &c.Recv
	}
	gathers := c.Collective == coll.Gather || c.Collective == coll.Allgather
	switch {
	case gathers && s.InRecv:
		x.give.addBlock(from, c, layout, c.Rank)
	case c.Collective == coll.Alltoall, c.Collective == coll.Scatter && s.Payload > 0:
		x.give.addBlocks(from, c, layout)
	default:
		x.give.add(from[:s.Payload])
	}
	if c.Collective == coll.Alltoall || gathers && s.Result > 0 {
		x.take.addBlocks(m.Recv, c, &c.Recv)
	} else {
		x.take.add(m.Recv[:s.Result])
	}
}

// next makes the next frame of a call. Small pieces are copied behind each other.
func (x *collectiveOp) next(b []byte, begun bool, chunk int) (head, payload []byte, more bool) {
	begin := len(b)
	if begun {
		b = wire.AppendID(b, wire.FrameData, x.ID, 0)
	} else {
		b = wire.AppendCall(b, &x.Call, 0)
	}
	body := len(b)
	for room := chunk; room > 0 && payload == nil; {
		piece := x.give.next(room)
		switch {
		case len(piece) == 0:
			room = 0
		case len(piece) > wire.CopyLen-(len(b)-body):
			payload = piece
		default:
			b = append(b, piece...)
			room -= len(piece)
		}
	}
	wire.Order.PutUint32(b[begin:], uint32(len(b)-begin-wire.FrameHeaderLen+len(payload)))
	return b, payload, x.give.left > 0
}

// pieces are places in memory that are one run of bytes on the socket.
type pieces struct {
	list [][]byte
	// at is the piece that is next, which has been shortened by what has gone.
	at int
	// left is how many bytes there are.
	left int
}

// reset drops all pieces. The program's memory is its own again.
func (p *pieces) reset() {
	clear(p.list)
	*p = pieces{list: p.list[:0]}
}

// add adds a piece.
func (p *pieces) add(b []byte) {
	if len(b) > 0 {
		p.list = append(p.list, b)
		p.left += len(b)
	}
}

// addBlock adds a rank's block of a buffer.
func (p *pieces) addBlock(buf []byte, c *coll.Call, l *coll.Layout, i int) {
	if off, size := c.Block(l, i); size > 0 {
		p.add(buf[off : off+size])
	}
}

// addBlocks adds all blocks of a buffer. Those that lie one after another are one piece.
func (p *pieces) addBlocks(buf []byte, c *coll.Call, l *coll.Layout) {
	if !c.Vector {
		p.add(buf[:c.Ranks*c.Bytes])
		return
	}
	begin, end := 0, 0
	for i, size := range l.Sizes {
		switch off, _ := c.Block(l, i); {
		case size == 0:
		case off == end:
			end += size
		default:
			p.add(buf[begin:end])
			begin, end = off, off+size
		}
	}
	p.add(buf[begin:end])
}

// next takes the next bytes: a piece, or as much of it as most.
func (p *pieces) next(most int) []byte {
	if p.at == len(p.list) {
		return nil
	}
	b := p.list[p.at]
	if len(b) <= most {
		p.at++
	} else {
		p.list[p.at] = b[most:]
		b = b[:most]
	}
	p.left -= len(b)
	return b
}

// reducing is the memory of a REDUCE. In the program it is an item of the outbox: REDUCED.
type reducing struct {
	c    *Client
	id   uint64
	user func(in, inout []byte) error
	// operands are in and inout, one behind the other, and in the daemon the result.
	operands []byte
	err      error
}

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
	x.c, x.id, x.user, x.operands = c, id, op.call.user, slices.Grow(x.operands[:0], n)[:n]
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

// Frame returns REDUCED.
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
