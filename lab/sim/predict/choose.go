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

// MaxChosenRanks is the maximum number of ranks that Choose supports.
const MaxChosenRanks = 1024

// The data lengths and segment sizes that Choose tries. All blocks of a call together have at most chooseBytes bytes.
var (
	chooseLengths  = []int{8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 2 << 20}
	chooseSegments = []int{choice.AutoSegment, 8 << 10, 64 << 10, 512 << 10}
)

const chooseBytes = 2 << 20

// ChoiceResult compares the table's choice for calls of one length with the choice of the built-in table.
type ChoiceResult struct {
	Class      choice.Class           `json:"class"`
	Collective collectives.Collective `json:"collective"`
	Ranks      int                    `json:"ranks"`
	Bytes      int                    `json:"bytes"`
	By         choice.Choice          `json:"by"`
	BuiltIn    choice.Choice          `json:"built_in"`
	// Times are in nanoseconds.
	Nanoseconds        float64 `json:"ns"`
	BuiltInNanoseconds float64 `json:"built_in_ns"`
}

// Choose returns a table for a cluster, for communicators of 2, 4, 8 and so on up to all ranks. Its entries are the
// algorithms and segment sizes that are fastest in the model, where they are never slower than the choice of the
// built-in table. The error is a *network.ClusterError, ErrFPGA, or the error of ctx.
func Choose(ctx context.Context, description *Description, fits []*Fit) (*collectives.Table, []ChoiceResult, error) {
	if description.HasFPGAs() {
		return nil, nil, ErrFPGA
	}
	whole := description.Cluster(description.Ranks, fits)
	doc := &collectives.Document{Version: collectives.Version, Estimated: true}
	var all []ChoiceResult
	for _, ranks := range PowersOfTwo(description.Ranks) {
		cluster := description.communicator(ranks, fits)
		// The class depends on all hosts of the cluster, even if a communicator uses only some of them.
		class := choice.ClassOf(cluster.SharesMemory(), whole.Oversubscribed())
		t := doc.Class(class)
		if *t == nil {
			*t = &collectives.ClassTable{Transport: "model", Link: collectives.Link(mainLink(&cluster))}
		}
		link := choice.Link((*t).Link) // because the engine uses one link per class
		for op := coll.Barrier; op <= coll.Exscan; op++ {
			e, chosen, err := chooseCollective(ctx, &cluster, class, op, link)
			if err != nil {
				return nil, nil, err
			}
			(*t).Collectives = append((*t).Collectives, e)
			all = append(all, chosen...)
		}
	}
	doc.ForEachClass(func(_ choice.Class, t *collectives.ClassTable) {
		slices.SortStableFunc(t.Collectives,
			func(a, b collectives.Entry) int { return int(a.Collective) - int(b.Collective) })
	})
	table, err := collectives.New(doc)
	return table, all, err
}

// chooseCollective returns the table entry for a collective.
func chooseCollective(ctx context.Context, cluster *network.Cluster, class choice.Class, of coll.Collective,
	link choice.Link) (collectives.Entry, []ChoiceResult, error) {
	entry := collectives.Entry{Collective: collectives.Collective(of), Ranks: cluster.Ranks,
		Bytes: lengths(of, cluster.Ranks)}
	var all []ChoiceResult
	for i, n := range entry.Bytes {
		builtIn := builtInChoice(cluster, class, of, n)
		for _, by := range candidates(cluster, of, n, builtIn) {
			if err := ctx.Err(); err != nil {
				return entry, nil, err
			}
			result, err := simulateCall(cluster, of, n, resolveSegment(by, cluster.Ranks, n, link))
			if _, ok := errors.AsType[*coll.CallError](err); ok {
				continue
			}
			if err != nil {
				return entry, nil, err
			}
			k := slices.IndexFunc(entry.Medians, func(s collectives.Series) bool { return s.Choice == by })
			if k < 0 {
				k = len(entry.Medians)
				entry.Medians = append(entry.Medians, collectives.Series{Choice: by, Micros: make([]float64, len(entry.Bytes))})
			}
			entry.Medians[k].Micros[i] = math.Round(result.Nanoseconds) / 1000
			if by == builtIn {
				all = append(all, ChoiceResult{Class: class, Collective: entry.Collective, Ranks: cluster.Ranks, Bytes: n,
					BuiltIn: by})
			}
		}
	}
	entry.Decide(1)
	for i := range all { // one choice for each length
		result := &all[i]
		result.By = entryChoice(&entry, result.Bytes)
		for _, s := range entry.Medians {
			if s.Choice == result.By {
				result.Nanoseconds = 1000 * s.Micros[i]
			}
			if s.Choice == result.BuiltIn {
				result.BuiltInNanoseconds = 1000 * s.Micros[i]
			}
		}
	}
	return entry, all, nil
}

// lengths returns the lengths at which calls of a collective are predicted.
func lengths(of coll.Collective, ranks int) (list []int) {
	longest := chooseBytes
	switch of {
	case coll.Barrier:
		return []int{0}
	case coll.Gather, coll.Scatter, coll.Allgather, coll.Alltoall, coll.ReduceScatter:
		longest /= ranks
	}
	for _, n := range chooseLengths {
		if n <= longest {
			list = append(list, n)
		}
	}
	return list
}

// builtInChoice returns the choice of the built-in table for a call.
func builtInChoice(c *network.Cluster, class choice.Class, of coll.Collective, n int) choice.Choice {
	call := coll.Call{Collective: of, Ranks: c.Ranks, Bytes: n, Elem: elem, Flows: true, Shared: c.SharedBytes()}
	return choice.Default().Choose(class, &call)
}

// hopeless limits which choices are tried. A choice is skipped if its estimated time exceeds the smallest estimate by
// more than this factor.
const hopeless = 10

// candidates returns the choices to try for a call. The choice of the built-in table is one of them.
func candidates(cluster *network.Cluster, of coll.Collective, n int, builtIn choice.Choice) []choice.Choice {
	var list []choice.Choice
	var times []float64
	link := mainLink(cluster)
	add := func(a *coll.Algorithm, segment int) {
		by := choice.Choice{Algorithm: a.Name, Segment: segment}
		cost, err := a.Cost(coll.Call{Collective: of, Ranks: cluster.Ranks, Bytes: n, Elem: elem, Flows: true,
			Shared: cluster.SharedBytes(), Segment: resolveSegment(by, cluster.Ranks, n, link).Segment})
		if err == nil {
			list, times = append(list, by), append(times, cost.Time(link.Alpha, link.Beta, cluster.Host.Reduce))
		}
	}
	for _, algorithm := range coll.Algorithms(of) {
		if !algorithm.Segmented || n <= chooseSegments[1] {
			add(algorithm, 0)
		}
		for _, s := range chooseSegments {
			if algorithm.Segmented && s < n && (s != choice.AutoSegment || algorithm.Name == choice.AutoAlgorithm) {
				add(algorithm, s)
			}
		}
	}
	least := slices.Min(times)
	tried := []choice.Choice{builtIn}
	for i, by := range list {
		if by != builtIn && times[i] <= hopeless*least {
			tried = append(tried, by)
		}
	}
	return tried
}

// entryChoice returns the first choice that a table entry contains for a length.
func entryChoice(e *collectives.Entry, n int) choice.Choice {
	for _, d := range e.Decisions {
		if d.MaxBytes == nil || n <= int(*d.MaxBytes) {
			return d.Choices[0]
		}
	}
	return choice.Choice{} // unreachable: the last decision covers all lengths
}

// Values for the setting collectives.upstream. They are the schedules that upstream's compiler generates for FPGAs.
var upstreams = [...]string{"flat", "tree"}

// Upstream holds the predicted times of a collective with each schedule of upstream's compiler on FPGAs, in
// nanoseconds.
type Upstream struct {
	Collective collectives.Collective `json:"collective"`
	Ranks      int                    `json:"ranks"`
	Bytes      int                    `json:"bytes"`
	Flat       float64                `json:"flat_ns"`
	Tree       float64                `json:"tree_ns"`
}

// fpgaCall describes a call in which all ranks except rank 0 are FPGAs.
func fpgaCall(of coll.Collective, ranks, n int) coll.Call {
	fpgas := make([]int, ranks-1)
	for i := range fpgas {
		fpgas[i] = i + 1
	}
	return coll.Call{Collective: of, Ranks: ranks, Bytes: n, Elem: elem, Token: elem, FPGAs: fpgas, NoCredit: true}
}

// fpgaAlgorithms lists the algorithms in which an FPGA executes one step at a time.
var fpgaAlgorithms = [...]string{"flat", "toggle", "chain", "tree"}

// ChooseUpstream returns the value for the setting collectives.upstream that is faster on a cluster with FPGAs. It
// compares the geometric means of the predicted times of all calls. The error is a *network.ClusterError or the error
// of ctx.
func ChooseUpstream(ctx context.Context, d *Description) (string, []Upstream, error) {
	cluster := d.Cluster(d.Ranks, nil)
	var all []Upstream
	sum := 0.0
	for _, of := range [...]coll.Collective{coll.Bcast, coll.Reduce, coll.Gather, coll.Scatter} {
		for _, n := range lengths(of, cluster.Ranks) {
			var times [len(upstreams)]float64
			for i, name := range upstreams {
				a, err := coll.Find(of, name)
				if err != nil {
					return "", nil, err
				}
				result, err := cluster.Run(a, fpgaCall(of, cluster.Ranks, n))
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					return "", nil, err
				}
				times[i] = result.Nanoseconds
			}
			all = append(all, Upstream{collectives.Collective(of), cluster.Ranks, n, times[0], times[1]})
			sum += math.Log(times[1] / times[0])
		}
	}
	if sum < 0 {
		return upstreams[1], all, nil
	}
	return upstreams[0], all, nil
}
