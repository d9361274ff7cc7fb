package coll

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Collective is an operation of MPI.
type Collective uint8

const (
	// Barrier has no buffers.
	Barrier Collective = iota + 1
	// Bcast: Bytes bytes of the root's receive buffer reach those of all.
	Bcast
	// Reduce: the send buffers, Bytes long, are combined into the root's receive
	// buffer. Allreduce: into everybody's.
	Reduce
	Allreduce
	// Gather: the block of each rank reaches the root's receive buffer.
	Gather
	// Scatter: the blocks of the root's send buffer reach the receive buffers.
	Scatter
	// Allgather: the block of each rank reaches everybody's receive buffer.
	Allgather
	// Alltoall: block i of each rank's send buffer reaches rank i.
	Alltoall
	// ReduceScatter: the send buffers are combined, and rank i gets block i.
	ReduceScatter
	// Scan: rank i gets the send buffers of ranks 0 to i combined; Exscan: those
	// of ranks 0 to i−1, and rank 0 nothing.
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

// Rooted reports whether one rank is different from the others.
func (c Collective) Rooted() bool {
	return c == Bcast || c == Reduce || c == Gather || c == Scatter
}

// ErrCall matches every *CallError.
var ErrCall = errors.New("not a collective call")

// CallError says what a call asks for that cannot be, or not with this algorithm.
type CallError struct {
	Collective Collective
	// Algorithm is empty if no algorithm could do it.
	Algorithm string
	// Problem says what is wrong and what would be right.
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

// maxRanks is far beyond any cluster of ours. It bounds what a call allocates.
const maxRanks = 1 << 16

// Layout is how the blocks of ranks lie in a buffer, in bytes. The zero Layout has
// blocks of Call.Bytes bytes, one after another.
type Layout struct {
	// Sizes has the size of every rank's block. Offsets has where they begin; nil
	// is one after another.
	Sizes, Offsets []int
}

// Call is a collective call of one rank. Ranks are those of the communicator.
// Unless it is said otherwise, all ranks of a call must have the same values.
type Call struct {
	Collective Collective
	// Rank is the caller, different on all ranks. Root means something for Bcast,
	// Reduce, Gather and Scatter.
	Rank, Ranks, Root int
	// Bytes is the length of the vector, or of one rank's block. In Gather and
	// Scatter with a Layout it is the caller's own block, where the caller is not
	// the root.
	Bytes int
	// Send is the layout of the send buffer, for Scatter (significant at the
	// root) and Alltoall; Recv of the receive buffer, for Gather (at the root),
	// Allgather and Alltoall. For Alltoall they are the caller's own, and what
	// one rank sends is what the other receives. For ReduceScatter Recv.Sizes are
	// the blocks of the vector, one after another: Offsets is nil.
	Send, Recv Layout
	// Vector: the call has layouts (MPI's v-forms), and not all ranks may know
	// them. It is set by all ranks, or by none.
	Vector bool
	// Elem is the size of an element, of which Bytes, all sizes and offsets, and
	// Segment are multiples; 0 is 1. Nothing is cut within an element.
	Elem int
	// InPlace: the caller's contribution lies in the receive buffer, where its
	// result will be or its block is (MPI_IN_PLACE). It may differ between ranks.
	// With Scatter, it is the root's own block that stays in its send buffer.
	InPlace bool
	// Ordered: the operation is not commutative. Contributions are combined in
	// the order of ranks.
	Ordered bool
	// Segment is the most bytes of one message of a segmented algorithm; 0 is all
	// of it in one.
	Segment int
	// Order is the order of ranks in a chain, beginning with the root; nil is
	// root, root+1, and so on around.
	Order []int
	// Form is how Order is determined by what ranks have to send: see
	// TransmissionOrder. Schedules depend on Order alone.
	Form OrderForm
	// Flows: messages between all ranks can be forwarded while they arrive.
	Flows bool
	// NoCredit: the ranks promise no room before a receive is posted, so that a flow is
	// synchronised whatever its length. FPGAs whose engines have no buffers are such ranks.
	NoCredit bool
	// FPGAs are the FPGA ranks of an upstream cluster in the order of its file,
	// for the tree that upstream's compiler makes.
	FPGAs []int
	// Shared is how many bytes the ranks' shared buffers have for the call: 0 if they have
	// none, as they are not on one host.
	Shared int
	// Token is how many bytes messages without content have, for peers that take
	// no messages of 0 bytes.
	Token int
}

// Check reports what is wrong with the call whatever the algorithm, as a *CallError, and
// fills in what was left out.
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
		return bad("%d bytes are no length", c.Bytes)
	case c.Bytes%c.Elem != 0:
		return bad("%d bytes are not a whole number of elements of %d bytes", c.Bytes, c.Elem)
	case c.Segment < 0 || c.Segment%c.Elem != 0:
		return bad("segments of %d bytes are not a whole number of elements of %d bytes", c.Segment, c.Elem)
	case c.Form > OrderByLeft:
		return bad("order form %d is not known", c.Form)
	case c.Token < 0:
		return bad("tokens of %d bytes", c.Token)
	}
	if !c.Vector {
		c.Send, c.Recv = Layout{}, Layout{}
		return nil
	}
	return c.checkLayouts(bad)
}

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

// Layouts returns the layouts that the caller's blocks have, the receive buffer's first, and nil for others.
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

func (l *Layout) check(c *Call, bad func(string, ...any) error) error {
	if len(l.Sizes) != c.Ranks || l.Offsets != nil && len(l.Offsets) != c.Ranks {
		return bad("layout of %d sizes and %d offsets for %d ranks", len(l.Sizes), len(l.Offsets), c.Ranks)
	}
	packed := l.Offsets == nil
	if packed {
		l.Offsets = make([]int, c.Ranks)
	}
	end := 0
	for i, size := range l.Sizes {
		if packed {
			l.Offsets[i] = end
		}
		off := l.Offsets[i]
		if size < 0 || off < 0 || size%c.Elem != 0 || size > math.MaxInt/4-off {
			return bad("block %d has %d bytes at %d; it must be a whole number of elements of %d bytes", i, size, off, c.Elem)
		}
		if off != end && c.Collective == ReduceScatter {
			return bad("its blocks lie one after another; leave the offsets out")
		}
		end = off + size
	}
	return nil
}

// Block returns the offset and the size of block i of a buffer with layout l.
func (c *Call) Block(l *Layout, i int) (off, size int) {
	if !c.Vector {
		return i * c.Bytes, c.Bytes
	}
	if l.Offsets == nil {
		return l.before(i), l.Sizes[i]
	}
	return l.Offsets[i], l.Sizes[i]
}

// before returns the length of all blocks before i.
func (l *Layout) before(i int) (n int) {
	for _, size := range l.Sizes[:i] {
		n += size
	}
	return n
}

// Lengths returns how long the caller's buffers have to be, in bytes. The call must have
// passed Check; its blocks may lie one after another.
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

// extent is where the last of the blocks with layout l ends.
func (c *Call) extent(l *Layout) (end int) {
	if !c.Vector {
		return c.Ranks * c.Bytes
	}
	if l.Offsets == nil {
		return l.before(c.Ranks)
	}
	for i, size := range l.Sizes {
		if size > 0 {
			end = max(end, l.Offsets[i]+size)
		}
	}
	return end
}

// input is where the caller's contribution to a reduction begins.
func (c *Call) input() Loc {
	if c.InPlace && (c.Rank == c.Root || !c.Collective.Rooted()) {
		return Loc{Buf: RecvBuf}
	}
	return Loc{Buf: SendBuf}
}

// cut gives where piece i of parts begins when n bytes are cut into parts of about
// the same number of elements. cut(n, parts, parts) is n.
func (c *Call) cut(n, parts, i int) int {
	elems := n / c.Elem
	each, more := elems/parts, elems%parts
	return (i*each + min(i, more)) * c.Elem
}

// segments gives how many segments n bytes have, and how long all but the last are.
func (c *Call) segments(n int) (count, size int) {
	size = c.Segment
	if size == 0 || size > n {
		size = max(n, 1)
	}
	return (n + size - 1) / size, size
}

// chain gives the ranks before and after the caller in Order, or −1.
func (c *Call) chain() (before, after int) {
	before, after = -1, -1
	i, at := c.virtual(), c.actual
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
