package attach

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// shape is what of the memory of a call crosses the socket. Blocks lie one after another
// there, and in the daemon's buffers, whatever lies between them in the program's.
type shape struct {
	// recv is the length of the daemon's receive buffer.
	recv int
	// payload is what the program gives. It is the send buffer, or lies in the
	// receive buffer at at, if inRecv is set.
	payload, at int
	inRecv      bool
	// result is what comes back: so much of the receive buffer's beginning.
	result int
}

// shapeOf gives the shape of a call that can be.
func shapeOf(c *coll.Call) (s shape) {
	root, n := c.Rank == c.Root, c.Bytes
	inPlace := c.InPlace
	switch c.Collective {
	case coll.Bcast:
		s.recv = n
		if root {
			s.payload, s.inRecv = n, true
		} else {
			s.result = n
		}
		return s
	case coll.Reduce:
		s.payload = n
		if root {
			s.recv, s.result = n, n
		}
		inPlace = inPlace && root
	case coll.Allreduce, coll.Scan, coll.Exscan:
		s.payload, s.recv, s.result = n, n, n
		if c.Collective == coll.Exscan && c.Rank == 0 {
			s.recv, s.result = 0, 0 // it gets nothing
			if inPlace {
				s.recv = n
			}
		}
	case coll.Gather:
		s.payload = n
		if root {
			s.recv = extent(c, &c.Recv)
			s.result = s.recv
			s.at, s.payload = block(c, &c.Recv, c.Rank)
		}
		inPlace = inPlace && root
	case coll.Scatter:
		s.recv = n
		if root {
			s.payload = extent(c, &c.Send)
			_, s.recv = block(c, &c.Send, c.Rank)
			if inPlace {
				s.recv = 0
			}
		}
		s.result, inPlace = s.recv, false
	case coll.Allgather:
		s.recv = extent(c, &c.Recv)
		s.result = s.recv
		s.at, s.payload = block(c, &c.Recv, c.Rank)
	case coll.Alltoall:
		s.recv = extent(c, &c.Recv)
		s.result, s.payload = s.recv, s.recv
		if !inPlace {
			s.payload = extent(c, &c.Send)
		}
	case coll.ReduceScatter:
		s.payload = extent(c, &c.Recv)
		_, s.result = block(c, &c.Recv, c.Rank)
		if s.recv = s.result; inPlace {
			s.recv = s.payload
		}
	}
	if s.inRecv = inPlace; !inPlace {
		s.at = 0
	}
	return s
}

// block gives where block i begins if blocks lie one after another, and its size.
func block(c *coll.Call, l *coll.Layout, i int) (off, size int) {
	if !c.Vector {
		return i * c.Bytes, c.Bytes
	}
	for _, n := range l.Sizes[:i] {
		off += n
	}
	return off, l.Sizes[i]
}

// extent is how long all blocks are together.
func extent(c *coll.Call, l *coll.Layout) int {
	off, size := block(c, l, c.Ranks-1)
	return off + size
}

// work is how much memory the daemon may need to carry out a call, beside what crosses
// the socket, in bytes. It is no less than what any algorithm takes, and as it is counted
// before the call is understood, what does not make sense counts as it stands.
func (c *call) work() uint64 {
	ranks, vector := uint64(c.ranks), c.flags&flagVector != 0
	data := add(c.length, c.result)
	n := min(c.bytes, data)
	switch c.collective {
	case coll.Bcast: // and the status of all ranks
		return add(n, (ranks+15)/4)
	case coll.Reduce, coll.Exscan:
		return mul(3, n)
	case coll.Allreduce, coll.Scan:
		return mul(2, n)
	case coll.Gather, coll.Scatter, coll.Allgather:
		if vector {
			return 0
		}
		return mul(ranks, n)
	case coll.Alltoall:
		if vector {
			return c.result
		}
		work := mul(2*ranks+1, n)
		if all := mul(mul(ranks, ranks), n); all <= coll.MostGathered { // rank 0 may gather them
			work = max(work, 2*all)
		}
		return work
	case coll.ReduceScatter:
		work := mul(2, c.length)
		if c.flags&flagOrdered != 0 { // the blocks of all ranks are kept apart
			work = max(work, mul(ranks+1, c.result))
		}
		return add(work, c.result)
	}
	return 0
}

// add and mul give the largest number for what is larger.
func add(a, b uint64) uint64 {
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

// room is how much memory is taken for what crosses the socket, in bytes.
func (c *call) room() uint64 {
	if c.result == 0 {
		return c.length
	}
	return add(c.length, add(c.result, alignLen)) // the result is aligned
}

func (c *call) refuse(format string, args ...any) error {
	return &coll.CallError{Collective: c.collective, Problem: fmt.Sprintf(format, args...)}
}

// operands is how much memory the REDUCE of a call may take, in bytes.
func (c *call) operands() uint64 {
	if c.flags&flagUser == 0 {
		return 0
	}
	return mul(3, min(c.length, operandLen))
}
