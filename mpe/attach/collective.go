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

// StartCollective posts a collective call. The daemon's rank executes it, even while the program computes. If
// the call reduces with a function of the program, a goroutine of the client calls that function whenever the
// daemon requests it.
//
// StartCollective returns the errors of Start and of Engine.StartCollective, since both sides check the call in
// the same way. If it returns an error, the call has not been posted.
func (c *Client) StartCollective(call *collective.Operation) (mpe.Op, error) {
	operation := operationPool.Get().(*collective.Operation)
	defer func() {
		*operation = collective.Operation{}
		operationPool.Put(operation)
	}()
	*operation = *call
	if err := c.checkCall(operation); err != nil {
		return nil, err
	}
	op, err := c.newOp(wire.Start{Operation: mpe.Operation{Kind: wire.OpCall}}, operation)
	if err != nil {
		return nil, err
	}
	c.outbox.Send(op)
	return op, nil
}

// operationPool is a pool of call descriptions.
var operationPool = sync.Pool{New: func() any { return new(collective.Operation) }}

// checkCall returns the error with which the daemon's rank would reject the call. Every rank must reject an invalid
// call at once: no rank may post it and learn of the error only later.
func (c *Client) checkCall(operation *collective.Operation) error {
	operation.Call.Order, operation.Call.FPGAs, operation.Call.Token = nil, nil, 0
	limits, err := operation.Check(c)
	if err != nil || operation.Algorithm == "tree" { // tree depends on facts that only the daemon knows
		return err
	}
	if err := operation.CheckAlgorithm(); err != nil {
		return err
	}
	if !limits.Words {
		return nil
	}
	algorithm, err := coll.ByOrder(&operation.Call) // the same choice as the engine's
	if operation.Algorithm != "" {
		algorithm, err = coll.Find(operation.Call.Collective, operation.Algorithm)
	}
	if err != nil {
		return err
	}
	return operation.CheckMessages(c, limits, algorithm, new(coll.Schedule))
}

// Wire implements collective.Caller.
func (c *Client) Wire(rank int) (collective.Wire, error) { return mpe.WireOf(c.Peer(rank)) }

// collectiveOp is a collective call executed by the daemon.
type collectiveOp struct {
	wire.Call
	// description is the call's description as encoded in the CALL frame.
	description []byte
	// sendPieces is the data to send: the description and the blocks in the program's buffers. recvPieces is the
	// destination of the result.
	sendPieces, recvPieces pieces
	// userFunc is the program's reduction function, or nil if the reduction is predefined.
	userFunc func(in, inout []byte) error
}

// init initializes x with a valid call.
func (x *collectiveOp) init(id uint64, operation *collective.Operation, size int) {
	var sh wire.Shape
	x.description, sh = x.Describe(id, operation, size, x.description[:0])
	x.userFunc = operation.User
	x.sendPieces.reset()
	x.recvPieces.reset()
	x.sendPieces.add(x.description)
	x.addBlocks(operation, &sh)
}

// addBlocks adds the blocks to send to sendPieces, and the blocks to receive to recvPieces.
func (x *collectiveOp) addBlocks(operation *collective.Operation, shape *wire.Shape) {
	call := &operation.Call
	from, layout := operation.Send, &call.Send
	if shape.InRecv {
		from, layout = operation.Recv, &call.Recv
	}
	gathers := call.Collective == coll.Gather || call.Collective == coll.Allgather
	switch {
	case gathers && shape.InRecv:
		x.sendPieces.addBlock(from, call, layout, call.Rank)
	case call.Collective == coll.Alltoall, call.Collective == coll.Scatter && shape.Payload > 0:
		x.sendPieces.addBlocks(from, call, layout)
	default:
		x.sendPieces.add(from[:shape.Payload])
	}
	if call.Collective == coll.Alltoall || gathers && shape.Result > 0 {
		x.recvPieces.addBlocks(operation.Recv, call, &call.Recv)
	} else {
		x.recvPieces.add(operation.Recv[:shape.Result])
	}
}

// buildFrame returns the next frame of a call. It copies small pieces into a single frame.
func (x *collectiveOp) buildFrame(b []byte, begun bool, chunk int) (head, payload []byte, more bool) {
	begin := len(b)
	if begun {
		b = wire.AppendID(b, wire.FrameData, x.ID, 0)
	} else {
		b = wire.AppendCall(b, &x.Call, 0)
	}
	body := len(b)
	for room := chunk; room > 0 && payload == nil; {
		piece := x.sendPieces.next(room)
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
	return b, payload, x.sendPieces.bytesLeft > 0
}

// pieces is a list of buffers that form a single sequence of bytes on the connection.
type pieces struct {
	list [][]byte
	// index is the index of the next piece. That piece no longer contains the bytes already taken from it.
	index int
	// bytesLeft is the total length of the remaining pieces.
	bytesLeft int
}

// reset removes all pieces, and with them all references to the program's memory.
func (p *pieces) reset() {
	clear(p.list)
	*p = pieces{list: p.list[:0]}
}

func (p *pieces) add(b []byte) {
	if len(b) > 0 {
		p.list = append(p.list, b)
		p.bytesLeft += len(b)
	}
}

// addBlock adds the block of a rank in a buffer.
func (p *pieces) addBlock(buf []byte, c *coll.Call, l *coll.Layout, i int) {
	if off, size := c.Block(l, i); size > 0 {
		p.add(buf[off : off+size])
	}
}

// addBlocks adds all blocks in a buffer. It joins adjacent blocks into one piece.
func (p *pieces) addBlocks(buf []byte, call *coll.Call, layout *coll.Layout) {
	if !call.Vector {
		p.add(buf[:call.Ranks*call.Bytes])
		return
	}
	begin, end := 0, 0
	for i, size := range layout.Sizes {
		switch off, _ := call.Block(layout, i); {
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

// next removes and returns the next piece, but at most the given number of bytes.
func (p *pieces) next(most int) []byte {
	if p.index == len(p.list) {
		return nil
	}
	b := p.list[p.index]
	if len(b) <= most {
		p.index++
	} else {
		p.list[p.index] = b[most:]
		b = b[:most]
	}
	p.bytesLeft -= len(b)
	return b
}

// reduceJob handles one REDUCE frame, by which the daemon requests a reduction. It is also the outbox item that sends
// the answer, a REDUCED frame.
type reduceJob struct {
	client   *Client
	id       uint64
	userFunc func(in, inout []byte) error
	// operands contains the operand in, followed by the operand inout. The result replaces inout.
	operands []byte
	err      error
}

var reduceJobPool = sync.Pool{New: func() any { return new(reduceJob) }}

// readReduce handles REDUCE.
func (c *Client) readReduce() error {
	id, err := c.reader.ReadID()
	if err != nil {
		return err
	}
	op, n := c.find(id), c.reader.Remaining
	switch {
	case op == nil || op.req.Kind != wire.OpCall || op.call.userFunc == nil:
		return wire.Violationf("REDUCE for operation %#x, which is not a call with a user-defined operation", id)
	case n == 0 || n%(2*int(op.call.Elem)) != 0:
		return wire.Violationf("REDUCE for operation %#x has %d bytes, and an element %d", id, n, op.call.Elem)
	}
	x := reduceJobPool.Get().(*reduceJob)
	x.client, x.id, x.userFunc, x.operands = c, id, op.call.userFunc, slices.Grow(x.operands[:0], n)[:n]
	if err := c.reader.Read(x.operands); err != nil {
		return err
	}
	c.stream.Go(x.run)
	return nil
}

// run calls the program's reduction function. It runs in its own goroutine, because the function may take any amount of
// time, and the caller must be able to abort the collective call meanwhile.
func (x *reduceJob) run() {
	x.err = errors.New("it did not return")
	defer func() {
		if v := recover(); v != nil {
			x.err = fmt.Errorf("panic: %v", v)
		}
		x.client.outbox.Send(x)
	}()
	half := len(x.operands) / 2
	x.err = x.userFunc(x.operands[:half], x.operands[half:])
}

// Frame implements wire.Item. It returns REDUCED.
func (x *reduceJob) Frame(b []byte) (head, payload []byte, more bool) {
	payload = x.operands[len(x.operands)/2:]
	if x.err != nil {
		payload = []byte(wire.ClipText(x.err.Error()))
	}
	return wire.AppendReduced(b, x.id, x.err != nil, len(payload)), payload, false
}

func (x *reduceJob) Written() {
	*x = reduceJob{operands: x.operands}
	reduceJobPool.Put(x)
}
