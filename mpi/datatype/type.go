package datatype

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// ErrArgument is the error that constructors return for invalid arguments, according to errors.Is.
var ErrArgument = errors.New("invalid datatype")

// Type is a datatype. Each element has size bytes of data, all of them within its true extent. Consecutive
// elements of a message are one extent apart.
type Type struct {
	layout layout
	// originLayout holds the layout as it is at offset 0. repeatWith needs it to repeat this type without an
	// allocation.
	originLayout []layout
	size         int64
	// lb and ub are the bounds. Either they were set explicitly by Resized, on this type or a component, or they were
	// computed from the elements.
	lb, ub       int64
	lbSet, ubSet bool
	trueLB       int64
	trueUB       int64
	align        int64
	// count is the number of basic elements. If all basic elements have the same type, basic is that type; otherwise it
	// is 0.
	count int64
	basic op.Type
	name  string
	// contents records how the type was constructed. isLarge records whether MarkLarge was called.
	contents Contents
	isLarge  bool
}

// Contents describes how a type was constructed (MPI_Type_get_contents): the integers, addresses and types passed to
// its constructor, in the standard's order.
type Contents struct {
	Combiner  Combiner
	Integers  []int64
	Addresses []int64
	Types     []*Type
}

// Combiner identifies the constructor of a type.
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

// Basic returns a type that consists of one element of a programming language's basic type. The element has size bytes
// and is aligned to align bytes. element is its type in reductions, or 0 if it cannot be reduced.
func Basic(name string, size, align int64, element op.Type) *Type {
	return &Type{
		layout: blockLayout(size), size: size, ub: size, trueUB: size, align: align, count: 1, basic: element, name: name,
	}
}

// Name returns the name of a basic type, or "" for any other type.
func (t *Type) Name() string { return t.name }

// Size returns the number of data bytes per element.
func (t *Type) Size() int64 { return t.size }

// Bounds returns the lower bound and the extent.
func (t *Type) Bounds() (lb, extent int64) { return t.lb, t.ub - t.lb }

// Extent returns the distance between consecutive elements in a message.
func (t *Type) Extent() int64 { return t.ub - t.lb }

// TrueBounds returns the lower bound and the extent of the data, without regard to explicitly set bounds.
func (t *Type) TrueBounds() (lb, extent int64) { return t.trueLB, t.trueUB - t.trueLB }

// Contents returns how the type was constructed. The caller must not modify it.
func (t *Type) Contents() Contents { return t.contents }

// MarkLarge records that the type was constructed by a call with large counts, that is, by a C function whose
// name ends in _c. It must be called before the type is used.
func (t *Type) MarkLarge() { t.isLarge = true }

// IsLarge reports whether the type was constructed by a call with large counts.
func (t *Type) IsLarge() bool { return t.isLarge }

// Element returns the type that all basic elements have in reductions. It is 0 if their types differ or cannot be
// reduced.
func (t *Type) Element() op.Type { return t.basic }

// Contiguous reports whether count elements form one block of memory, and returns the offset of that block.
func (t *Type) Contiguous(count int64) (offset int64, ok bool) {
	all := t.layout.repeatWith(count, t.Extent(), t.originLayout)
	return all.contiguous()
}

// IsDense reports whether any number of elements is contiguous, without gaps, starting at displacement 0.
func (t *Type) IsDense() bool {
	l := &t.layout
	return l.iterations == 1 && l.offset == 0 && l.block > 0 && l.block == t.ub-t.lb
}

// Span returns the range of memory that count elements use, relative to the buffer. begin is the first byte of
// data, and end is just after the last byte.
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

// Elements returns the number of basic elements in the first n bytes of data. It returns false if these bytes
// end in the middle of an element.
func (t *Type) Elements(n int64) (int64, bool) {
	if t.size == 0 {
		return 0, n == 0
	}
	whole, rest := n/t.size, n%t.size
	elements, ok := whole*t.count, true
	switch {
	case rest == 0:
	case t.contents.Combiner == Named:
		ok = false
	default:
		var more int64
		more, ok = t.contents.partialElements(rest)
		elements += more
	}
	return elements, ok
}

// partialElements does the work of Elements for less than one whole element.
func (c *Contents) partialElements(n int64) (elements int64, whole bool) {
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

// overflow records whether a number has exceeded 64 bits.
type overflow bool

// mul returns a·b. On overflow, it returns 0 and sets o, so that a formula is checked once at its end.
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
		return fmt.Errorf("%w: "+format+": that is more than 64 bits can address",
			append([]any{ErrArgument}, args...)...)
	}
	return nil
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}
