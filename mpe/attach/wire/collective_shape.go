package wire

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Shape is what of the memory of a call crosses the socket. Blocks lie one after another
// there, and in the daemon's buffers, whatever lies between them in the program's.
type Shape struct {
	// Recv is the length of the daemon's receive buffer.
	Recv int
	// Payload is what the program gives. It is the send buffer, or lies in the
	// receive buffer at at, if inRecv is set.
	Payload, At int
	InRecv      bool
	// Result is what comes back: so much of the receive buffer's beginning.
	Result int
}

// ShapeOf gives the shape of a call that can be.
func ShapeOf(call *coll.Call) (s Shape) {
	c := *call
	c.Send.Offsets, c.Recv.Offsets = nil, nil // its blocks lie one after another
	s.Payload, s.Recv = c.Lengths()
	s.Result = s.Recv
	root := c.Rank == c.Root
	switch {
	case c.Collective == coll.Bcast:
		if s.InRecv = root; root {
			s.Payload, s.Result = c.Bytes, 0
		}
	case c.InPlace && c.Collective != coll.Scatter && (root || !c.Collective.Rooted()):
		s.InRecv = true
		switch c.Collective {
		case coll.Gather, coll.Allgather:
			s.At, s.Payload = c.Block(&c.Recv, c.Rank)
		case coll.ReduceScatter:
			_, s.Result = c.Block(&c.Recv, c.Rank)
			fallthrough
		case coll.Alltoall:
			s.Payload = s.Recv
		case coll.Reduce, coll.Allreduce, coll.Scan, coll.Exscan:
			s.Payload = c.Bytes
		}
	}
	if c.Collective == coll.Exscan && c.Rank == 0 {
		s.Result = 0 // it gets nothing
	}
	return s
}

// Work is the memory in bytes that the daemon may need to execute a call, besides what crosses
// the socket, and to have the program combine elements. It is no less than what any algorithm takes, and as it is counted
// before the call is understood, what does not make sense counts as it stands.
func (c *Call) Work() (work uint64) {
	ranks, vector := uint64(c.Ranks), c.Flags&FlagVector != 0
	n := min(c.Bytes, Add(c.Length, c.Result))
	switch c.Collective {
	case coll.Bcast: // and the status of all ranks
		work = Add(n, (ranks+15)/4)
	case coll.Reduce, coll.Exscan:
		work = mul(3, n)
	case coll.Allreduce, coll.Scan:
		work = mul(2, n)
	case coll.Gather, coll.Scatter, coll.Allgather:
		if !vector {
			work = mul(ranks, n)
		}
	case coll.Alltoall:
		if vector {
			work = c.Result
			break
		}
		work = mul(2*ranks+1, n)
		if all := mul(mul(ranks, ranks), n); all <= coll.MostGathered { // rank 0 may gather them
			work = max(work, 2*all)
		}
	case coll.ReduceScatter:
		work = mul(2, c.Length)
		if c.Flags&FlagOrdered != 0 { // the blocks of all ranks are kept apart
			work = max(work, mul(ranks+1, c.Result))
		}
		work = Add(work, c.Result)
	}
	if c.Flags&FlagUser != 0 { // REDUCE
		work = Add(work, mul(3, min(c.Length, OperandLen)))
	}
	return work
}

// Add and mul give the largest number for what is larger.
func Add(a, b uint64) uint64 {
	if s, carry := bits.Add64(a, b, 0); carry == 0 {
		return s
	}
	return math.MaxUint64
}

func mul(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// Room is how much memory is taken for what crosses the socket, in bytes.
func (c *Call) Room() uint64 {
	if c.Result == 0 {
		return c.Length
	}
	return Add(c.Length, Add(c.Result, AlignLen)) // the result is aligned
}

// Refuse returns the error of a call that cannot be.
func (c *Call) Refuse(format string, args ...any) error {
	return &coll.CallError{Collective: c.Collective, Problem: fmt.Sprintf(format, args...)}
}
