package wire

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Shape describes the memory of a call that crosses the socket. In that memory and in the daemon's buffers,
// blocks are adjacent even if there are gaps between them in the program's buffers.
type Shape struct {
	// Recv is the length of the daemon's receive buffer.
	Recv int
	// Payload is the length of the data that the program sends: the send buffer or, if InRecv is set, the part of the
	// receive buffer that starts at Offset.
	Payload, Offset int
	InRecv          bool
	// Result is the length of the result. The result is at the beginning of the receive buffer.
	Result int
}

// ShapeOf returns the Shape of a valid call.
func ShapeOf(call *coll.Call) (shape Shape) {
	c := *call
	c.Send.Offsets, c.Recv.Offsets = nil, nil // blocks are adjacent
	shape.Payload, shape.Recv = c.Lengths()
	shape.Result = shape.Recv
	root := c.Rank == c.Root
	switch {
	case c.Collective == coll.Bcast:
		if shape.InRecv = root; root {
			shape.Payload, shape.Result = c.Bytes, 0
		}
	case c.InPlace && c.Collective != coll.Scatter && (root || !c.Collective.Rooted()):
		shape.InRecv = true
		switch c.Collective {
		case coll.Gather, coll.Allgather:
			shape.Offset, shape.Payload = c.Block(&c.Recv, c.Rank)
		case coll.ReduceScatter:
			_, shape.Result = c.Block(&c.Recv, c.Rank)
			fallthrough
		case coll.Alltoall:
			shape.Payload = shape.Recv
		case coll.Reduce, coll.Allreduce, coll.Scan, coll.Exscan:
			shape.Payload = c.Bytes
		}
	}
	if c.Collective == coll.Exscan && c.Rank == 0 {
		shape.Result = 0 // rank 0 has no result
	}
	return shape
}

// WorkBytes returns an upper bound on the memory, in bytes, that the daemon needs to execute a call and its REDUCE
// frames by any algorithm, in addition to the data that crosses the socket. Because the daemon calls WorkBytes before
// it checks the call, WorkBytes must accept invalid values.
func (c *Call) WorkBytes() (work uint64) {
	ranks, vector := uint64(c.Ranks), c.Flags&FlagVector != 0
	n := min(c.Bytes, SaturatingAdd(c.Length, c.Result))
	switch c.Collective {
	case coll.Bcast: // and the status of all ranks
		work = SaturatingAdd(n, (ranks+15)/4)
	case coll.Reduce, coll.Exscan:
		work = saturatingMul(3, n)
	case coll.Allreduce, coll.Scan:
		work = saturatingMul(2, n)
	case coll.Gather, coll.Scatter, coll.Allgather:
		if !vector {
			work = saturatingMul(ranks, n)
		}
	case coll.Alltoall:
		if vector {
			work = c.Result
			break
		}
		work = saturatingMul(2*ranks+1, n)
		if all := saturatingMul(saturatingMul(ranks, ranks), n); all <= coll.MaxGathered { // rank 0 may gather them
			work = max(work, 2*all)
		}
	case coll.ReduceScatter:
		work = saturatingMul(2, c.Length)
		if c.Flags&FlagOrdered != 0 { // the blocks of all ranks are kept apart
			work = max(work, saturatingMul(ranks+1, c.Result))
		}
		work = SaturatingAdd(work, c.Result)
	}
	if c.Flags&FlagUser != 0 { // memory for REDUCE
		work = SaturatingAdd(work, saturatingMul(3, min(c.Length, OperandLen)))
	}
	return work
}

// SaturatingAdd and saturatingMul return the largest number if the result would overflow.
func SaturatingAdd(a, b uint64) uint64 {
	if s, carry := bits.Add64(a, b, 0); carry == 0 {
		return s
	}
	return math.MaxUint64
}

// saturatingMul returns a·b, or the largest number on overflow. The factors come from frames, and the limits reject the
// result.
func saturatingMul(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// DataBytes returns the number of bytes of memory for the data that crosses the socket.
func (c *Call) DataBytes() uint64 {
	if c.Result == 0 {
		return c.Length
	}
	return SaturatingAdd(c.Length, SaturatingAdd(c.Result, AlignLen)) // the result is aligned
}

// CallError returns the error for an invalid call.
func (c *Call) CallError(format string, args ...any) error {
	return &coll.CallError{Collective: c.Collective, Problem: fmt.Sprintf(format, args...)}
}
