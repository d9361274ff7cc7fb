package tune

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/transport/shm"
)

// group is what one cluster measures: so many ranks over a transport.
type group struct {
	transport string
	ranks     int
	cells     []*cell
	// took is how long it took last; 0 is unknown.
	took time.Duration
}

// cell is a call to be measured.
type cell struct {
	of    coll.Collective
	bytes int
	by    choice.Choice
	// segment is by.Segment, or what it comes to for choice.Auto.
	segment int
	// iterations are of how many calls a median is taken; 0 is not known yet.
	iterations int
	// micros are the medians of the rounds.
	micros []float64
	failed bool
}

// segments are tried of algorithms that cut the data, in bytes; 0 is the data as it is,
// which is tried up to the least of them.
var segments = []int{8 << 10, 64 << 10, 512 << 10}

// lengths gives those at which a collective of so many ranks is measured, in bytes of a
// vector or block.
func (o *Options) lengths(of coll.Collective, ranks int) (list []int) {
	if of == coll.Barrier {
		return []int{0}
	}
	longest, by := o.MaxBytes, growth
	switch of {
	case coll.Gather, coll.Scatter, coll.Allgather, coll.Alltoall, coll.ReduceScatter:
		longest /= ranks
	}
	if o.Quick {
		by = quickGrowth
	}
	list = []int{minBytes}
	for n := minBytes * by; n <= longest; n *= by {
		list = append(list, n)
	}
	return list
}

// plan lists what is measured of a collective: choices of one length together, so that
// what else the machine does falls on all alike.
func (o *Options) plan(of coll.Collective, ranks int, transport string, link collectives.Link) (cells []*cell) {
	for _, n := range o.lengths(of, ranks) {
		for _, a := range coll.Algorithms(of) {
			// FPGAs there are none, so the trees of upstream's compiler are not tried.
			call := coll.Call{Collective: of, Ranks: ranks, Bytes: n, Elem: elemLen, Flows: true}
			if sharesMemory[transport] {
				call.Shared = shm.SharedHalf
			}
			if a.Fits(call) != nil {
				continue
			}
			for _, by := range variants(a, &call, link) {
				c := &cell{of: of, bytes: n, by: by, segment: by.Segment}
				if by.Segment == choice.Auto {
					c.segment = coll.PipelineSegment(ranks, n, elemLen, link.Alpha, link.Beta)
				}
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// variants are the ways in which an algorithm can cut the data.
func variants(a *coll.Algorithm, call *coll.Call, link collectives.Link) (list []choice.Choice) {
	if !a.Segmented || call.Bytes <= segments[0] {
		list = append(list, choice.Choice{Algorithm: a.Name})
	}
	if !a.Segmented {
		return list
	}
	if a.Name == autoFor && coll.PipelineSegment(call.Ranks, call.Bytes, elemLen, link.Alpha, link.Beta) < call.Bytes {
		list = append(list, choice.Choice{Algorithm: a.Name, Segment: choice.Auto})
	}
	for _, s := range segments {
		if s < call.Bytes {
			list = append(list, choice.Choice{Algorithm: a.Name, Segment: s})
		}
	}
	return list
}

// autoFor is the algorithm that can go by choice.Auto.
const autoFor = "chain"

// String is what a cell is called in messages.
func (c *cell) String() string {
	name := choice.Name(c.of)
	if c.of == coll.Barrier {
		return fmt.Sprintf("%s by %v", name, c.by)
	}
	return fmt.Sprintf("%s of %v by %v", name, bytesize.Size(c.bytes), c.by)
}
