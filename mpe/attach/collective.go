package attach

import (
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
	op, err := c.enter(mpe.Operation{Kind: wire.OpCall}, wire.Probe{}, m)
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
	// give is what goes out: the description, and blocks of the program's buffers;
	// take is where the result goes. Of give, sent bytes are written; got bytes of
	// take have come.
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
	switch c.Collective {
	case coll.Gather, coll.Allgather:
		if s.InRecv {
			x.give.addBlock(m.Recv, c, &c.Recv, c.Rank)
		} else {
			x.give.add(m.Send[:s.Payload])
		}
		if s.Result > 0 {
			x.take.addBlocks(m.Recv, c, &c.Recv)
		}
	case coll.Scatter:
		if s.Payload > 0 {
			x.give.addBlocks(m.Send, c, &c.Send)
		}
		x.take.add(m.Recv[:s.Result])
	case coll.Alltoall:
		if s.InRecv {
			x.give.addBlocks(m.Recv, c, &c.Recv)
		} else {
			x.give.addBlocks(m.Send, c, &c.Send)
		}
		x.take.addBlocks(m.Recv, c, &c.Recv)
	default:
		from := m.Send
		if s.InRecv {
			from = m.Recv
		}
		x.give.add(from[:s.Payload])
		x.take.add(m.Recv[:s.Result])
	}
}

// next makes the next frame of a call. Small pieces are copied behind each other.
func (x *collectiveOp) next(b []byte, begun bool, chunk int) (head, payload []byte, more bool) {
	begin := len(b)
	if begun {
		b = wire.AppendData(b, x.ID, 0)
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
