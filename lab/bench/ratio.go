package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Ratio is the time of a message of a side as a multiple of that of another one:
// below 1 is faster. Bandwidths and rates compare inversely. Of sides that were measured
// in the same processes it is the median of the rounds' ratios, and of others that of
// their medians.
type Ratio struct {
	Workload string `json:"workload"`
	Side     string `json:"side"`
	// Base is the key of the other side: the better one of those that count.
	Base  string  `json:"base"`
	N     int     `json:"n"`
	Value float64 `json:"value"`
}

// comparison is which sides are compared.
type comparison struct {
	side string
	// bases are the other side, or several of which the better one counts, and called
	// what they are together.
	bases  []string
	called string
	// times is how many of the base's messages one of the side's has to wait
	// for; 0 is 1.
	times float64
	// workloads are those that it is for; none is all.
	workloads []string
}

var bcasts = []string{"bcast", "bcast-busy"}

// A cloudfpga message is two round trips: SEND_REQUEST and CLEAR_TO_SEND, DATA and
// ACK. That is four times half a round trip.
const cloudFPGAPackets = 4

var comparisons = []comparison{
	{side: "extended-udp", bases: extendedUDP.methodKeys(), called: "best of udp-…", workloads: bcasts},
	{side: "udp-atomic", bases: []string{"udp-chain"}, workloads: bcasts},
	{side: "udp-free-first", bases: []string{"udp-atomic"}, workloads: bcasts},
	{side: "udp-by-left", bases: []string{"udp-atomic"}, workloads: bcasts},
	{side: "tcp-atomic", bases: []string{"tcp-chain"}, workloads: bcasts},
	{side: "extended-shm", bases: extendedShm.methodKeys(), called: "best of shm-…", workloads: bcasts},
	{side: "shm-atomic", bases: []string{"shm-chain"}, workloads: bcasts},
	{side: "cloudfpga", bases: []string{rawPoll}, times: cloudFPGAPackets, workloads: []string{"pingpong"}},
	{side: "v0.9", bases: []string{rawPoll}, times: cloudFPGAPackets, workloads: []string{"pingpong"}},
	{side: "cloudfpga", bases: []string{upstreamKey}},
	{side: "cloudfpga", bases: []string{upstreamOneKey}},
	{side: "extended-udp", bases: []string{rawPoll}},
	{side: "cloudfpga", bases: []string{rawGRO}},
	{side: "extended-udp", bases: []string{rawGRO}},
	{side: "cloudfpga", bases: []string{openMPITCP}},
	{side: "extended-udp", bases: []string{openMPITCP}},
	{side: "extended-tcp", bases: []string{openMPITCP}},
	{side: "attached", bases: []string{openMPITCP}},
	{side: "attached", bases: []string{extendedUDP.key}, workloads: []string{"pingpong"}},
	{side: "attached-one", bases: []string{openMPITCP}},
	{side: "attached-one", bases: []string{extendedUDP.key}},
	{side: "extended-shm", bases: []string{openMPIShm, mpichShm}},
	{side: "extended-shm", bases: []string{rawRing}},
}

// name is the comparison's heading in a table.
func (c *comparison) name() string {
	base := c.bases[0]
	switch {
	case c.called != "":
		base = c.called
	case len(c.bases) > 1:
		base = "better of " + strings.Join(c.bases, ", ")
	}
	if c.times > 0 {
		base = fmt.Sprintf("(%g × %s)", c.times, base)
	}
	return c.side + " ÷ " + base
}

func (c *comparison) of(workload string) bool {
	for _, w := range c.workloads {
		if w == workload {
			return true
		}
	}
	return len(c.workloads) == 0
}

// ratio compares a figure of the sides at a step.
func (c *comparison) ratio(res *Result, n int, figure string) (Ratio, bool) {
	r := Ratio{Workload: res.Workload, Side: c.side, N: n}
	if figure == "p50" && res.archived != nil {
		i := slices.IndexFunc(res.archived, func(v Ratio) bool { return v.Side == c.side && v.N == n && slices.Contains(c.bases, v.Base) })
		if i < 0 {
			return r, false
		}
		return res.archived[i], true
	}
	for _, key := range c.bases {
		if v := res.side(c.side).multipleOf(res.side(key), n, figure); v > r.Value {
			r.Base, r.Value = key, v
		}
	}
	r.Value /= max(c.times, 1)
	return r, r.Base != ""
}

// multipleOf is a figure of a side at a step as a multiple of that of another: of the
// medians, or the median of what it was in each round, if both were measured in the same
// processes. 0 is unknown.
func (m *Measured) multipleOf(base *Measured, n int, figure string) float64 {
	p, q := m.point(n), base.point(n)
	if p == nil || q == nil || *p.figure(figure) == 0 || *q.figure(figure) == 0 {
		return 0
	}
	if !m.together(&base.Side) || len(m.Rounds) != len(base.Rounds) {
		return *p.figure(figure) / *q.figure(figure)
	}
	i, k := m.at(n), base.at(n)
	all := make([]float64, len(m.Rounds))
	for round := range all {
		all[round] = *m.Rounds[round][i].figure(figure) / *base.Rounds[round][k].figure(figure)
	}
	return median(all)
}

// ratios compares all that can be.
func (r *Report) ratios() []Ratio {
	var all []Ratio
	for i := range r.Results {
		res := &r.Results[i]
		for _, c := range comparisons {
			if !c.of(res.Workload) {
				continue
			}
			for _, n := range res.ns() {
				if v, ok := c.ratio(res, n, "p50"); ok {
					all = append(all, v)
				}
			}
		}
	}
	return all
}
