package choice

import (
	"math"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Assumed costs in nanoseconds: for messages over a network of about 10 Gb/s, and for messages through shared memory.
var (
	networkLink = Link{Alpha: 15000, Beta: 0.6}
	memoryLink  = Link{Alpha: 1000, Beta: 0.1}
)

// reduceGamma is the cost of reducing a byte, in nanoseconds: BenchmarkOperations of package op in the L2 cache.
const reduceGamma = 0.03

// publishAlpha is the cost of publishing in a shared buffer, relative to the cost of a message in shared memory. It is
// less than 1 because a publication is neither matched nor acknowledged.
const publishAlpha = 0.5

// formulaShared is the length of a shared buffer, in bytes, that the formulas assume.
const formulaShared = 256 << 10

// Calls for which the formulas are evaluated.
var (
	formulaRanks    = []int{2, 3, 4, 8, 16}
	formulaBytes    = []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20}
	formulaSegments = []int{AutoSegment, 8 << 10, 64 << 10}
)

// formulaElem is the size of an element, in bytes, that the formulas assume.
const formulaElem = 4

// formula computes the table's rows for ranks that do not share cores, using the cost formulas of package coll.
func formula(link Link) Rows {
	rows := Rows{Link: link}
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		lengths := formulaBytes
		if of == coll.Barrier {
			lengths = []int{0}
		}
		for _, ranks := range formulaRanks {
			var series []Series
			for _, a := range algorithms[of] {
				for _, segment := range segments(a) {
					series = append(series, costs(a, link, ranks, segment, lengths))
				}
			}
			rows.Rows = append(rows.Rows, Row{of, ranks, DecideSpans(of, lengths, series, 1)})
		}
	}
	return rows
}

// segments returns the segment sizes to consider for an algorithm.
func segments(a *coll.Algorithm) []int {
	switch {
	case !a.Segmented:
		return []int{0}
	case a.Name == AutoAlgorithm:
		return formulaSegments
	case a.Shares: // a short call is one segment
		return append([]int{0}, formulaSegments[1:]...)
	}
	return formulaSegments[1:]
}

// costs evaluates the formula of an algorithm for several lengths, and rounds the times to nanoseconds.
func costs(algorithm *coll.Algorithm, link Link, ranks, segment int, lengths []int) Series {
	series := Series{Choice: Choice{algorithm.Name, segment}, Micros: make([]float64, len(lengths))}
	for i, n := range lengths {
		call := coll.Call{Collective: algorithm.Collective, Ranks: ranks, Bytes: n, Elem: formulaElem, Flows: true,
			Segment: segment}
		alpha := link.Alpha
		if link == memoryLink {
			call.Shared = formulaShared
		}
		if algorithm.Shares {
			alpha *= publishAlpha
		}
		if segment == AutoSegment {
			call.Segment = coll.PipelineSegment(ranks, n, formulaElem, link.Alpha, link.Beta)
		} else if segment >= n && segment > 0 {
			continue
		}
		cost, err := algorithm.Cost(call)
		if link == memoryLink && algorithm.Name == "flat" &&
			(algorithm.Collective == coll.Bcast || algorithm.Collective == coll.Scatter) {
			cost.Bytes = n // the receivers copy simultaneously
		}
		if err == nil {
			series.Micros[i] = math.Round(cost.Time(alpha, link.Beta, reduceGamma)) / 1000
		}
	}
	return series
}
