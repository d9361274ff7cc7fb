package predict

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/lab/sim/network"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// elem is the size, in bytes, of an element of the data.
const elem = 4

// Limits of the calls to which the model of a class is fitted: the number of ranks, and the number of bytes.
const (
	fitRanks = 4
	fitBytes = 512 << 10
)

// Case holds a collective call, with all choices that were measured for it. Times are in nanoseconds.
type Case struct {
	Collective collectives.Collective `json:"collective"`
	Ranks      int                    `json:"ranks"`
	Bytes      int                    `json:"bytes"`
	// By lists the choices, Measured the medians of their times, and Predicted the times in the model.
	By        []choice.Choice `json:"by"`
	Measured  []float64       `json:"measured_ns"`
	Predicted []float64       `json:"predicted_ns"`
}

// Fit holds the model as fitted to the measurements of a class.
type Fit struct {
	Class choice.Class
	// Cores is the number of cores of the measured machine.
	Cores      int
	Parameters network.Parameters
	// Deviation is the mean of |ln(predicted / measured)| over the calls to which the model is fitted.
	Deviation float64
	// Cases lists all measured cases. Fitted is the largest number of ranks among the cases used for the fit.
	Cases       []Case
	FittedRanks int
}

// ErrNotMeasured is returned for a table that contains no measurements.
var ErrNotMeasured = errors.New("the table has no measurements with their machine: have zrlbench tune write one")

// Fits fits the model to each class in a table. The error is ErrNotMeasured or the error of ctx.
func Fits(ctx context.Context, d *collectives.Document) (fits []*Fit, err error) {
	if d.Estimated || d.Measured.Cores < 1 {
		return nil, ErrNotMeasured
	}
	d.ForEachClass(func(class choice.Class, t *collectives.ClassTable) {
		f := &Fit{Class: class, Cores: d.Measured.Cores, Parameters: SoftwareParameters(), Cases: measuredCases(t)}
		if err == nil && len(f.Cases) > 0 {
			fits, err = append(fits, f), f.fitParams(ctx)
		}
	})
	if err == nil && len(fits) == 0 {
		err = ErrNotMeasured
	}
	return fits, err
}

// measuredCases returns the measurements in a table as cases.
func measuredCases(table *collectives.ClassTable) (all []Case) {
	for _, e := range table.Collectives {
		for i, n := range e.Bytes {
			c := Case{Collective: e.Collective, Ranks: e.Ranks, Bytes: n}
			for _, s := range e.Medians {
				if us := s.Micros[i]; us > 0 {
					c.By, c.Measured = append(c.By, resolveSegment(s.Choice, e.Ranks, n, choice.Link(table.Link))),
						append(c.Measured, 1000*us)
				}
			}
			if len(c.By) > 0 {
				all = append(all, c)
			}
		}
	}
	return all
}

// resolveSegment replaces an automatic segment size by the size that is chosen for the link.
func resolveSegment(by choice.Choice, ranks, n int, link choice.Link) choice.Choice {
	if by.Segment == choice.AutoSegment {
		by.Segment = coll.PipelineSegment(ranks, n, elem, link.Alpha, link.Beta)
	}
	return by
}

func sharesMemory(class choice.Class) bool {
	return class == choice.Memory || class == choice.OversubscribedMemory
}

func oversubscribed(class choice.Class) bool {
	return class == choice.OversubscribedMemory || class == choice.OversubscribedNetwork
}

// simulateCall simulates a call of n bytes with the given choice.
func simulateCall(c *network.Cluster, of coll.Collective, n int, by choice.Choice) (network.Result, error) {
	a, err := coll.Find(of, by.Algorithm)
	if err != nil {
		return network.Result{}, err
	}
	return c.Run(a, coll.Call{Collective: of, Bytes: n, Elem: elem, Segment: by.Segment, Flows: true})
}

// predictCase simulates a case in the way it was measured: all ranks are on one machine, and a barrier precedes each
// call.
func (f *Fit) predictCase(c *Case) error {
	cluster := network.Cluster{Ranks: c.Ranks, PerHost: c.Ranks, Loopback: !sharesMemory(f.Class), Barrier: true,
		Parameters: f.Parameters}
	if oversubscribed(f.Class) {
		cluster.Cores = f.Cores
	}
	c.Predicted = c.Predicted[:0]
	for _, by := range c.By {
		r, err := simulateCall(&cluster, coll.Collective(c.Collective), c.Bytes, by)
		if err != nil {
			return err
		}
		c.Predicted = append(c.Predicted, r.Nanoseconds)
	}
	return nil
}

// computeDeviation returns the deviation of the model from the cases: the mean of |ln(predicted / measured)|. It stops
// early when the result reaches most.
func (f *Fit) computeDeviation(cases []Case, most float64) (float64, error) {
	n := 0
	for i := range cases {
		n += len(cases[i].By)
	}
	sum := 0.0
	for i := range cases {
		c := &cases[i]
		if err := f.predictCase(c); err != nil {
			return 0, err
		}
		for k := range c.By {
			sum += math.Abs(math.Log(c.Predicted[k]/c.Measured[k])) / float64(n)
		}
		if sum >= most {
			break
		}
	}
	return sum, nil
}

// fittedParams returns the parameters that influence calls of the class, and can therefore be fitted to them.
func (f *Fit) fittedParams() []*float64 {
	host, link := &f.Parameters.Host, &f.Parameters.Network
	all := []*float64{&host.Call, &host.Copy, &host.Reduce}
	if sharesMemory(f.Class) {
		link = &f.Parameters.Memory
		all = append(all, &host.Publish, &host.Visible)
	}
	if oversubscribed(f.Class) {
		all = append(all, &host.Switch)
	}
	return append(all, &link.Latency, &link.Overhead, &link.OverheadByte)
}

// steps lists the factors by which fit changes a parameter, from coarse to fine.
var steps = [...]float64{2, 1.4, 1.15, 1.05}

// Limits of a fit: the number of rounds with each factor, and the smallest and the largest value of a parameter that
// affects results.
const (
	fitRounds         = 8
	fitLeast, fitMost = 1e-3, 1e8
)

// fitParams changes one parameter at a time, until no change brings the model closer to the cases.
func (f *Fit) fitParams(ctx context.Context) error {
	f.FittedRanks = max(fitRanks, slices.MinFunc(f.Cases, func(a, b Case) int { return a.Ranks - b.Ranks }).Ranks)
	cases := slices.DeleteFunc(slices.Clone(f.Cases),
		func(c Case) bool { return c.Ranks > f.FittedRanks || c.Bytes > fitBytes })
	if len(cases) == 0 {
		cases = f.Cases
	}
	f.Parameters.Network.GapByte = 0
	var err error
	if f.Deviation, err = f.computeDeviation(cases, math.Inf(1)); err != nil {
		return err
	}
	for _, step := range steps {
		for range fitRounds {
			better := false
			for _, p := range f.fittedParams() {
				for _, factor := range [...]float64{step, 1 / step} {
					ok, err := f.improveParam(ctx, p, factor, cases)
					if err != nil {
						return err
					}
					better = better || ok
				}
			}
			if !better {
				break
			}
		}
	}
	_, err = f.computeDeviation(f.Cases, math.Inf(1))
	return err
}

// improveParam multiplies a parameter by factor until that no longer improves the fit.
func (f *Fit) improveParam(ctx context.Context, p *float64, factor float64, cases []Case) (better bool, err error) {
	for {
		before := *p
		*p *= factor
		if *p < fitLeast || *p > fitMost {
			*p = before
			return better, nil
		}
		most := f.Deviation * 0.9999
		d, err := f.computeDeviation(cases, most)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return better, err
		}
		if d >= most {
			*p = before
			return better, nil
		}
		f.Deviation, better = d, true
	}
}
