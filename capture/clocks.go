package capture

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Parameters for the comparison of the clocks of two recordings. Times are in nanoseconds.
const (
	// maxComparedFlows is the maximum number of flows used to compare the clocks of two recordings.
	maxComparedFlows = 64
	// maxCandidates is the number of candidate offsets after which findCandidates collects no more for a flow.
	// maxEvaluated is the maximum number of datagrams used to score each offset.
	maxCandidates = 1024
	maxEvaluated  = 256
	// scoreScale is the deviation at which a datagram counts only half in the score of a candidate offset.
	scoreScale = 20e3
	// agreementScale is the difference between the offsets of two flows at which their agreement counts only half. It
	// allows for path delay, which increases the offset of one direction and decreases that of the other.
	agreementScale = 10e6
	// tolerance is the maximum deviation from a flow's offset at which two datagrams match if other datagrams contain
	// the same bytes. looseTolerance applies instead to datagrams whose bytes are unique.
	tolerance, looseTolerance = 20e6, 1e9
	// maxSureSpread limits clockLink.spread: up to this spread, recordings that do not overlap by their own clocks
	// still prove to contain the same packets.
	maxSureSpread = 200e3
)

// clockLink relates the clocks of two recordings by means of their common packets.
type clockLink struct {
	// offset is the second clock minus the first clock, measured when the first clock shows the time origin. drift is
	// the growth of the offset per nanosecond.
	offset, drift float64
	origin        float64
	// uncertainty is half of the shortest round trip, which is the maximum error of the offset: the error if the whole
	// delay occurs in one direction. It is infinite if all common packets travel in the same direction.
	uncertainty float64
	// Numbers of common packets by the recording that saw them first: the first recording, the second one, or unknown.
	forwardPackets, backwardPackets, unorderedPackets int
	// spread is the median deviation of delays from the median delay of their flow. matchedRatio is the fraction of
	// candidate datagrams found in both recordings.
	spread, matchedRatio float64
	// hasStableID contains the flows whose packets can be distinguished by their IP identifications in both recordings.
	hasStableID map[flowKey]bool
	flows       map[flowKey]flowLink
}

// flowLink describes a flow that appears in both recordings.
type flowLink struct {
	// order is 1 if the first recording sees the packets first, -1 if the second one does, and 0 if the order is
	// unknown.
	order int
	// delay is the median time from a packet's record in the first recording to its record in the second one, by the
	// first clock. It is negative if the second recording sees the packets first.
	delay   float64
	packets int
}

// offsetAt returns by how much the second clock is ahead of the first one at time t of the first clock.
func (l *clockLink) offsetAt(t float64) float64 { return l.offset + l.drift*(t-l.origin) }

// keyGroup holds the datagrams of two recordings that share one key. The datagrams of each recording are in order of
// time.
type keyGroup struct{ a, b []sample }

// comparedFlow is a flow of which both recordings contain datagrams.
type comparedFlow struct {
	flowKey
	groups []keyGroup
	weight int // upper bound on the datagrams in both recordings
	// best holds the candidates with the highest scores, best first. pairs holds the datagrams matched at the common
	// offset, median is their median difference, and order is as in flowLink.
	best   []candidate
	pairs  []timePair
	median float64
	order  int
}

// candidate is a possible clock offset and its score: the weighted number of the flow's datagrams that agree with the
// offset.
type candidate struct{ offset, score float64 }

// timePair holds the time of a packet in the first recording, and in the field delta the packet's time in the second
// recording minus that time.
type timePair struct{ time, delta float64 }

// compareClocks relates the clocks of two recordings by their samples. It returns nil if the recordings share no
// packets. For recordings that do not overlap by their own clocks, it also returns nil if the result is uncertain: the
// recordings may be from two runs of the same program.
func compareClocks(a, b *vantage) *clockLink {
	used, usedByB := flowsWithIDs(a.samples), flowsWithIDs(b.samples)
	for k := range used {
		used[k] = used[k] && usedByB[k]
	}
	link := linkSamples(withIDKeys(a.samples, used), withIDKeys(b.samples, used))
	if link != nil {
		link.hasStableID = used
	}
	if overlap := a.begin() <= b.end() && b.begin() <= a.end(); !overlap {
		if link == nil || !link.isReliable() || !link.isMatchedByID() && !link.provesTwoVantages(a, b) {
			return nil
		}
		return link
	}
	// A middlebox may have changed the identifications.
	plain := linkSamples(slices.Clone(a.samples), slices.Clone(b.samples))
	if plain != nil && (link == nil || plain.packets() > 2*link.packets()) {
		return plain
	}
	return link
}

// flowsWithIDs returns the flows whose packets have different IP identifications, by which even packets with equal
// bytes can be distinguished.
func flowsWithIDs(list []sample) map[flowKey]bool {
	first := map[flowKey]uint16{}
	differ := map[flowKey]bool{}
	for _, s := range list {
		if s.ipID == 0 {
			continue
		}
		k := s.flow.flowKey
		if id, ok := first[k]; !ok {
			first[k] = s.ipID
		} else if id != s.ipID {
			differ[k] = true
		}
	}
	return differ
}

// provesTwoVantages reports whether two recordings that do not overlap, and whose packets have no identifications, were
// made at different vantage points. Their clocks must differ by at most a minute, because the clocks of two hosts
// rarely differ by more. Two recordings of the same series of files must also share nearly all packets, at times that
// agree more closely than two runs of a program would.
func (l *clockLink) provesTwoVantages(a, b *vantage) bool {
	const most, same = 60e9, 20e3
	sameSeries := slices.ContainsFunc(a.files, func(s *survey) bool {
		return slices.ContainsFunc(b.files, func(t *survey) bool { return s.series == t.series })
	})
	lengths := math.Abs(float64(a.end() - a.begin() - (b.end() - b.begin())))
	return math.Abs(l.offset) <= most && (!sameSeries || l.matchedRatio >= 0.95 && l.spread <= same && lengths <= 5*same)
}

func (l *clockLink) packets() int { return l.forwardPackets + l.backwardPackets + l.unorderedPackets }

// isMatchedByID reports whether IP identifications helped to match most of the common packets.
func (l *clockLink) isMatchedByID() bool {
	n := 0
	for k, f := range l.flows {
		if l.hasStableID[k] {
			n += f.packets
		}
	}
	return 2*n > l.packets()
}

// withIDKeys returns a copy of list with changed keys: for the flows in the set used, the key of a sample includes its
// IP identification.
func withIDKeys(list []sample, used map[flowKey]bool) []sample {
	list = slices.Clone(list)
	for i := range list {
		if used[list[i].flow.flowKey] {
			list[i].key = keyWithID(list[i].key, list[i].ipID)
		}
	}
	return list
}

func keyWithID(key uint64, id uint16) uint64 { return key + uint64(id)*0x9e3779b97f4a7c15 }

// estimatedDelay returns the estimated delay between the two vantage points in nanoseconds, or 0 if it is unknown.
func (l *clockLink) estimatedDelay() float64 {
	if math.IsInf(l.uncertainty, 1) {
		return 0
	}
	return l.uncertainty
}

// linkSamples relates the clocks of two recordings by the datagrams that they share, or returns nil if no offset fits.
// It changes the times in both slices.
func linkSamples(a, b []sample) *clockLink {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	base := a[0].time // because float64 cannot represent nanoseconds since 1970 exactly
	for _, list := range [][]sample{a, b} {
		for i := range list {
			list[i].time -= base
		}
	}
	flows := commonFlows(a, b)
	for i := range flows {
		flows[i].findCandidates()
	}
	offset, found := commonOffset(flows)
	if !found {
		return nil
	}
	link := &clockLink{flows: map[flowKey]flowLink{}}
	possible := 0
	for i := range flows {
		f := &flows[i]
		f.match(f.nearestOffset(offset))
		possible += f.weight
	}
	flows = slices.DeleteFunc(flows, func(f comparedFlow) bool { return len(f.pairs) == 0 })
	if len(flows) == 0 {
		return nil
	}
	orderDirections(flows)
	link.fit(flows)
	link.measureDelays(flows, possible)
	link.origin += float64(base)
	return link
}

// commonFlows returns the flows that may have datagrams in both recordings, sorted by the number of common datagrams,
// most first.
func commonFlows(a, b []sample) []comparedFlow {
	sortSamples(a)
	sortSamples(b)
	index := map[flowKey]int{}
	var flows []comparedFlow
	for len(a) > 0 && len(b) > 0 {
		key := a[0].key
		if c := cmp.Compare(key, b[0].key); c != 0 {
			if c < 0 {
				a = a[countSameKey(a):]
			} else {
				b = b[countSameKey(b):]
			}
			continue
		}
		n, m := countSameKey(a), countSameKey(b)
		group := keyGroup{a[:n:n], b[:m:m]}
		a, b = a[n:], b[m:]
		k := group.a[0].flow.flowKey
		if group.b[0].flow.flowKey != k {
			continue
		}
		i, ok := index[k]
		if !ok {
			i = len(flows)
			index[k] = i
			flows = append(flows, comparedFlow{flowKey: k})
		}
		flows[i].groups = append(flows[i].groups, group)
		flows[i].weight += min(n, m)
	}
	slices.SortStableFunc(flows, func(x, y comparedFlow) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), x.src.Compare(y.src), x.dst.Compare(y.dst))
	})
	return flows[:min(len(flows), maxComparedFlows)]
}

// countSameKey returns the number of samples at the front of list that have the same key as the first one.
func countSameKey(list []sample) int {
	n := 1
	for n < len(list) && list[n].key == list[0].key {
		n++
	}
	return n
}

// findCandidates finds the offsets that agree with most of the flow's datagrams. It tries datagrams with rare contents
// first, because few other datagrams can be mistaken for them.
func (f *comparedFlow) findCandidates() {
	slices.SortStableFunc(f.groups, func(x, y keyGroup) int {
		return cmp.Compare(len(x.a)*len(x.b), len(y.a)*len(y.b))
	})
	var offsets []float64
	for _, group := range f.groups {
		// Try the first few datagrams of each recording. The other recording contains them too, unless they were lost.
		const few, many = 4, 128
		for _, a := range group.a[:min(len(group.a), few)] {
			for _, b := range group.b[:min(len(group.b), many)] {
				offsets = append(offsets, float64(b.time-a.time))
			}
		}
		for _, b := range group.b[:min(len(group.b), few)] {
			for _, a := range group.a[:min(len(group.a), many)] {
				offsets = append(offsets, float64(b.time-a.time))
			}
		}
		if len(offsets) >= maxCandidates {
			break
		}
	}
	slices.Sort(offsets)
	for _, o := range slices.Compact(offsets) {
		f.best = append(f.best, candidate{o, f.score(o)})
	}
	slices.SortStableFunc(f.best, func(x, y candidate) int { return cmp.Compare(y.score, x.score) })
	f.best = f.best[:min(len(f.best), 32)]
}

// score rates a candidate offset. It returns the number of evaluated datagrams of the first recording that the second
// one contains at this offset. A datagram that deviates from the offset counts less than 1.
func (f *comparedFlow) score(offset float64) float64 {
	left, score := maxEvaluated, 0.0
	for _, group := range f.groups {
		step := max(len(group.a)/max(left, 1), 1)
		for i := 0; i < len(group.a) && left > 0; i += step {
			x := float64(group.a[i].time) + offset
			j, _ := slices.BinarySearchFunc(group.b, x, func(s sample, x float64) int {
				return cmp.Compare(float64(s.time), x)
			})
			off := math.Inf(1)
			for _, k := range [2]int{j - 1, j} {
				if k >= 0 && k < len(group.b) {
					off = min(off, math.Abs(float64(group.b[k].time)-x))
				}
			}
			score += scoreScale / (scoreScale + off)
			left--
		}
		if left == 0 {
			break
		}
	}
	return score
}

// commonOffset returns the clock offset on which the flows agree best, apart from their path delays. found is false if
// no flow has a candidate offset.
func commonOffset(flows []comparedFlow) (offset float64, found bool) {
	best := 0.0
	for i := range flows {
		for _, c := range flows[i].best {
			total := 0.0
			for j := range flows {
				most := 0.0
				for _, d := range flows[j].best {
					most = max(most, d.score/(1+math.Abs(d.offset-c.offset)/agreementScale))
				}
				total += most
			}
			if total > best {
				best, offset, found = total, c.offset, true
			}
		}
	}
	return offset, found
}

// nearestOffset returns the flow's best candidate near the common offset. The two may differ because each flow's offset
// includes its path delay.
func (f *comparedFlow) nearestOffset(offset float64) float64 {
	best, own := -1.0, offset
	for _, c := range f.best {
		if score := c.score / (1 + math.Abs(c.offset-offset)/agreementScale); score > best {
			best, own = score, c.offset
		}
	}
	return own
}

// match pairs datagrams of the two recordings whose time difference agrees with an offset. It proceeds in order of time
// and uses each datagram at most once.
func (f *comparedFlow) match(offset float64) {
	f.pairs = f.pairs[:0]
	for _, group := range f.groups {
		limit := float64(tolerance)
		if len(group.a) == 1 && len(group.b) == 1 {
			limit = looseTolerance
		}
		i := 0
		for _, b := range group.b {
			x := float64(b.time) - offset
			for i+1 < len(group.a) && math.Abs(float64(group.a[i+1].time)-x) <= math.Abs(float64(group.a[i].time)-x) {
				i++
			}
			if i < len(group.a) && math.Abs(float64(group.a[i].time)-x) <= limit {
				f.pairs = append(f.pairs, timePair{float64(group.a[i].time), float64(b.time - group.a[i].time)})
				i++
			}
		}
	}
	f.median = median(f.pairs, func(p timePair) float64 { return p.delta })
}

func median[T any](list []T, of func(T) float64) float64 {
	if len(list) == 0 {
		return 0
	}
	values := make([]float64, len(list))
	for i, x := range list {
		values[i] = of(x)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// orderDirections decides which recording sees the packets of each flow first. Between two addresses, the path delay
// increases the time difference in one direction and decreases it in the other.
func orderDirections(flows []comparedFlow) {
	for i := range flows {
		f := &flows[i]
		j := slices.IndexFunc(flows, func(g comparedFlow) bool { return g.flowKey == f.reverse() })
		if j < 0 || j == i || f.order != 0 {
			continue
		}
		f.order = 1
		if f.median < flows[j].median || f.median == flows[j].median && f.src.Compare(f.dst) > 0 {
			f.order = -1
		}
		flows[j].order = -f.order
	}
}

// fit computes the link's offset, drift and uncertainty from its matched packets.
func (l *clockLink) fit(flows []comparedFlow) {
	var there, back, other []timePair
	for i := range flows {
		switch f := &flows[i]; f.order {
		case 1:
			there = append(there, f.pairs...)
		case -1:
			back = append(back, f.pairs...)
		default:
			other = append(other, f.pairs...)
		}
	}
	l.forwardPackets, l.backwardPackets, l.unorderedPackets = len(there), len(back), len(other)
	if len(there) == 0 || len(back) == 0 {
		// Only packets in both directions make it possible to separate the path delay from the offset. Attribute the
		// whole of the least difference to the clocks.
		l.offset, l.uncertainty = leastDifference(other, 0, 1), math.Inf(1)
		return
	}
	from, to := math.Inf(1), math.Inf(-1)
	for _, p := range there {
		from, to = min(from, p.time), max(to, p.time)
	}
	l.origin = (from + to) / 2
	const enough = 32 // minimum number of packets per direction and half
	half := func(list []timePair, late bool) (part []timePair) {
		for _, p := range list {
			if p.time > l.origin == late {
				part = append(part, p)
			}
		}
		return part
	}
	parts := [2][2][]timePair{{half(there, false), half(back, false)}, {half(there, true), half(back, true)}}
	fewest := min(len(parts[0][0]), len(parts[0][1]), len(parts[1][0]), len(parts[1][1]))
	if to-from > float64(time.Second) && fewest >= enough {
		for range 8 {
			early, u := l.meanOffset(parts[0][0], parts[0][1])
			late, v := l.meanOffset(parts[1][0], parts[1][1])
			if math.Abs(late-early) <= (u+v)/8 {
				break
			}
			l.drift += (late - early) / ((to - from) / 2)
		}
	}
	l.offset, l.uncertainty = l.meanOffset(there, back)
}

// meanOffset subtracts the drift and then computes the offset as NTP does: as the mean of the least time differences in
// the two directions. The uncertainty is half of the round trip.
func (l *clockLink) meanOffset(there, back []timePair) (offset, uncertainty float64) {
	a, b := l.leastWithoutDrift(there, 1), l.leastWithoutDrift(back, -1)
	return (a + b) / 2, math.Abs(a-b) / 2
}

// leastWithoutDrift returns the least difference of list (see leastDifference) as if the clocks had run at the same
// speed.
func (l *clockLink) leastWithoutDrift(list []timePair, sign float64) float64 {
	flat := make([]timePair, len(list))
	for i, p := range list {
		flat[i] = timePair{p.time, p.delta - l.drift*(p.time-l.origin)}
	}
	return leastDifference(flat, 0.01, sign)
}

// leastDifference returns the least time difference, or the greatest one if sign is negative, after discarding the
// given fraction of outliers.
func leastDifference(list []timePair, outliers, sign float64) float64 {
	values := make([]float64, len(list))
	for i, p := range list {
		values[i] = sign * p.delta
	}
	slices.Sort(values)
	return sign * values[int(outliers*float64(len(values)))]
}

// measureDelays computes the delays and the direction of each flow, and the spread and matchedRatio of the link.
func (l *clockLink) measureDelays(flows []comparedFlow, possible int) {
	var off []float64
	matched := 0
	for i := range flows {
		f := &flows[i]
		delay := median(f.pairs, func(p timePair) float64 { return p.delta - l.offsetAt(p.time) })
		for _, p := range f.pairs {
			off = append(off, math.Abs(p.delta-l.offsetAt(p.time)-delay))
		}
		first := f.order
		if first == 0 && !math.IsInf(l.uncertainty, 1) && math.Abs(delay) > l.uncertainty/2 {
			first = int(math.Copysign(1, delay))
		}
		l.flows[f.flowKey] = flowLink{first, delay, len(f.pairs)}
		matched += len(f.pairs)
	}
	l.spread, l.matchedRatio = median(off, func(x float64) float64 { return x }), float64(matched)/float64(max(possible,
		1))
}

// isReliable reports whether the delays and the number of matched packets prove that both recordings show the same
// packets.
func (l *clockLink) isReliable() bool {
	return l.spread <= maxSureSpread && l.matchedRatio >= 0.8 && l.packets() >= 4
}
