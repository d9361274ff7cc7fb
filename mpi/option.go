package mpi

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Option selects how a collective is executed. All ranks must pass the same options to a call.
type Option struct {
	algorithm string
	segment   int
	segmented bool
}

// WithAlgorithm selects the algorithm, such as "binomial" or "ring". Without this option, or with "", the device
// chooses. If the name is unknown, the error lists the valid names for the collective.
func WithAlgorithm(algorithm string) Option { return Option{algorithm: algorithm} }

// WithSegment sets the length of a message, in bytes, for algorithms that divide long vectors. It must be a multiple of
// the element size.
func WithSegment(bytes int) Option { return Option{segment: bytes, segmented: true} }

// applyOptions applies the options of a call. If there are several of the same kind, the last one applies.
func (x *collectiveCall) applyOptions(opts []Option) {
	operation := &x.devOp
	for _, option := range opts {
		switch {
		case !option.segmented:
			operation.Algorithm = option.algorithm
		case option.segment <= 0 || option.segment%x.elem.size != 0:
			x.recordError(ErrArg, "a segment of %d bytes is not a whole number of elements of %d bytes, one or more",
				option.segment, x.elem.size)
		default:
			operation.Call.Segment = option.segment
		}
	}
	var named *coll.Algorithm
	if operation.Algorithm != "" {
		var err error
		if named, err = coll.Find(operation.Call.Collective, operation.Algorithm); err != nil {
			x.recordError(ErrArg, "%w", err)
			return
		}
	}
	if operation.Call.Segment == 0 {
		return
	}
	all := []*coll.Algorithm{named}
	if named == nil {
		all = coll.Algorithms(operation.Call.Collective)
	}
	if !slices.ContainsFunc(all, func(a *coll.Algorithm) bool { return a.Segmented }) {
		x.recordError(ErrArg, "%v by %s has no segments", operation.Call.Collective, all[0].Name)
	}
}
