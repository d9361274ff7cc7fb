package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Ratio compares the time of a message on one side with the time on another: below 1 means that the first side is
// faster. For bandwidths and rates, the inverse of the time is used. If both sides were measured in the same processes,
// the ratio is the median of the rounds' ratios; otherwise it is the ratio of the medians.
type Ratio struct {
	Workload string `json:"workload"`
	Side     string `json:"side"`
	// Base is the key of the side compared with. If there were several, it is the best of them.
	Base  string  `json:"base"`
	N     int     `json:"n"`
	Value float64 `json:"value"`
}

// comparison selects the sides to compare.
type comparison struct {
	side string
	// bases lists the keys of the sides to compare with, of which only the best one counts. baseName is a name for all
	// of them.
	bases    []string
	baseName string
	// baseFactor is the number of messages on the base's side with which one message on this side is compared. 0 means
	// 1.
	baseFactor float64
	// workloads lists the workloads for which the sides are compared. The default is all.
	workloads []string
}

var bcasts = []string{"bcast", "bcast-busy"}

// A message with the profile cloudfpga takes two round trips: first SEND_REQUEST and CLEAR_TO_SEND, and then DATA and
// ACK. Together they last as long as four half round trips.
const cloudFPGAPackets = 4

var comparisons = []comparison{
	{side: "extended-udp", bases: extendedUDP.methodKeys(), baseName: "best of udp-…", workloads: bcasts},
	{side: "udp-atomic", bases: []string{"udp-chain"}, workloads: bcasts},
	{side: "udp-free-first", bases: []string{"udp-atomic"}, workloads: bcasts},
	{side: "udp-by-left", bases: []string{"udp-atomic"}, workloads: bcasts},
	{side: "tcp-atomic", bases: []string{"tcp-chain"}, workloads: bcasts},
	{side: "extended-shm", bases: extendedShm.methodKeys(), baseName: "best of shm-…", workloads: bcasts},
	{side: "shm-atomic", bases: []string{"shm-chain"}, workloads: bcasts},
	{side: "cloudfpga", bases: []string{rawPoll}, baseFactor: cloudFPGAPackets, workloads: []string{"pingpong"}},
	{side: "v0.9", bases: []string{rawPoll}, baseFactor: cloudFPGAPackets, workloads: []string{"pingpong"}},
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
	{side: "cloudfpga-veth", bases: []string{rawVeth}, baseFactor: cloudFPGAPackets, workloads: []string{"pingpong"}},
	{side: "cloudfpga-xdp", bases: []string{rawXDP}, baseFactor: cloudFPGAPackets, workloads: []string{"pingpong"}},
	{side: "cloudfpga-xdp", bases: []string{"cloudfpga-veth"}},
	{side: "extended-xdp", bases: []string{"extended-veth"}},
	{side: "extended-veth", bases: []string{openMPIVeth}},
	{side: "extended-xdp", bases: []string{openMPIVeth}},
	{side: "extended-shm", bases: []string{openMPIShm, mpichShm}},
	{side: "extended-shm", bases: []string{rawRing}},
}

// name returns the heading of the comparison's column.
func (c *comparison) name() string {
	base := c.bases[0]
	switch {
	case c.baseName != "":
		base = c.baseName
	case len(c.bases) > 1:
		base = "better of " + strings.Join(c.bases, ", ")
	}
	if c.baseFactor > 0 {
		base = fmt.Sprintf("(%g × %s)", c.baseFactor, base)
	}
	return c.side + " ÷ " + base
}

func (c *comparison) appliesTo(workload string) bool {
	for _, w := range c.workloads {
		if w == workload {
			return true
		}
	}
	return len(c.workloads) == 0
}

// ratio compares a figure of both sides at step n.
func (c *comparison) ratio(res *Result, n int, figure string) (Ratio, bool) {
	r := Ratio{Workload: res.Workload, Side: c.side, N: n}
	if figure == "p50" && res.archived != nil {
		i := slices.IndexFunc(res.archived,
			func(v Ratio) bool { return v.Side == c.side && v.N == n && slices.Contains(c.bases, v.Base) })
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
	r.Value /= max(c.baseFactor, 1)
	return r, r.Base != ""
}

// multipleOf returns a figure of a side at step n, divided by the figure of base. If both sides were measured in the
// same processes, this is the median of the rounds' ratios; otherwise it is the ratio of the medians. It is 0 if
// unknown.
func (m *Measured) multipleOf(base *Measured, n int, figure string) float64 {
	p, q := m.point(n), base.point(n)
	if p == nil || q == nil || *p.figure(figure) == 0 || *q.figure(figure) == 0 {
		return 0
	}
	if !m.sharesProcesses(&base.Side) || len(m.Rounds) != len(base.Rounds) {
		return *p.figure(figure) / *q.figure(figure)
	}
	i, k := m.stepIndex(n), base.stepIndex(n)
	all := make([]float64, len(m.Rounds))
	for round := range all {
		all[round] = *m.Rounds[round][i].figure(figure) / *base.Rounds[round][k].figure(figure)
	}
	return median(all)
}

// ratios returns all ratios that can be computed from the results.
func (r *Report) ratios() []Ratio {
	var all []Ratio
	for i := range r.Results {
		res := &r.Results[i]
		for _, c := range comparisons {
			if !c.appliesTo(res.Workload) {
				continue
			}
			for _, n := range res.stepNumbers() {
				if v, ok := c.ratio(res, n, "p50"); ok {
					all = append(all, v)
				}
			}
		}
	}
	return all
}
