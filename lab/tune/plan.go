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

// group is the set of measurements made by one cluster, with one number of ranks and over one transport.
type group struct {
	transport string
	ranks     int
	cells     []*cell
	// took is the duration of the last round, or 0 before the first one.
	took time.Duration
}

// cell is a call to be measured with one choice of algorithm and segment size.
type cell struct {
	collective coll.Collective
	bytes      int
	by         choice.Choice
	// segment is the segment size in use: by.Segment, or the size to which choice.Auto resolves.
	segment int
	// iterations is the number of calls whose median is taken, or 0 if it is not yet known.
	iterations int
	// micros lists the medians in µs, one for each round.
	micros []float64
	failed bool
}

// segments lists the segment sizes in bytes to try for algorithms that can segment their data. For data up to the
// smallest of these sizes, the algorithms are also tried without segments.
var segments = []int{8 << 10, 64 << 10, 512 << 10}

// lengths returns the lengths in bytes of vectors or blocks with which a collective is measured.
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

// planCells returns the measurements of a collective. All choices for one length follow each other, so that other load
// on the machine affects them alike.
func (o *Options) planCells(of coll.Collective, ranks int, transport string, link collectives.Link) (cells []*cell) {
	for _, n := range o.lengths(of, ranks) {
		for _, algorithm := range coll.Algorithms(of) {
			// Without FPGAs, the trees of upstream's compiler need not be tried.
			call := coll.Call{Collective: of, Ranks: ranks, Bytes: n, Elem: elemLen, Flows: true}
			if sharesMemory[transport] {
				call.Shared = shm.SharedHalf
			}
			if algorithm.CheckSupport(call) != nil {
				continue
			}
			for _, by := range segmentVariants(algorithm, &call, link) {
				c := &cell{collective: of, bytes: n, by: by, segment: by.Segment}
				if by.Segment == choice.AutoSegment {
					c.segment = coll.PipelineSegment(ranks, n, elemLen, link.Alpha, link.Beta)
				}
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// segmentVariants returns the algorithm with each segment size to try.
func segmentVariants(algorithm *coll.Algorithm, call *coll.Call, link collectives.Link) (list []choice.Choice) {
	if !algorithm.Segmented || call.Bytes <= segments[0] {
		list = append(list, choice.Choice{Algorithm: algorithm.Name})
	}
	if !algorithm.Segmented {
		return list
	}
	if algorithm.Name == autoFor && coll.PipelineSegment(call.Ranks, call.Bytes, elemLen, link.Alpha,
		link.Beta) < call.Bytes {
		list = append(list, choice.Choice{Algorithm: algorithm.Name, Segment: choice.AutoSegment})
	}
	for _, s := range segments {
		if s < call.Bytes {
			list = append(list, choice.Choice{Algorithm: algorithm.Name, Segment: s})
		}
	}
	return list
}

// autoFor is the only algorithm that supports choice.Auto.
const autoFor = "chain"

// String returns the name of the cell for messages.
func (c *cell) String() string {
	name := choice.CollectiveName(c.collective)
	if c.collective == coll.Barrier {
		return fmt.Sprintf("%s by %v", name, c.by)
	}
	return fmt.Sprintf("%s of %v by %v", name, bytesize.Size(c.bytes), c.by)
}
