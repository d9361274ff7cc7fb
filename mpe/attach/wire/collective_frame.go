package wire

import (
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// CallLen is the length of the fixed fields in a CALL frame, in bytes.
const CallLen = 72

// Flags of CALL, in addition to FlagAnyDatatype.
const (
	FlagInPlace = FlagAnyDatatype << (1 + iota)
	FlagOrdered
	FlagVector
	// FlagListed means that the CALL frame lists the members. Without it, all ranks of the world are members.
	FlagListed
	// FlagUser means that the program itself provides the reduction function.
	FlagUser
	callFlags = FlagUser<<1 - 1
)

// Call contains the fixed fields of CALL, which posts a collective call. They are followed by the call's
// description (sizes of blocks, members, name of the algorithm) and its payload.
type Call struct {
	ID         uint64
	Collective coll.Collective
	Datatype   protocol.Datatype
	Flags      uint16
	Comm       uint32
	Tag        int32
	// Ranks is the size of the communicator. Rank and Root are ranks in it.
	Ranks, Rank, Root uint32
	Op                op.Op
	Type              op.Type
	Name              uint8 // length of the algorithm's name
	Elem              uint32
	Bytes, Segment    uint64
	// Length is the total length of the description and the payload. Result is the length of the result.
	Length, Result uint64
}

// Describe sets the fields of c so that they describe a call in a world of the given size. It appends the description
// of the call to b.
func (c *Call) Describe(id uint64, operation *collective.Operation, size int, b []byte) ([]byte, Shape) {
	call, shape := &operation.Call, ShapeOf(&operation.Call)
	*c = Call{
		ID: id, Collective: call.Collective, Datatype: operation.Datatype, Comm: operation.Comm, Tag: int32(operation.Tag),
		Ranks: uint32(call.Ranks), Rank: uint32(call.Rank), Root: uint32(call.Root), Op: operation.Op, Type: operation.Type,
		Name: uint8(len(operation.Algorithm)),
		Elem: uint32(call.Elem), Bytes: uint64(call.Bytes), Segment: uint64(call.Segment), Result: uint64(shape.Result),
	}
	for i, set := range [...]bool{operation.AnyDatatype, call.InPlace, call.Ordered, call.Vector,
		!isWorld(operation.Members, size),
		operation.User != nil} {
		if set {
			c.Flags |= FlagAnyDatatype << i
		}
	}
	b = c.AppendDescription(b, call, operation.Members, operation.Algorithm)
	c.Length = uint64(len(b) + shape.Payload)
	return b, shape
}

// isWorld reports whether the list of members contains all ranks of the world in ascending order.
func isWorld(members []int, size int) bool {
	for i, m := range members {
		if i != m {
			return false
		}
	}
	return len(members) == size
}

// AppendCall appends a CALL frame without its data. The caller must then append piece bytes of description and payload.
func AppendCall(b []byte, call *Call, piece int) []byte {
	b = AppendHeader(b, FrameCall, CallLen+piece)
	b = Order.AppendUint64(b, call.ID)
	b = append(b, byte(call.Collective), byte(call.Datatype))
	b = Order.AppendUint16(b, call.Flags)
	for _, v := range [...]uint32{call.Comm, uint32(call.Tag), call.Ranks, call.Rank, call.Root} {
		b = Order.AppendUint32(b, v)
	}
	b = append(b, byte(call.Op), byte(call.Type), call.Name, 0)
	b = Order.AppendUint32(b, call.Elem)
	for _, v := range [...]uint64{call.Bytes, call.Segment, call.Length, call.Result} {
		b = Order.AppendUint64(b, v)
	}
	return b
}

// ReadCall reads a CALL frame up to its description. It does not check that the call is valid.
func (r *Reader) ReadCall() (call Call, err error) {
	b, err := r.NextBytes(CallLen)
	if err != nil {
		return call, err
	}
	call = Call{
		ID: Order.Uint64(b), Collective: coll.Collective(b[8]), Datatype: protocol.Datatype(b[9]),
		Flags: Order.Uint16(b[10:]),
		Comm:  Order.Uint32(b[12:]), Tag: int32(Order.Uint32(b[16:])),
		Ranks: Order.Uint32(b[20:]), Rank: Order.Uint32(b[24:]), Root: Order.Uint32(b[28:]),
		Op: op.Op(b[32]), Type: op.Type(b[33]), Name: b[34], Elem: Order.Uint32(b[36:]),
		Bytes: Order.Uint64(b[40:]), Segment: Order.Uint64(b[48:]), Length: Order.Uint64(b[56:]),
		Result: Order.Uint64(b[64:]),
	}
	switch {
	case call.Datatype > protocol.Float:
		err = Violationf("CALL with datatype %d: 0 is int, 1 is float", call.Datatype)
	case call.Flags&^callFlags != 0 || b[35] != 0:
		err = Violationf("CALL with flags %#04x and byte 35 %#02x", call.Flags, b[35])
	case call.DescriptionLen() > call.Length:
		err = Violationf("CALL is followed by %d bytes, but its description has %d", call.Length, call.DescriptionLen())
	case uint64(r.Remaining) > call.Length || r.Remaining > ChunkLen:
		err = Violationf("CALL with %d bytes after its fields is followed by %d", call.Length, r.Remaining)
	}
	return call, err
}

// CollCall returns the call in the form that package coll uses, without the sizes of blocks. It clamps numbers that do
// not fit in an int.
func (c *Call) CollCall() coll.Call {
	return coll.Call{
		Collective: c.Collective, Rank: clampInt(uint64(c.Rank)), Ranks: clampInt(uint64(c.Ranks)),
		Root:  clampInt(uint64(c.Root)),
		Bytes: clampInt(c.Bytes), Segment: clampInt(c.Segment), Elem: clampInt(uint64(c.Elem)),
		Vector: c.Flags&FlagVector != 0, InPlace: c.Flags&FlagInPlace != 0, Ordered: c.Flags&FlagOrdered != 0,
	}
}

// clampInt returns n, clamped to the largest int.
func clampInt(n uint64) int { return int(min(n, math.MaxInt)) }

const (
	// sizeLen is the length of a block's size in a description, and MemberLen that of a member's rank, in bytes.
	sizeLen   = 8
	MemberLen = 4
	// AlignLen is the number of bytes to a multiple of which a description is padded, so that the numbers after it are
	// aligned.
	AlignLen = 16
)

// DescriptionLen returns the length of the description in bytes.
func (c *Call) DescriptionLen() uint64 {
	n := uint64(c.Name)
	if c.Flags&FlagListed != 0 {
		n += MemberLen * uint64(c.Ranks)
	}
	x := c.CollCall()
	for _, l := range x.Layouts() {
		if l != nil {
			n += sizeLen * uint64(c.Ranks)
		}
	}
	return (n + AlignLen - 1) / AlignLen * AlignLen
}

// AppendDescription appends the description of a call whose layouts are those of x.
func (c *Call) AppendDescription(b []byte, x *coll.Call, members []int, algorithm string) []byte {
	begin := len(b)
	for _, l := range x.Layouts() {
		if l != nil {
			for _, n := range l.Sizes {
				b = Order.AppendUint64(b, uint64(n))
			}
		}
	}
	if c.Flags&FlagListed != 0 {
		for _, m := range members {
			b = Order.AppendUint32(b, uint32(m))
		}
	}
	b = append(b, algorithm...)
	for (len(b)-begin)%AlignLen != 0 {
		b = append(b, 0)
	}
	return b
}

// ReadDescription parses a description, whose length must be DescriptionLen. It sets the layouts of x to adjacent
// blocks of the described sizes. It appends the memory for the layouts to ints, and returns the extended slice. members
// is encoded as in the frame; nil means all ranks of the world. ok is false if the padding is not zero.
func (c *Call) ReadDescription(b []byte, x *coll.Call, ints []int) (members, name []byte, _ []int, ok bool) {
	n := int(c.Ranks)
	for _, layout := range x.Layouts() {
		if layout == nil {
			continue
		}
		at := len(ints)
		ints = slices.Grow(ints, 2*n)[:at+2*n] // must not overwrite slices returned earlier
		sizes, offsets := ints[at:at+n:at+n], ints[at+n:]
		end := 0
		for i := range sizes {
			sizes[i], offsets[i] = clampInt(Order.Uint64(b[sizeLen*i:])), end
			end += sizes[i]
		}
		if layout.Sizes = sizes; c.Collective != coll.ReduceScatter { // a ReduceScatter has no offsets
			layout.Offsets = offsets
		}
		b = b[sizeLen*n:]
	}
	if c.Flags&FlagListed != 0 {
		members, b = b[:MemberLen*n], b[MemberLen*n:]
	}
	name, b = b[:c.Name], b[c.Name:]
	return members, name, ints, !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}

const (
	// OperandLen is the maximum length of an operand in a REDUCE frame, in bytes. Longer vectors are combined piece by
	// piece.
	OperandLen = ChunkLen / 2
	// ReducedLen is the length of the fixed fields in a REDUCED frame, in bytes.
	ReducedLen = 16
	// FlagFailed in a REDUCED frame means that it contains the text of an error instead of the result.
	FlagFailed = 1
)

// AppendReduced appends a REDUCED frame without its data. The caller must then append piece bytes of the result or of
// the error's text.
func AppendReduced(b []byte, id uint64, failed bool, piece int) []byte {
	b = AppendHeader(b, FrameReduced, ReducedLen+piece)
	b = Order.AppendUint64(b, id)
	return append(b, flagBit(failed, FlagFailed), 0, 0, 0, 0, 0, 0, 0)
}
