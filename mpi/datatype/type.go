package datatype

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// ErrArgument is matched by the error of a constructor whose arguments do not fit.
var ErrArgument = errors.New("invalid datatype")

// Type is a datatype. Its element is size bytes of data, which are within the bounds of the
// true extent, and elements of a message are at a distance of the extent.
type Type struct {
	layout layout
	// part is the layout at offset 0, for a loop over it.
	part []layout
	size int64
	// lb and ub are the bounds. They were set by Resized, also in a type that this one is made of, or
	// else follow from the elements.
	lb, ub       int64
	lbSet, ubSet bool
	trueLB       int64
	trueUB       int64
	align        int64
	// count is how many basic elements there are, all of type basic unless that is 0.
	count int64
	basic op.Type
	name  string
	// made is how the type was constructed, and large is set for one of MarkLarge.
	made  Contents
	large bool
}

// Contents is how a type was constructed (MPI_Type_get_contents): the integers, addresses and
// types that its constructor was given, in the order of the standard.
type Contents struct {
	Combiner  Combiner
	Integers  []int64
	Addresses []int64
	Types     []*Type
}

// Combiner is the constructor of a type.
type Combiner int

// The constructors of the standard.
const (
	Named Combiner = iota
	CombinerDup
	CombinerContiguous
	CombinerVector
	CombinerHvector
	CombinerIndexed
	CombinerHindexed
	CombinerIndexedBlock
	CombinerHindexedBlock
	CombinerStruct
	CombinerSubarray
	CombinerDarray
	CombinerResized
)

// Basic returns a type that is one element of what a language has: size bytes, which are aligned to
// align bytes. Element is what reductions take it for, or 0 if they cannot.
func Basic(name string, size, align int64, element op.Type) *Type {
	return &Type{
		layout: bytes(size), size: size, ub: size, trueUB: size, align: align, count: 1, basic: element, name: name,
	}
}

// Name is that of a basic type, or "".
func (t *Type) Name() string { return t.name }

// Size is how many bytes of data an element has.
func (t *Type) Size() int64 { return t.size }

// Bounds are the lower bound and the extent.
func (t *Type) Bounds() (lb, extent int64) { return t.lb, t.ub - t.lb }

// Extent is the distance of two elements in a message.
func (t *Type) Extent() int64 { return t.ub - t.lb }

// TrueBounds are the lower bound and the extent of the data alone.
func (t *Type) TrueBounds() (lb, extent int64) { return t.trueLB, t.trueUB - t.trueLB }

// Contents returns how the type was constructed. It must not be changed.
func (t *Type) Contents() Contents { return t.made }

// MarkLarge records that the type was constructed by a call with large counts (the functions of C that end in _c). It
// may be called only before the type is used.
func (t *Type) MarkLarge() { t.large = true }

// Large reports whether the type was constructed by a call with large counts.
func (t *Type) Large() bool { return t.large }

// Element is what all basic elements are to a reduction, or 0 if they differ or have no such type.
func (t *Type) Element() op.Type { return t.basic }

// Contiguous reports whether count elements are one block of memory, and at which offset it
// begins.
func (t *Type) Contiguous(count int64) (offset int64, ok bool) {
	all := t.layout.loop(count, t.Extent(), t.part)
	return all.contiguous()
}

// Dense reports whether elements follow each other without gaps, whatever their number, from displacement 0 on.
func (t *Type) Dense() bool {
	l := &t.layout
	return l.times == 1 && l.offset == 0 && l.block > 0 && l.block == t.ub-t.lb
}

// Span is the memory that count elements use: from the first byte of data to the end of the last
// one, relative to the buffer.
func (t *Type) Span(count int64) (begin, end int64, err error) {
	if count == 0 || t.size == 0 {
		return 0, 0, nil
	}
	var o overflow
	last := o.mul(count-1, t.Extent())
	begin, end = o.add(t.trueLB, min(last, 0)), o.add(t.trueUB, max(last, 0))
	o.mul(count, t.size)
	return begin, end, o.check("%d elements of %d bytes", count, t.size)
}

// Elements returns how many basic elements the first n bytes of data have, and false if they end
// within one.
func (t *Type) Elements(n int64) (int64, bool) {
	if t.size == 0 {
		return 0, n == 0
	}
	whole, rest := n/t.size, n%t.size
	elements, ok := whole*t.count, true
	switch {
	case rest == 0:
	case t.made.Combiner == Named:
		ok = false
	default:
		var more int64
		more, ok = t.made.elements(rest)
		elements += more
	}
	return elements, ok
}

// elements is Elements of less than one element.
func (c *Contents) elements(n int64) (elements int64, whole bool) {
	if c.Combiner != CombinerStruct {
		return c.Types[0].Elements(n)
	}
	for i, part := range c.Types {
		here := min(n, c.Integers[1+i]*part.size)
		more, whole := part.Elements(here)
		if elements += more; !whole {
			return elements, false
		}
		n -= here
	}
	return elements, true
}

// overflow notes whether a number does not fit into 64 bits.
type overflow bool

func (o *overflow) mul(a, b int64) int64 {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if high != 0 || low > math.MaxInt64 {
		*o = true
		return 0
	}
	return a * b
}

func (o *overflow) add(a, b int64) int64 {
	sum := a + b
	if (sum > a) != (b > 0) && b != 0 {
		*o = true
		return 0
	}
	return sum
}

func (o *overflow) check(format string, args ...any) error {
	if *o {
		return fmt.Errorf("%w: "+format+": that is more than 64 bits can address", append([]any{ErrArgument}, args...)...)
	}
	return nil
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}
