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

// MaxLinearRanks is the maximum number of ranks for algorithms that are not Logarithmic, since the model simulates every
// step.
const MaxLinearRanks = 4096

// Point is the predicted time of a call with an algorithm.
type Point struct {
	Collective  collectives.Collective `json:"collective"`
	Ranks       int                    `json:"ranks"`
	Bytes       int                    `json:"bytes"`
	By          choice.Choice          `json:"by"`
	Nanoseconds float64                `json:"ns"`
	Events      uint64                 `json:"events"`
}

// Request selects the calls that Scale predicts.
type Request struct {
	Cluster     *Description
	Fits        []*Fit
	Collectives []coll.Collective
	Ranks       []int
	Bytes       []int
}

// Scale predicts calls with all algorithms. Points are ordered by collective, bytes, algorithm and ranks. Scale skips
// algorithms that do not support a call and, with more than MaxLinearRanks ranks, algorithms that are not Logarithmic. The
// error is a *network.ClusterError or the error of ctx.
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

// point predicts a call with an algorithm. The length of its segments is the one at which a pipeline is fastest.
func (q *Request) point(a *coll.Algorithm, ranks, n int) (Point, bool, error) {
	c := q.Cluster.Cluster(ranks, q.Fits)
	of := a.Collective
	if ranks > MaxLinearRanks && !Logarithmic(a) {
		return Point{}, false, nil
	}
	by := choice.Choice{Algorithm: a.Name}
	call := coll.Call{Collective: of, Bytes: n, Elem: elem, Flows: true}
	switch {
	case q.Cluster.HasFPGAs():
		if call = fpgaCall(of, ranks, n); !slices.Contains(fpgaAlgorithms[:], a.Name) {
			return Point{}, false, nil
		}
	case a.Segmented:
		l := mainLink(&c)
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

// mainLink returns the link that connects most ranks of a cluster, in the form used in tables.
func mainLink(c *network.Cluster) choice.Link {
	l := &c.Network
	if c.SharesMemory() {
		l = &c.Memory
	}
	return choice.Link{Alpha: l.Latency + 2*l.Overhead, Beta: max(l.GapByte, l.OverheadByte)}
}

// Logarithmic reports whether the average number of steps of a rank grows with the logarithm of the number of ranks. It
// returns false for algorithms that segment their data, as their number of steps also depends on other things.
func Logarithmic(a *coll.Algorithm) bool {
	if a.Segmented {
		return false
	}
	const most = 8 * 16
	for _, rank := range [...]int{1, network.MaxRanks / 2, network.MaxRanks - 1} {
		var s coll.Schedule
		if a.Make(&s, &coll.Call{Collective: a.Collective, Rank: rank, Ranks: network.MaxRanks,
			Bytes: network.MaxRanks * elem, Elem: elem, Flows: true}) != nil {
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

// PowersOfTwo returns the powers of two from 2 to n, followed by n if it is not one of them.
func PowersOfTwo(n int) (list []int) {
	for i := 2; i < n; i *= 2 {
		list = append(list, i)
	}
	return append(list, n)
}
