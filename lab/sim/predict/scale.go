package predict

import (
	"context"
	"errors"
	"slices"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/lab/sim/network"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// MostLinear is for how many ranks algorithms are predicted that are not Logarithmic: the model has
// events for each step.
const MostLinear = 4096

// Point is what a call is predicted to take.
type Point struct {
	Collective  collectives.Collective `json:"collective"`
	Ranks       int                    `json:"ranks"`
	Bytes       int                    `json:"bytes"`
	By          choice.Choice          `json:"by"`
	Nanoseconds float64                `json:"ns"`
	Events      uint64                 `json:"events"`
}

// Request is what Scale is to predict.
type Request struct {
	Cluster     *Description
	Fits        []*Fit
	Collectives []coll.Collective
	Ranks       []int
	Bytes       []int
}

// Scale predicts the calls of all algorithms, in the order of collectives, bytes, algorithms and ranks. An
// algorithm that cannot carry out a call has no Point, nor one that is not logarithmic if there are
// more than MostLinear ranks. The error is a *network.ClusterError or ctx's.
func Scale(ctx context.Context, q Request) (points []Point, err error) {
	for _, of := range q.Collectives {
		lengths := q.Bytes
		if of == coll.Barrier {
			lengths = []int{0}
		}
		for _, n := range lengths {
			for _, a := range coll.Algorithms(of) {
				for _, ranks := range q.Ranks {
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					p, ok, err := q.point(a, ranks, n)
					if err != nil {
						return nil, err
					}
					if ok {
						points = append(points, p)
					}
				}
			}
		}
	}
	return points, nil
}

// point predicts a call by an algorithm, in segments of the length that its pipeline is fastest with.
func (q *Request) point(a *coll.Algorithm, ranks, n int) (Point, bool, error) {
	c := q.Cluster.Cluster(ranks, q.Fits)
	of := a.Collective
	if ranks > MostLinear && !Logarithmic(a) {
		return Point{}, false, nil
	}
	by := choice.Choice{Algorithm: a.Name}
	call := coll.Call{Collective: of, Bytes: n, Elem: elem, Flows: true}
	switch {
	case q.Cluster.FPGA():
		if call = fpgaCall(of, ranks, n); !slices.Contains(fpgaAlgorithms[:], a.Name) {
			return Point{}, false, nil
		}
	case a.Segmented:
		l := linkOf(&c)
		if s := coll.PipelineSegment(ranks, n, elem, l.Alpha, l.Beta); s < n {
			by.Segment, call.Segment = s, s
		}
	}
	r, err := c.Run(a, call)
	if _, ok := errors.AsType[*coll.CallError](err); ok {
		return Point{}, false, nil
	}
	return Point{collectives.Collective(of), ranks, n, by, r.Nanoseconds, r.Events}, err == nil, err
}

// linkOf returns what a message takes between most ranks of a cluster, as tables have it.
func linkOf(c *network.Cluster) choice.Link {
	l := &c.Network
	if c.Shared() {
		l = &c.Memory
	}
	return choice.Link{Alpha: l.Latency + 2*l.Overhead, Beta: max(l.GapByte, l.OverheadByte)}
}

// Logarithmic reports whether the ranks of a call by an algorithm have steps in proportion to the
// logarithm of their number, on average. Those of one that cuts its data depend on more.
func Logarithmic(a *coll.Algorithm) bool {
	if a.Segmented {
		return false
	}
	const most = 8 * 16
	for _, rank := range [...]int{1, network.MaxRanks / 2, network.MaxRanks - 1} {
		var s coll.Schedule
		if a.Make(&s, &coll.Call{Collective: a.Collective, Rank: rank, Ranks: network.MaxRanks, Bytes: network.MaxRanks * elem, Elem: elem, Flows: true}) != nil {
			return false
		}
		for n := 0; ; n++ {
			if _, ok := s.Next(); !ok {
				break
			}
			if n == most {
				return false
			}
		}
	}
	return true
}

// Powers returns the powers of two from 2 to n, and n.
func Powers(n int) (list []int) {
	for i := 2; i < n; i *= 2 {
		list = append(list, i)
	}
	return append(list, n)
}
