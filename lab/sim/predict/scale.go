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

// MaxLinearRanks is the maximum number of ranks for algorithms that are not Logarithmic, since the model simulates
// every step.
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
// algorithms that do not support a call and, with more than MaxLinearRanks ranks, algorithms that are not Logarithmic.
// The error is a *network.ClusterError or the error of ctx.
func Scale(ctx context.Context, request Request) (points []Point, err error) {
	for _, of := range request.Collectives {
		lengths := request.Bytes
		if of == coll.Barrier {
			lengths = []int{0}
		}
		for _, n := range lengths {
			for _, a := range coll.Algorithms(of) {
				for _, ranks := range request.Ranks {
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					p, ok, err := request.point(a, ranks, n)
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

// point predicts a call with an algorithm, with the segment length at which a pipeline is fastest.
func (q *Request) point(algorithm *coll.Algorithm, ranks, n int) (Point, bool, error) {
	cluster := q.Cluster.Cluster(ranks, q.Fits)
	of := algorithm.Collective
	if ranks > MaxLinearRanks && !Logarithmic(algorithm) {
		return Point{}, false, nil
	}
	by := choice.Choice{Algorithm: algorithm.Name}
	call := coll.Call{Collective: of, Bytes: n, Elem: elem, Flows: true}
	switch {
	case q.Cluster.HasFPGAs():
		if call = fpgaCall(of, ranks, n); !slices.Contains(fpgaAlgorithms[:], algorithm.Name) {
			return Point{}, false, nil
		}
	case algorithm.Segmented:
		l := mainLink(&cluster)
		if s := coll.PipelineSegment(ranks, n, elem, l.Alpha, l.Beta); s < n {
			by.Segment, call.Segment = s, s
		}
	}
	r, err := cluster.Run(algorithm, call)
	if _, ok := errors.AsType[*coll.CallError](err); ok {
		return Point{}, false, nil
	}
	return Point{collectives.Collective(of), ranks, n, by, r.Nanoseconds, r.Events}, err == nil, err
}

// mainLink returns the link that connects most ranks of a cluster, in the form in which tables describe links.
func mainLink(c *network.Cluster) choice.Link {
	l := &c.Network
	if c.SharesMemory() {
		l = &c.Memory
	}
	return choice.Link{Alpha: l.Latency + 2*l.Overhead, Beta: max(l.GapByte, l.OverheadByte)}
}

// Logarithmic reports whether the average number of steps of a rank grows with the logarithm of the number of ranks. It
// returns false for algorithms that segment their data, because their number of steps also depends on the number of
// segments.
func Logarithmic(algorithm *coll.Algorithm) bool {
	if algorithm.Segmented {
		return false
	}
	const most = 8 * 16
	for _, rank := range [...]int{1, network.MaxRanks / 2, network.MaxRanks - 1} {
		var schedule coll.Schedule
		if algorithm.Make(&schedule, &coll.Call{Collective: algorithm.Collective, Rank: rank, Ranks: network.MaxRanks,
			Bytes: network.MaxRanks * elem, Elem: elem, Flows: true}) != nil {
			return false
		}
		for n := 0; ; n++ {
			if _, ok := schedule.Next(); !ok {
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
