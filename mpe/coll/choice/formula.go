package choice

import (
	"math"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// A network of some 10 Gb/s between hosts: what a message takes, and what it takes to
// reduce a byte, in nanoseconds.
const (
	networkAlpha = 15000
	networkBeta  = 0.6
	reduceGamma  = 0.3
)

// The calls for which the formulas are evaluated.
var (
	formulaRanks    = []int{2, 3, 4, 8, 16}
	formulaBytes    = []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20}
	formulaSegments = []int{Auto, 8 << 10, 64 << 10}
)

// formulaElem is the size of an element, in bytes.
const formulaElem = 4

// formula returns the rows of a network, by the formulas of package coll.
func formula() Rows {
	rows := Rows{Link: Link{Alpha: networkAlpha, Beta: networkBeta}}
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		lengths := formulaBytes
		if of == coll.Barrier {
			lengths = []int{0}
		}
		for _, ranks := range formulaRanks {
			var series []Series
			for _, a := range algorithms[of] {
				for _, segment := range segments(a) {
					series = append(series, costs(a, ranks, segment, lengths))
				}
			}
			rows.Rows = append(rows.Rows, Row{of, ranks, Decide(of, lengths, series, 1)})
		}
	}
	return rows
}

// segments are those with which an algorithm is considered.
func segments(a *coll.Algorithm) []int {
	switch {
	case !a.Segmented:
		return []int{0}
	case a.Name == AutoFor:
		return formulaSegments
	}
	return formulaSegments[1:]
}

// costs evaluates the formula of an algorithm. The times are rounded to nanoseconds.
func costs(a *coll.Algorithm, ranks, segment int, lengths []int) Series {
	s := Series{By: Choice{a.Name, segment}, Micros: make([]float64, len(lengths))}
	for i, n := range lengths {
		c := coll.Call{Collective: a.Collective, Ranks: ranks, Bytes: n, Elem: formulaElem, Flows: true, Segment: segment}
		if segment == Auto {
			c.Segment = coll.PipelineSegment(ranks, n, formulaElem, networkAlpha, networkBeta)
		} else if segment >= n && segment > 0 {
			continue
		}
		if cost, err := a.Cost(c); err == nil {
			s.Micros[i] = math.Round(cost.Time(networkAlpha, networkBeta, reduceGamma)) / 1000
		}
	}
	return s
}
