package mpi

import (
	"cmp"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// blockLayout returns the layout of the blocks in a buffer, with counts[i] elements for rank i at displs[i]. If displs
// is nil, the blocks follow each other. written must be set if the call writes the blocks, which must not overlap in
// that case.
func (x *collectiveCall) blockLayout(name string, buf []byte, counts, displs []int, written bool) coll.Layout {
	ranks, have, size := x.devOp.Call.Ranks, x.elementCount(buf), x.elem.size
	x.devOp.Call.Vector = true
	if len(counts) != ranks {
		x.recordError(ErrCount, "there are %d counts of %s for %d ranks", len(counts), name, ranks)
		return coll.Layout{}
	}
	if displs != nil && len(displs) != ranks {
		x.recordError(ErrArg, "there are %d displacements in %s for %d ranks", len(displs), name, ranks)
		return coll.Layout{}
	}
	layout := coll.Layout{Sizes: x.allocInts(ranks), Offsets: x.allocInts(ranks)}
	end, ascending := 0, true
	for i, n := range counts {
		at := end
		if displs != nil {
			at = displs[i]
		}
		switch {
		case n < 0:
			x.recordError(ErrCount, "the block of rank %d in %s has %d elements", i, name, n)
		case at < 0:
			x.recordError(ErrArg, "the block of rank %d in %s is at %d", i, name, at)
		case n == 0: // any offset is valid
			continue
		case n > have-at:
			x.recordError(ErrCount, "the block of rank %d in %s, %d elements at %d, is not within it: it has %d", i, name, n,
				at, have)
		}
		if x.err != nil {
			return coll.Layout{}
		}
		layout.Sizes[i], layout.Offsets[i] = n*size, at*size
		ascending = ascending && at >= end
		end = at + n
	}
	if written && !ascending {
		x.checkOverlap(name, &layout)
	}
	return layout
}

// checkOverlap records an error of the call if any of its blocks overlap.
func (x *collectiveCall) checkOverlap(name string, layout *coll.Layout) {
	order := x.allocInts(len(layout.Sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(layout.Offsets[a], layout.Offsets[b]) })
	last := -1
	for _, i := range order {
		if layout.Sizes[i] == 0 {
			continue
		}
		if last >= 0 && layout.Offsets[i] < layout.Offsets[last]+layout.Sizes[last] {
			x.recordError(ErrArg, "the blocks of ranks %d and %d in %s overlap", last, i, name)
			return
		}
		last = i
	}
}

// allocInts returns n integers, all of them 0.
func (x *collectiveCall) allocInts(n int) []int {
	if cap(x.ints)-len(x.ints) < n {
		x.ints = make([]int, 0, 5*n) // enough for Alltoallv; slices returned earlier remain valid
	}
	at := len(x.ints)
	x.ints = x.ints[:at+n]
	clear(x.ints[at:])
	return x.ints[at : at+n : at+n]
}
