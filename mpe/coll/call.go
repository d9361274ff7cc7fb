package coll

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Collective is a collective operation of MPI.
type Collective uint8

const (
	// Barrier has no buffers.
	Barrier Collective = iota + 1
	// Bcast copies Bytes bytes of the root's receive buffer to all receive buffers.
	Bcast
	// Reduce combines the send buffers, of Bytes bytes each, into the root's receive buffer, and Allreduce into all
	// receive buffers.
	Reduce
	Allreduce
	// Gather copies the block of each rank to the root's receive buffer.
	Gather
	// Scatter copies the blocks of the root's send buffer to the receive buffers.
	Scatter
	// Allgather copies the block of each rank to all receive buffers.
	Allgather
	// Alltoall copies block i of each rank's send buffer to rank i.
	Alltoall
	// ReduceScatter combines the send buffers. Rank i gets block i of the result.
	ReduceScatter
	// Scan combines, for rank i, the send buffers of ranks 0 to i. Exscan combines the send buffers of ranks 0 to i−1,
	// and has no result on rank 0.
	Scan
	Exscan
)

var collectiveNames = [...]string{"?", "Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather",
	"Alltoall", "Reduce_scatter", "Scan", "Exscan"}

func (c Collective) String() string {
	if int(c) >= len(collectiveNames) {
		c = 0
	}
	return collectiveNames[c]
}

// Rooted reports whether the collective has a root.
func (c Collective) Rooted() bool {
	return c == Bcast || c == Reduce || c == Gather || c == Scatter
}

// ErrCall matches every *CallError.
var ErrCall = errors.New("not a collective call")

// CallError is the error of an invalid call, or of a call that the algorithm does not support.
type CallError struct {
	Collective Collective
	// Algorithm is empty if no algorithm supports the call.
	Algorithm string
	// Problem describes the mistake and the valid values.
	Problem string
}

func (e *CallError) Error() string {
	name := e.Collective.String()
	if e.Algorithm != "" {
		name += " by " + e.Algorithm
	}
	return name + ": " + e.Problem
}

// Is reports whether target is ErrCall.
func (e *CallError) Is(target error) bool { return target == ErrCall }

// maxRanks is the maximum number of ranks in a call. It bounds the memory of a call, and exceeds the size of any
// cluster by far.
const maxRanks = 1 << 16

// Layout describes the location of each rank's block in a buffer, in bytes. In the zero Layout, blocks are adjacent and
// Call.Bytes long.
type Layout struct {
	// Sizes and Offsets hold the size and the offset of each rank's block. Nil Offsets mean adjacent blocks.
	Sizes, Offsets []int
}

// Call is a collective call of one rank. Ranks are numbered within the communicator. Unless documented otherwise, a
// field must be equal on all ranks of a call.
type Call struct {
	Collective Collective
	// Rank is the caller's rank. Root applies to Bcast, Reduce, Gather and Scatter.
	Rank, Ranks, Root int
	// Bytes is the length of the vector, or of one rank's block. In Gather and Scatter with a Layout, each rank other
	// than the root sets it to the size of that rank's block.
	Bytes int
	// Send is the layout of the send buffer, for Scatter (significant at the root) and Alltoall. Recv is the layout of
	// the receive buffer, for Gather (significant at the root), Allgather and Alltoall. In Alltoall, the layouts may
	// differ between ranks, but the sizes at sender and receiver must match. In ReduceScatter, Recv.Sizes divides the
	// vector into adjacent blocks, and Offsets must be nil.
	Send, Recv Layout
	// Vector marks a call with layouts (MPI's v-forms), also on ranks that do not know the layouts.
	Vector bool
	// Elem is the size of an element in bytes; 0 means 1. Bytes, Segment, and all sizes and offsets must be multiples
	// of it, because algorithms never split an element.
	Elem int
	// InPlace is MPI_IN_PLACE: the caller's contribution is in the receive buffer, at the location of its result or of
	// its block. In an in-place Scatter, the root's own block remains in its send buffer. InPlace may differ between
	// ranks.
	InPlace bool
	// Ordered means that the operation is not commutative: the algorithm must combine contributions in rank order.
	Ordered bool
	// Segment is the maximum number of bytes in a message of a segmented algorithm; 0 means no limit.
	Segment int
	// Order is the order of ranks in a chain, beginning with the root; nil means root, root+1, …, root−1.
	Order []int
	// OrderForm determines how Order depends on the data that ranks still have to send; see TransmissionOrder. It does
	// not affect schedules, which depend on Order alone.
	OrderForm OrderForm
	// Flows means that all ranks can forward a message while it arrives.
	Flows bool
	// NoCredit means that the ranks grant no credit before a receive is posted, so that flows of any length must be
	// synchronized. It applies to FPGAs whose engines have no buffers.
	NoCredit bool
	// FPGAs lists the FPGA ranks of an upstream cluster in the order of its file, for the tree of upstream's
	// compiler.
	FPGAs []int
	// Shared is the number of bytes in each rank's shared buffer that the call may use, or 0 if the ranks cannot use
	// shared buffers, for example because they are on different hosts.
	Shared int
	// Token is the length in bytes of messages without content. It is not 0 if a peer does not accept empty messages.
	Token int
}

// Check returns a *CallError if the call is invalid for every algorithm, and fills in defaults.
func (c *Call) Check() error {
	bad := func(format string, args ...any) error {
		return &CallError{Collective: c.Collective, Problem: fmt.Sprintf(format, args...)}
	}
	if c.Elem == 0 {
		c.Elem = 1
	}
	switch {
	case c.Collective < Barrier || c.Collective > Exscan:
		return bad("collective %d is not known", c.Collective)
	case c.Ranks < 1 || c.Ranks > maxRanks:
		return bad("%d ranks; 1 to %d are possible", c.Ranks, maxRanks)
	case c.Rank < 0 || c.Rank >= c.Ranks:
		return bad("rank %d is not one of %d ranks", c.Rank, c.Ranks)
	case c.Collective.Rooted() && (c.Root < 0 || c.Root >= c.Ranks):
		return bad("root %d is not one of %d ranks", c.Root, c.Ranks)
	case c.Elem < 0:
		return bad("elements of %d bytes", c.Elem)
	case c.Bytes < 0 || c.Bytes > math.MaxInt/4/maxRanks:
		return bad("%d bytes is not a valid length", c.Bytes)
	case c.Bytes%c.Elem != 0:
		return bad("%d bytes are not a whole number of elements of %d bytes", c.Bytes, c.Elem)
	case c.Segment < 0 || c.Segment%c.Elem != 0:
		return bad("segments of %d bytes are not a whole number of elements of %d bytes", c.Segment, c.Elem)
	case c.OrderForm > OrderByLeft:
		return bad("order form %d is not known", c.OrderForm)
	case c.Token < 0:
		return bad("tokens of %d bytes", c.Token)
	}
	if !c.Vector {
		c.Send, c.Recv = Layout{}, Layout{}
		return nil
	}
	return c.checkLayouts(bad)
}

// checkLayouts checks the layouts that the caller uses, and completes those without offsets.
func (c *Call) checkLayouts(bad func(string, ...any) error) error {
	switch c.Collective {
	case Gather, Scatter, Allgather, ReduceScatter, Alltoall:
	default:
		return bad("it has no layouts")
	}
	list := c.Layouts()
	for _, l := range slices.Backward(list[:]) {
		if l == nil {
			continue
		}
		if err := l.check(c, bad); err != nil {
			return err
		}
	}
	return nil
}

// Layouts returns the layouts that the caller uses. In Alltoall, the layout of the receive buffer comes first. Unused
// elements are nil.
func (c *Call) Layouts() (list [2]*Layout) {
	if !c.Vector {
		return list
	}
	switch root := c.Rank == c.Root; c.Collective {
	case Gather:
		if root {
			list[0] = &c.Recv
		}
	case Scatter:
		if root {
			list[0] = &c.Send
		}
	case Allgather, ReduceScatter:
		list[0] = &c.Recv
	case Alltoall:
		list[0] = &c.Recv
		if !c.InPlace {
			list[1] = &c.Send
		}
	}
	return list
}

// check checks a layout for the number of ranks and the size of elements. It sets missing offsets, so that blocks are
// adjacent.
func (l *Layout) check(call *Call, bad func(string, ...any) error) error {
	if len(l.Sizes) != call.Ranks || l.Offsets != nil && len(l.Offsets) != call.Ranks {
		return bad("layout of %d sizes and %d offsets for %d ranks", len(l.Sizes), len(l.Offsets), call.Ranks)
	}
	packed := l.Offsets == nil
	if packed {
		l.Offsets = make([]int, call.Ranks)
	}
	end := 0
	for i, size := range l.Sizes {
		if packed {
			l.Offsets[i] = end
		}
		off := l.Offsets[i]
		if size < 0 || off < 0 || size%call.Elem != 0 || size > math.MaxInt/4-off {
			return bad("block %d has %d bytes at %d; it must be a whole number of elements of %d bytes", i, size, off,
				call.Elem)
		}
		if off != end && call.Collective == ReduceScatter {
			return bad("its blocks are contiguous: leave the offsets out")
		}
		end = off + size
	}
	return nil
}

// Block returns the offset and the size of block i of a buffer with the given layout.
func (c *Call) Block(layout *Layout, i int) (off, size int) {
	if !c.Vector {
		return i * c.Bytes, c.Bytes
	}
	if layout.Offsets == nil {
		return layout.sizeBefore(i), layout.Sizes[i]
	}
	return layout.Offsets[i], layout.Sizes[i]
}

// sizeBefore returns the total size of the blocks before i.
func (l *Layout) sizeBefore(i int) (n int) {
	for _, size := range l.Sizes[:i] {
		n += size
	}
	return n
}

// Lengths returns the required lengths of the caller's buffers in bytes. The call must have passed Check, except that
// Offsets may still be nil.
func (c *Call) Lengths() (send, recv int) {
	root, own := c.Rank == c.Root, c.Bytes
	switch c.Collective {
	case Bcast:
		return 0, own
	case Reduce:
		send = own
		if root {
			recv = own
		}
	case Allreduce, Scan, Exscan:
		send, recv = own, own
		if c.Collective == Exscan && c.Rank == 0 && !c.InPlace {
			recv = 0
		}
	case Gather:
		send = own
		if root {
			recv = c.extent(&c.Recv)
			_, send = c.Block(&c.Recv, c.Rank)
		}
	case Scatter:
		recv = own
		if root {
			send = c.extent(&c.Send)
			if _, recv = c.Block(&c.Send, c.Rank); c.InPlace {
				recv = 0
			}
		}
		return send, recv
	case Allgather:
		recv = c.extent(&c.Recv)
		_, send = c.Block(&c.Recv, c.Rank)
	case Alltoall:
		recv = c.extent(&c.Recv)
		if !c.InPlace {
			send = c.extent(&c.Send)
		}
	case ReduceScatter:
		send = c.extent(&c.Recv)
		if _, recv = c.Block(&c.Recv, c.Rank); c.InPlace {
			recv = send
		}
	}
	if c.InPlace && (!c.Collective.Rooted() || root) {
		send = 0
	}
	return send, recv
}

// extent returns the length of a buffer with the given layout: the end of its last non-empty block.
func (c *Call) extent(layout *Layout) (end int) {
	if !c.Vector {
		return c.Ranks * c.Bytes
	}
	if layout.Offsets == nil {
		return layout.sizeBefore(c.Ranks)
	}
	for i, size := range layout.Sizes {
		if size > 0 {
			end = max(end, layout.Offsets[i]+size)
		}
	}
	return end
}

// inputLoc returns the location of the caller's contribution.
func (c *Call) inputLoc() Loc {
	if c.InPlace && (c.Rank == c.Root || !c.Collective.Rooted()) {
		return Loc{Buf: RecvBuf}
	}
	return Loc{Buf: SendBuf}
}

// partOffset returns the offset of part i when n bytes are divided into parts of nearly equal numbers of elements. For
// i = parts it returns n.
func (c *Call) partOffset(n, parts, i int) int {
	elems := n / c.Elem
	each, more := elems/parts, elems%parts
	return (i*each + min(i, more)) * c.Elem
}

// segments returns the number of segments of n bytes, and their size; the last segment may be shorter.
func (c *Call) segments(n int) (count, size int) {
	size = c.Segment
	if size == 0 || size > n {
		size = max(n, 1)
	}
	return (n + size - 1) / size, size
}

// chainNeighbors returns the ranks before and after the caller in the chain. −1 means that there is no such rank.
func (c *Call) chainNeighbors() (before, after int) {
	before, after = -1, -1
	i, at := c.virtualRank(), c.actualRank
	if c.Order != nil {
		i, at = slices.Index(c.Order, c.Rank), func(i int) int { return c.Order[i] }
	}
	if i > 0 {
		before = at(i - 1)
	}
	if i < c.Ranks-1 {
		after = at(i + 1)
	}
	return before, after
}
