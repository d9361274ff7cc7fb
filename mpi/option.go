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

// By selects the algorithm, such as "binomial" or "ring". Without By, or with "", the device chooses. If the
// name is unknown, the error lists the valid names for the collective.
func By(algorithm string) Option { return Option{algorithm: algorithm} }

// Segment sets the length of a message, in bytes, for algorithms that divide long vectors. It must be a multiple of the
// element size.
func Segment(bytes int) Option { return Option{segment: bytes, segmented: true} }

// options applies the options of a call. The last option of each kind wins.
func (x *collectiveCall) options(opts []Option) {
	d := &x.dev
	for _, o := range opts {
		switch {
		case !o.segmented:
			d.Algorithm = o.algorithm
		case o.segment <= 0 || o.segment%x.elem.size != 0:
			x.refuse(ErrArg, "a segment of %d bytes is not a whole number of elements of %d bytes, one or more",
				o.segment, x.elem.size)
		default:
			d.Call.Segment = o.segment
		}
	}
	var named *coll.Algorithm
	if d.Algorithm != "" {
		var err error
		if named, err = coll.Find(d.Call.Collective, d.Algorithm); err != nil {
			x.refuse(ErrArg, "%w", err)
			return
		}
	}
	if d.Call.Segment == 0 {
		return
	}
	all := []*coll.Algorithm{named}
	if named == nil {
		all = coll.Algorithms(d.Call.Collective)
	}
	if !slices.ContainsFunc(all, func(a *coll.Algorithm) bool { return a.Segmented }) {
		x.refuse(ErrArg, "%v by %s has no segments", d.Call.Collective, all[0].Name)
	}
}
