package bench

import (
	"fmt"
	"math"
	"slices"
)

// target is a bound that a measured figure should not exceed or, if it is a lower bound, should reach.
type target struct {
	name, workload string
	// otherWorkload names a second workload, if any, whose figures are needed to decide about the target.
	otherWorkload string
	// atMost means that bound is an upper bound; otherwise it is a lower bound.
	bound  float64
	atMost bool
	// slowBound replaces bound if a wake-up takes slowWakeUp or longer. 0 means that bound always applies.
	slowBound float64
	// goal is a better value that the project works towards, or 0. tolerance is the amount by which the figure may miss
	// bound because of noise.
	goal, tolerance float64
	// unit is printed after the bound.
	unit string
	// measure computes the figure, and determines the step or side at which it is worst.
	measure func(r *Report, res *Result) (value float64, where string, ok bool)
}

// Message lengths used by targets.
const (
	maxShort = 4096
	minLong  = 64 << 10
	maxTail  = 16 << 10
	// maxAttached is the maximum message length, in bytes, at which attached programs are compared.
	maxAttached  = 1 << 20
	millionWords = 4_000_000 // a million words, in bytes
)

var targets = slices.Concat([]target{
	{name: "cloudfpga, 1 word: time by two raw round trips, polling", workload: "pingpong", bound: 1.25, slowBound: 1.4,
		atMost: true, measure: atStep("cloudfpga", wordLen, cloudFPGAPackets, rawPoll)},
	{name: "cloudfpga, up to 64 KiB: time by that of the next longer or shorter message, the larger one",
		workload: "pingpong", bound: 1.5, atMost: true, measure: worstStepJump},
	{name: "cloudfpga, 1 word: time of upstream's library, sleeping, by ours", workload: "pingpong", bound: 5,
		measure: inverse(atStep("cloudfpga", wordLen, 1, upstreamKey))},
	{name: "cloudfpga, 1 word: time of upstream's library at its best by ours", workload: "pingpong", bound: 1.6,
		measure: inverse(atStep("cloudfpga", wordLen, 1, upstreamKey, upstreamOneKey))},
	{name: "cloudfpga, 1,000,000 words: bandwidth by a raw stream's with UDP_SEGMENT and UDP_GRO", workload: "pingpong",
		otherWorkload: "stream", bound: 0.6, measure: streamShare},
	{name: "cloudfpga, 1,000,000 words: bandwidth by upstream's", workload: "pingpong", bound: 100,
		measure: inverse(atStep("cloudfpga", millionWords, 1, upstreamKey, upstreamOneKey))},
	{name: "extended over UDP, up to 4 KiB: latency by Open MPI's over TCP", workload: "pingpong", bound: 0.9,
		goal: 0.8, atMost: true, measure: worst(extendedUDP.key, 0, maxShort, openMPITCP)},
	{name: "extended over UDP, from 64 KiB: bandwidth by Open MPI's over TCP", workload: "pingpong", bound: 1,
		goal: 1.3, measure: inverse(worst(extendedUDP.key, minLong, anyLength, openMPITCP))},
	{name: "extended over TCP: latency by Open MPI's over TCP", workload: "pingpong", bound: 1.05, atMost: true,
		measure: worst(extendedTCP.key, 0, anyLength, openMPITCP)},
	{name: "extended over UDP, up to 16 KiB: p99 by Open MPI's over TCP", workload: "pingpong", bound: 2, atMost: true,
		measure: worstOf("p99", extendedUDP.key, 0, maxTail, openMPITCP)},
	{name: "extended over TCP, up to 16 KiB: p99 by Open MPI's over TCP", workload: "pingpong", bound: 2, atMost: true,
		measure: worstOf("p99", extendedTCP.key, 0, maxTail, openMPITCP)},
	{name: "shared memory, 4 B: latency by a raw ring's", workload: "pingpong", bound: 2, atMost: true,
		measure: atStep(extendedShm.key, wordLen, 1, rawRing)},
	{name: "shared memory, up to 4 KiB: latency by the better peer's", workload: "pingpong", bound: 2, atMost: true,
		measure: worst(extendedShm.key, 0, maxShort, openMPIShm, mpichShm)},
	{name: "shared memory, from 64 KiB: bandwidth by the better peer's", workload: "pingpong", bound: 0.9,
		measure: inverse(worst(extendedShm.key, minLong, anyLength, openMPIShm, mpichShm))},
	{name: "extended over UDP: message rate by Open MPI's over TCP, 64 in flight", workload: "rate", bound: 1,
		measure: inverse(worst(extendedUDP.key, 0, anyLength, openMPITCP))},
	{name: "shared memory: message rate by the better peer's, 64 in flight", workload: "rate", bound: 0.33,
		measure: inverse(worst(extendedShm.key, 0, anyLength, openMPIShm, mpichShm))},
	{name: "ring of 8, extended over UDP: a hop by Open MPI's over TCP, yielding when idle", workload: "ring",
		bound: 1.5, atMost: true, measure: atStep(extendedUDP.key, 8, 1, openMPITCP)},
	{name: "ring of 8, shared memory: a hop by Open MPI's, yielding when idle", workload: "ring", bound: 1.5,
		atMost: true, measure: atStep(extendedShm.key, 8, 1, openMPIShm)},
	{name: "posted receives: half round trip at the deepest queue by that at none", workload: "queues", bound: 1.25,
		atMost: true, measure: worstQueueGrowth},
	{name: "posted receives: time to unload the deepest queue by the better peer's", workload: "queues", bound: 0.1,
		atMost: true, measure: unloadRatio},
	{name: "broadcast, extended over UDP: time by atomic by that by chain", workload: "bcast", bound: 1,
		tolerance: noise, atMost: true, measure: worst("udp-atomic", 0, anyLength, "udp-chain")},
	{name: "broadcast, extended over UDP: time by atomic, ordered by what ranks have left, by that in fixed order",
		workload: "bcast", bound: 1, tolerance: noise, atMost: true,
		measure: worst("udp-by-left", 0, anyLength, "udp-atomic")},
	{name: "broadcast, extended over UDP: time by the chosen algorithm by that of the best", workload: "bcast",
		bound: 1.1, atMost: true, measure: worst(extendedUDP.key, 0, anyLength, extendedUDP.methodKeys()...)},
	{name: "broadcast, shared memory: time by the chosen algorithm by that of the best", workload: "bcast", bound: 1.1,
		atMost: true, measure: worst(extendedShm.key, 0, anyLength, extendedShm.methodKeys()...)},
	{name: "broadcast, a busy rank, extended over UDP: time by atomic by that by chain", workload: "bcast-busy",
		bound: 1, tolerance: noise, atMost: true, measure: worst("udp-atomic", 0, anyLength, "udp-chain")},
	{name: "broadcast, a busy rank, extended over UDP: time by atomic, ordered by what ranks have left, by that in " +
		"fixed order", workload: "bcast-busy", bound: 1, tolerance: noise, atMost: true,
		measure: worst("udp-by-left", 0, anyLength, "udp-atomic")},
	{name: "broadcast, a busy rank, extended over UDP: time by the chosen algorithm by that of the best",
		workload: "bcast-busy", bound: 1.1, atMost: true,
		measure: worst(extendedUDP.key, 0, anyLength, extendedUDP.methodKeys()...)},
	{name: "broadcast, a busy rank, extended over UDP: time by Open MPI's over TCP", workload: "bcast-busy", bound: 1,
		atMost: true, measure: worst(extendedUDP.key, 0, anyLength, openMPITCP)},
	{name: "idle: processor time of a rank after a second", workload: "idle", bound: idlePercent, atMost: true,
		unit: " % (which is 0 %)", measure: idleUsage},
}, attachedTargets(), collectiveTargets(), disturbedTargets())

// anyLength exceeds the length of any message. idlePercent is 0 % with an allowance for rounding. noise is the
// difference observed between two equal sides measured in the same processes.
const (
	anyLength   = 1 << 62
	idlePercent = 0.5
	noise       = 0.05
)

// slowWakeUp is the median duration of a wake-up, in µs, above which polling saves a large part of a message's time.
const slowWakeUp = 10

// attachedTargets returns the targets for programs that attach to ranks of a daemon.
func attachedTargets() (all []target) {
	for _, x := range []struct{ key, name string }{{"attached-one", "one program"}, {"attached", "two programs"}} {
		all = append(all,
			target{name: "attached, " + x.name +
				", up to 1 MiB: time that attaching adds by a round trip of a raw ring", workload: "pingpong", bound: 6,
				atMost: true, measure: attachCost(x.key)},
			target{name: "attached, " + x.name + ", up to 1 MiB: latency by that in process", workload: "pingpong",
				bound: 2, atMost: true, measure: worst(x.key, 0, maxAttached, extendedUDP.key)})
	}
	return all
}

// attachCost compares the additional time of a message due to attaching with the time of a round trip over a raw ring
// buffer, for the same message length.
func attachCost(key string) measure {
	return func(_ *Report, res *Result) (value float64, where string, found bool) {
		for _, n := range res.stepNumbers() {
			attached, inProcess, ring := res.side(key).point(n), res.side(extendedUDP.key).point(n),
				res.side(rawRing).point(n)
			if n > maxAttached || attached == nil || inProcess == nil || ring == nil || ring.P50 == 0 {
				continue
			}
			if v := (attached.P50 - inProcess.P50) / (2 * ring.P50); !found || v > value {
				value, where, found = v, formatSize(n), true
			}
		}
		return value, where, found
	}
}

// collectiveTargets returns the targets for collective operations, which are compared with Open MPI.
func collectiveTargets() (all []target) {
	for _, name := range []string{"bcast", "bcast-4", "allreduce", "allreduce-4", "alltoall", "alltoall-4"} {
		of := func(what string, bound float64, m measure) {
			w, _ := workloadNamed(name) // always found
			all = append(all, target{name: w.title + ", " + what, workload: name, bound: bound, atMost: true,
				measure: m})
		}
		of("over the default transport, UDP: time by Open MPI's over TCP", 1.05,
			worst(extendedUDP.key, 0, anyLength, openMPITCP))
		of("shared memory, up to 4 KiB: time by Open MPI's", 1.5, worst(extendedShm.key, 0, maxShort, openMPIShm))
		of("shared memory, above 4 KiB: time by Open MPI's", 1.1,
			worst(extendedShm.key, maxShort+1, anyLength, openMPIShm))
	}
	return all
}

// disturbedTargets returns the targets for runs in which a neighbour uses a fifth of each processor.
func disturbedTargets() (all []target) {
	for _, w := range workloads {
		if len(w.requiredFigures) > 0 {
			all = append(all, target{name: w.title + ", a neighbour takes a fifth of each processor: p50 by that " +
				"without it", workload: w.name, bound: 1.5, atMost: true, measure: mostDisturbed})
		}
	}
	return all
}

// verdicts compares the figures with the targets for all measured workloads.
func (r *Report) verdicts() []TargetResult {
	var all []TargetResult
	for _, t := range targets {
		res := r.result(t.workload)
		if res == nil || t.otherWorkload != "" && r.result(t.otherWorkload) == nil {
			continue
		}
		result := TargetResult{Workload: t.workload, Name: t.name, Target: t.text()}
		if value, where, ok := t.measure(r, res); ok {
			bound := t.bound
			if t.slowBound > 0 && r.Machine.WakeUp >= slowWakeUp {
				bound = t.slowBound
			}
			result.Value, result.Where = &value, where
			result.Met = value == bound || (value < bound) == t.atMost || math.Abs(value-bound) <= t.tolerance
		}
		all = append(all, result)
	}
	return all
}

func (t *target) text() string {
	how := "at least"
	if t.atMost {
		how = "at most"
	}
	text := fmt.Sprintf("%s %g%s", how, t.bound, t.unit)
	if t.slowBound != 0 {
		text += fmt.Sprintf(", %g where a wake-up takes %d µs or more", t.slowBound, slowWakeUp)
	}
	if t.goal != 0 {
		text += fmt.Sprintf(", goal %g", t.goal)
	}
	if t.tolerance != 0 {
		text += fmt.Sprintf(", tolerance %g", t.tolerance)
	}
	return text
}

type measure = func(*Report, *Result) (float64, string, bool)

// atStep returns a measure that divides a side's time at step n by the best time among the bases, multiplied by times.
func atStep(side string, n int, times float64, bases ...string) measure {
	c := comparison{side: side, bases: bases, baseFactor: times}
	return func(_ *Report, res *Result) (float64, string, bool) {
		v, ok := c.ratio(res, n, "p50")
		return v.Value, "", ok
	}
}

// worst returns a measure that divides a side's time by the best time among the bases at each step between least and
// most. Its result is the largest of these ratios.
func worst(side string, least, most int, bases ...string) measure {
	return worstOf("p50", side, least, most, bases...)
}

// worstOf is like worst, but compares the given figure instead of the median time.
func worstOf(figure, side string, least, most int, bases ...string) measure {
	c := comparison{side: side, bases: bases}
	return func(_ *Report, res *Result) (value float64, where string, found bool) {
		for _, n := range res.stepNumbers() {
			if v, ok := c.ratio(res, n, figure); ok && n >= least && n <= most && v.Value > value {
				value, where, found = v.Value, formatSize(n), true
			}
		}
		return value, where, found
	}
}

// inverse converts a ratio of times to the corresponding ratio of bandwidths or rates.
func inverse(m measure) measure {
	return func(r *Report, res *Result) (float64, string, bool) {
		v, where, ok := m(r, res)
		return 1 / v, where, ok
	}
}

// worstStepJump compares each time at lengths up to 64 KiB with the longer one of the times at the next shorter and the
// next longer length. It returns the largest ratio.
func worstStepJump(_ *Report, res *Result) (value float64, where string, found bool) {
	measured := res.side(cloudFPGA.key)
	if measured == nil {
		return 0, "", false
	}
	for i, point := range measured.Median {
		var beside float64
		for _, k := range []int{i - 1, i + 1} {
			if k >= 0 && k < len(measured.Median) {
				beside = max(beside, measured.Median[k].P50)
			}
		}
		if point.N <= minLong && beside > 0 && point.P50/beside > value {
			value, where, found = point.P50/beside, formatSize(point.N), true
		}
	}
	return value, where, found
}

// mostDisturbed compares the times of zrlmpid's links while a neighbour uses the processors with the times without it.
// It returns the largest ratio.
func mostDisturbed(_ *Report, res *Result) (value float64, where string, found bool) {
	w, err := workloadNamed(res.Workload)
	if err != nil {
		return 0, "", false
	}
	for _, measured := range res.disturbedResult().Sides {
		for _, point := range measured.Median {
			idle := res.side(measured.Key).point(point.N)
			if measured.Kind != Ours || measured.Method != "" || idle == nil || idle.P50 == 0 {
				continue
			}
			if v := point.P50 / idle.P50; v > value {
				value, where, found = v, measured.Key+", "+w.label(point.N), true
			}
		}
	}
	return value, where, found
}

// streamShare returns the bandwidth of ping-pong as a share of the bandwidth of a raw stream.
func streamShare(r *Report, res *Result) (float64, string, bool) {
	ours := res.side("cloudfpga").point(millionWords)
	raw := r.result("stream").side(rawGRO).point(millionWords)
	if raw == nil || ours == nil || ours.P50 == 0 {
		return 0, "", false
	}
	return raw.P50 / ours.P50, "", true
}

// worstQueueGrowth compares the latency with the longest queue to the latency with an empty queue.
func worstQueueGrowth(_ *Report, res *Result) (value float64, where string, found bool) {
	ns := res.stepNumbers()
	for i := range res.Sides {
		measured := &res.Sides[i]
		if measured.Kind != Ours || len(ns) < 2 {
			continue
		}
		first, last := measured.point(ns[0]), measured.point(ns[len(ns)-1])
		if first == nil || last == nil || ns[0] != 0 || first.P50 == 0 {
			continue
		}
		if v := last.P50 / first.P50; v > value {
			value, where, found = v, measured.Key+", "+formatCount(last.N), true
		}
	}
	return value, where, found
}

// unloadRatio compares the time to empty the longest queue with the best time of the peers.
func unloadRatio(_ *Report, res *Result) (float64, string, bool) {
	ns := res.stepNumbers()
	if len(ns) == 0 {
		return 0, "", false
	}
	last := ns[len(ns)-1]
	ours := res.side(extendedUDP.key).point(last)
	var best float64
	for i := range res.Sides {
		s := &res.Sides[i]
		if p := s.point(last); p != nil && s.Kind == Peer && (best == 0 || p.Unload < best) {
			best = p.Unload
		}
	}
	if ours == nil || best == 0 {
		return 0, "", false
	}
	return ours.Unload / best, extendedUDP.key + ", " + formatCount(last), true
}

// idleUsage returns the processor usage of the busiest idle rank of zrlmpid.
func idleUsage(_ *Report, res *Result) (value float64, where string, found bool) {
	for i := range res.Sides {
		s := &res.Sides[i]
		for _, p := range s.Median {
			if v := max(p.Resting, p.Waiting); s.Kind == Ours && (!found || v > value) {
				value, where, found = v, s.Key, true
			}
		}
	}
	return value, where, found
}
