package attach

import (
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// callLen is the length in bytes of what CALL begins with.
const callLen = 72

// The flags of CALL, beside flagAnyDatatype.
const (
	flagInPlace = flagAnyDatatype << (1 + iota)
	flagOrdered
	flagVector
	// flagListed: the members are listed. Otherwise they are all ranks of the world.
	flagListed
	// flagUser: the operation is a function of the program.
	flagUser
	callFlags = flagUser<<1 - 1
)

// maxName is the longest name of an algorithm, in bytes.
const maxName = 255

// call posts a collective call. Behind its fields come its description, which is of
// sizes, members and the algorithm's name, and its payload.
type call struct {
	id         uint64
	collective coll.Collective
	datatype   protocol.Datatype
	flags      uint16
	comm       uint32
	tag        int32
	// ranks, rank and root are those of the communicator.
	ranks, rank, root uint32
	op                op.Op
	typ               op.Type
	name              uint8 // length of the algorithm's
	elem              uint32
	bytes, segment    uint64
	// length is that of the description and the payload, result that of what comes
	// back.
	length, result uint64
}

// appendCall appends CALL, of whose description and payload piece bytes follow.
func appendCall(b []byte, c *call, piece int) []byte {
	b = appendHeader(b, frameCall, callLen+piece)
	b = order.AppendUint64(b, c.id)
	b = append(b, byte(c.collective), byte(c.datatype))
	b = order.AppendUint16(b, c.flags)
	for _, v := range [...]uint32{c.comm, uint32(c.tag), c.ranks, c.rank, c.root} {
		b = order.AppendUint32(b, v)
	}
	b = append(b, byte(c.op), byte(c.typ), c.name, 0)
	b = order.AppendUint32(b, c.elem)
	for _, v := range [...]uint64{c.bytes, c.segment, c.length, c.result} {
		b = order.AppendUint64(b, v)
	}
	return b
}

// readCall reads CALL up to its description. What a call may ask for is not looked at
// here.
func (r *frameReader) readCall() (c call, err error) {
	b, err := r.take(callLen)
	if err != nil {
		return c, err
	}
	c = call{
		id: order.Uint64(b), collective: coll.Collective(b[8]), datatype: protocol.Datatype(b[9]), flags: order.Uint16(b[10:]),
		comm: order.Uint32(b[12:]), tag: int32(order.Uint32(b[16:])),
		ranks: order.Uint32(b[20:]), rank: order.Uint32(b[24:]), root: order.Uint32(b[28:]),
		op: op.Op(b[32]), typ: op.Type(b[33]), name: b[34], elem: order.Uint32(b[36:]),
		bytes: order.Uint64(b[40:]), segment: order.Uint64(b[48:]), length: order.Uint64(b[56:]), result: order.Uint64(b[64:]),
	}
	switch {
	case c.datatype > protocol.Float:
		err = violation("CALL with datatype %d: 0 is int, 1 is float", c.datatype)
	case c.flags&^callFlags != 0 || b[35] != 0:
		err = violation("CALL with flags %#04x and byte 35 %#02x", c.flags, b[35])
	case c.description() > c.length:
		err = violation("CALL is followed by %d bytes, but its description has %d", c.length, c.description())
	case uint64(r.left) > c.length || r.left > chunkLen:
		err = violation("CALL with %d bytes after its fields is followed by %d", c.length, r.left)
	}
	return c, err
}

// asked is the call as package coll has it, but for the sizes of blocks. Numbers that are
// too large stay so.
func (c *call) asked() coll.Call {
	return coll.Call{
		Collective: c.collective, Rank: number(uint64(c.rank)), Ranks: number(uint64(c.ranks)), Root: number(uint64(c.root)),
		Bytes: number(c.bytes), Segment: number(c.segment), Elem: number(uint64(c.elem)),
		Vector: c.flags&flagVector != 0, InPlace: c.flags&flagInPlace != 0, Ordered: c.flags&flagOrdered != 0,
	}
}

// number is n, or the largest number there is.
func number(n uint64) int { return int(min(n, math.MaxInt)) }

// layouts gives the layouts of a call whose sizes are described, in their order.
func layouts(c *coll.Call) (list [2]*coll.Layout) {
	if !c.Vector {
		return list
	}
	switch c.Collective {
	case coll.Gather:
		if c.Rank == c.Root {
			list[0] = &c.Recv
		}
	case coll.Scatter:
		if c.Rank == c.Root {
			list[0] = &c.Send
		}
	case coll.Allgather, coll.ReduceScatter:
		list[0] = &c.Recv
	case coll.Alltoall:
		list[0] = &c.Recv
		if !c.InPlace {
			list[1] = &c.Send
		}
	}
	return list
}

const (
	sizeLen   = 8
	memberLen = 4
	// alignLen is of what the length of a description is a multiple, so that numbers
	// behind it lie as machines want them.
	alignLen = 16
)

// description is how many bytes the description has.
func (c *call) description() uint64 {
	n := uint64(c.name)
	if c.flags&flagListed != 0 {
		n += memberLen * uint64(c.ranks)
	}
	x := c.asked()
	for _, l := range layouts(&x) {
		if l != nil {
			n += sizeLen * uint64(c.ranks)
		}
	}
	return (n + alignLen - 1) / alignLen * alignLen
}

// appendDescription appends the description of a call whose layouts are those of x.
func (c *call) appendDescription(b []byte, x *coll.Call, members []int, algorithm string) []byte {
	begin := len(b)
	for _, l := range layouts(x) {
		if l != nil {
			for _, n := range l.Sizes {
				b = order.AppendUint64(b, uint64(n))
			}
		}
	}
	if c.flags&flagListed != 0 {
		for _, m := range members {
			b = order.AppendUint32(b, uint32(m))
		}
	}
	b = append(b, algorithm...)
	for (len(b)-begin)%alignLen != 0 {
		b = append(b, 0)
	}
	return b
}

// description is what is read of one.
type description struct {
	// members are as in the frame; nil is all ranks of the world.
	members []byte
	name    []byte
}

// readDescription takes a description apart, which is as long as description says. The
// layouts of x get their sizes, and blocks one after another, in the memory of ints, which
// it returns. ok is false if what should be zero is not.
func (c *call) readDescription(b []byte, x *coll.Call, ints []int) (d description, _ []int, ok bool) {
	n := int(c.ranks)
	for _, l := range layouts(x) {
		if l == nil {
			continue
		}
		at := len(ints)
		ints = slices.Grow(ints, 2*n)[:at+2*n] // what has been given before stays as it is
		sizes, offsets := ints[at:at+n:at+n], ints[at+n:]
		end := 0
		for i := range sizes {
			sizes[i], offsets[i] = number(order.Uint64(b[sizeLen*i:])), end
			end += sizes[i]
		}
		if l.Sizes = sizes; c.collective != coll.ReduceScatter { // which has none
			l.Offsets = offsets
		}
		b = b[sizeLen*n:]
	}
	if c.flags&flagListed != 0 {
		d.members, b = b[:memberLen*n], b[memberLen*n:]
	}
	d.name, b = b[:c.name], b[c.name:]
	return d, ints, !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}

const (
	// operandLen is the most bytes of an operand in REDUCE. Longer vectors are combined
	// in pieces.
	operandLen = chunkLen / 2
	// reducedLen is the length in bytes of what REDUCED begins with.
	reducedLen = 16
	// flagFailed of REDUCED: the text of an error follows instead of the result.
	flagFailed = 1
)

// appendReduce appends REDUCE, whose operands of piece bytes together follow.
func appendReduce(b []byte, id uint64, piece int) []byte {
	b = appendHeader(b, frameReduce, idLen+piece)
	return order.AppendUint64(b, id)
}

// appendReduced appends REDUCED, whose result, or text, of piece bytes follows.
func appendReduced(b []byte, id uint64, failed bool, piece int) []byte {
	b = appendHeader(b, frameReduced, reducedLen+piece)
	b = order.AppendUint64(b, id)
	return append(b, bit(failed, flagFailed), 0, 0, 0, 0, 0, 0, 0)
}
