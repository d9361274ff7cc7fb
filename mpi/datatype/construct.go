package datatype

import (
	"fmt"
	"slices"
)

// piece consists of count elements of one type, at a displacement.
type piece struct {
	count, displ int64
	elem         *Type
}

// buildType returns a type that consists of the given pieces, in the order of their data in a message. If padded is
// set, its extent is a multiple of its alignment, like that of a C struct.
func buildType(made Contents, pieces []piece, padded bool) (*Type, error) {
	t := &Type{align: 1, contents: made}
	var o overflow
	layouts := make([]layout, 0, len(pieces))
	first := true
	for _, p := range pieces {
		if p.count < 0 {
			return nil, fmt.Errorf("%w: a count of %d", ErrArgument, p.count)
		}
		if p.count == 0 {
			continue
		}
		if err := t.includePiece(&p, &o, first); err != nil {
			return nil, err
		}
		first = false
		layouts = append(layouts, p.elem.layout.repeat(p.count, p.elem.Extent()).shifted(p.displ))
	}
	if padded && !t.ubSet {
		if rest := (t.ub - t.lb) % t.align; rest != 0 {
			t.ub = o.add(t.ub, t.align-rest)
		}
	}
	if err := o.check("a type of %d pieces", len(pieces)); err != nil {
		return nil, err
	}
	t.layout = joinLayouts(layouts)
	t.originLayout = []layout{t.layout.shifted(-t.layout.offset)}
	return t, nil
}

// includePiece extends the bounds and counts of a type to include a piece.
func (t *Type) includePiece(p *piece, o *overflow, first bool) error {
	of := p.elem
	last := o.mul(p.count-1, of.Extent())
	lb, ub := o.add(p.displ, o.add(of.lb, min(last, 0))), o.add(p.displ, o.add(of.ub, max(last, 0)))
	trueLB, trueUB := o.add(p.displ, o.add(of.trueLB, min(last, 0))), o.add(p.displ, o.add(of.trueUB, max(last, 0)))
	if err := o.check("%d elements at %d", p.count, p.displ); err != nil {
		return err
	}
	t.lb, t.lbSet = combineBound(t.lb, lb, t.lbSet, of.lbSet, first, min64)
	t.ub, t.ubSet = combineBound(t.ub, ub, t.ubSet, of.ubSet, first, max64)
	if of.size > 0 {
		if t.size == 0 {
			t.trueLB, t.trueUB, t.basic = trueLB, trueUB, of.basic
		}
		t.trueLB, t.trueUB = min(t.trueLB, trueLB), max(t.trueUB, trueUB)
		if t.basic != of.basic {
			t.basic = 0
		}
	}
	t.align = max(t.align, of.align)
	t.size, t.count = o.add(t.size, o.mul(p.count, of.size)), o.add(t.count, o.mul(p.count, of.count))
	return nil
}

func min64(a, b int64) int64 { return min(a, b) }
func max64(a, b int64) int64 { return max(a, b) }

// combineBound combines the bounds of two parts of a type. A bound that was set explicitly overrides one that was not.
func combineBound(have, next int64, haveSet, nextSet, first bool, combine func(a, b int64) int64) (int64, bool) {
	switch {
	case first || nextSet && !haveSet:
		return next, nextSet
	case haveSet && !nextSet:
		return have, true
	}
	return combine(have, next), haveSet
}

// Dup returns a copy of a type.
func Dup(of *Type) *Type {
	t := *of
	t.name, t.contents, t.isLarge = "", Contents{Combiner: CombinerDup, Types: []*Type{of}}, false
	return &t
}

// Contiguous returns the type of count consecutive elements.
func Contiguous(count int64, of *Type) (*Type, error) {
	return buildType(Contents{CombinerContiguous, []int64{count}, nil, []*Type{of}}, []piece{{count, 0, of}}, false)
}

// Vector returns the type of count blocks. Each block has length elements, and begins stride elements after the
// previous one.
func Vector(count, length, stride int64, of *Type) (*Type, error) {
	var o overflow
	bytes := o.mul(stride, of.Extent())
	if err := o.check("a stride of %d elements", stride); err != nil {
		return nil, err
	}
	return vector(Contents{CombinerVector, []int64{count, length, stride}, nil, []*Type{of}}, count, length, bytes, of)
}

// Hvector is like Vector, but the stride is in bytes.
func Hvector(count, length, stride int64, of *Type) (*Type, error) {
	return vector(Contents{CombinerHvector, []int64{count, length}, []int64{stride}, []*Type{of}}, count, length,
		stride, of)
}

// vector builds a type of count blocks of length elements each, whose beginnings are stride bytes apart.
func vector(made Contents, count, length, stride int64, of *Type) (*Type, error) {
	block, err := buildType(made, []piece{{length, 0, of}}, false)
	if err != nil {
		return nil, err
	}
	if count > 0 && length > 0 { // only then does the stride matter
		block = resized(block, block.lb, stride)
		block.lbSet, block.ubSet = of.lbSet, of.ubSet
	}
	t, err := buildType(made, []piece{{count, 0, block}}, false)
	if err != nil || count <= 0 || length <= 0 {
		return t, err
	}
	// The type ends with the elements of its last block, without that block's stride.
	var o overflow
	last := o.mul(count-1, stride)
	bytes := o.mul(length-1, of.Extent())
	t.lb = o.add(o.add(of.lb, min(bytes, 0)), min(last, 0))
	t.ub = o.add(o.add(of.ub, max(bytes, 0)), max(last, 0))
	return t, o.check("%d blocks at a distance of %d bytes", count, stride)
}

// Indexed returns the type of blocks of lengths[i] elements. Block i begins displs[i] elements from the
// beginning.
func Indexed(lengths, displs []int64, of *Type) (*Type, error) {
	made := Contents{CombinerIndexed, slices.Concat([]int64{int64(len(lengths))}, lengths, displs), nil, []*Type{of}}
	return indexed(made, lengths, displs, of.Extent(), of)
}

// Hindexed is Indexed with displacements in bytes.
func Hindexed(lengths, displs []int64, of *Type) (*Type, error) {
	made := Contents{CombinerHindexed, slices.Concat([]int64{int64(len(lengths))}, lengths), slices.Clone(displs),
		[]*Type{of}}
	return indexed(made, lengths, displs, 1, of)
}

// IndexedBlock is like Indexed, for blocks that all have the same length.
func IndexedBlock(length int64, displs []int64, of *Type) (*Type, error) {
	made := Contents{CombinerIndexedBlock, slices.Concat([]int64{int64(len(displs)), length}, displs), nil, []*Type{of}}
	return indexed(made, slices.Repeat([]int64{length}, len(displs)), displs, of.Extent(), of)
}

// HindexedBlock is IndexedBlock with displacements in bytes.
func HindexedBlock(length int64, displs []int64, of *Type) (*Type, error) {
	made := Contents{CombinerHindexedBlock, []int64{int64(len(displs)), length}, slices.Clone(displs), []*Type{of}}
	return indexed(made, slices.Repeat([]int64{length}, len(displs)), displs, 1, of)
}

// indexed builds a type of blocks with the given lengths in elements, and displacements in units of unit bytes.
func indexed(made Contents, lengths, displs []int64, unit int64, of *Type) (*Type, error) {
	if len(lengths) != len(displs) {
		return nil, fmt.Errorf("%w: %d lengths of blocks and %d displacements", ErrArgument, len(lengths), len(displs))
	}
	var o overflow
	pieces := make([]piece, len(lengths))
	for i := range lengths {
		pieces[i] = piece{lengths[i], o.mul(displs[i], unit), of}
	}
	if err := o.check("displacements in units of %d bytes", unit); err != nil {
		return nil, err
	}
	return buildType(made, pieces, false)
}

// Struct returns the type that consists, for each i, of lengths[i] elements of types[i] at displs[i] bytes from
// the beginning. Its extent is padded to its alignment, as by a C compiler.
func Struct(lengths, displs []int64, types []*Type) (*Type, error) {
	if len(lengths) != len(displs) || len(lengths) != len(types) {
		return nil, fmt.Errorf("%w: %d lengths of blocks, %d displacements, %d types", ErrArgument, len(lengths),
			len(displs), len(types))
	}
	pieces := make([]piece, len(lengths))
	for i := range lengths {
		pieces[i] = piece{lengths[i], displs[i], types[i]}
	}
	made := Contents{CombinerStruct, slices.Concat([]int64{int64(len(lengths))}, lengths), slices.Clone(displs),
		slices.Clone(types)}
	return buildType(made, pieces, true)
}

// Resized returns a type with a different lower bound and extent.
func Resized(of *Type, lb, extent int64) (*Type, error) {
	var o overflow
	o.add(lb, extent)
	if err := o.check("a lower bound of %d and an extent of %d bytes", lb, extent); err != nil {
		return nil, err
	}
	return resized(of, lb, extent), nil
}

// resized returns a copy of a type with other bounds, which shares its layout.
func resized(of *Type, lb, extent int64) *Type {
	t := *of
	t.name, t.contents, t.isLarge = "", Contents{CombinerResized, nil, []int64{lb, extent}, []*Type{of}}, false
	t.lb, t.ub, t.lbSet, t.ubSet = lb, lb+extent, true, true
	return &t
}

// Pair returns a basic datatype that consists of a value of the given number of bytes and an int32, laid out as
// in C; examples are MPI_DOUBLE_INT and similar types. Each element takes size bytes.
func Pair(name string, value, size int64) (*Type, error) {
	index := max(value, 4)
	both, err := Struct([]int64{1, 1}, []int64{0, index}, []*Type{Basic(name, value, value, 0), Basic(name, 4, 4, 0)})
	if err != nil {
		return nil, err
	}
	t := resized(both, 0, size)
	t.name, t.contents, t.ubSet, t.lbSet = name, Contents{}, false, false
	return t, nil
}
