package capture

import (
	"cmp"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
)

// vantage is a vantage point together with the consecutive files recorded there.
type vantage struct {
	files   []*survey
	samples []sample
	// nearAddrs contains the addresses closer to this vantage point than to others. farAddrs contains the addresses
	// closer to another vantage point.
	nearAddrs, farAddrs map[netip.Addr]bool
	// If hasClock is true, clock converts times to the clock of the first vantage point. Otherwise times are not
	// converted.
	hasClock bool
	clock    clockLink
}

func (v *vantage) begin() int64 { return v.files[0].begin }
func (v *vantage) end() int64   { return v.files[len(v.files)-1].end }

// numberSeries numbers series of files. Files belong to one series if they overlap by their own clocks, or if the pause
// between them is at most twice the longest pause in them.
func numberSeries(inTime []*survey) {
	series, end, pause := 0, int64(math.MinInt64), int64(0)
	for i, s := range inTime {
		if i > 0 && s.begin > end && s.begin-end > 2*max(pause, s.longestPause) {
			series++
			pause = 0
		}
		s.series, end, pause = series, max(end, s.end), max(pause, s.longestPause)
	}
}

// newVantage returns a vantage point with a single file.
func newVantage(s *survey) *vantage { return &vantage{files: []*survey{s}, samples: s.samples} }

// toReference converts a time from the vantage point's clock to the clock of the first vantage point.
func (v *vantage) toReference(at int64) int64 {
	if !v.hasClock {
		return at
	}
	t := float64(at) - v.clock.offset
	return at - int64(math.Round(v.clock.offsetAt(t)))
}

// isRecordingAt reports whether the vantage point was recording at a time on its own clock: between the first packet
// and the end of one of its files.
func (v *vantage) isRecordingAt(at int64) bool {
	return slices.ContainsFunc(v.files, func(s *survey) bool { return s.begin <= at && at <= s.recordingEnd })
}

// hasFlow reports whether the vantage point recorded a packet between two addresses, in either direction.
func (v *vantage) hasFlow(k flowKey) bool {
	return slices.ContainsFunc(v.files, func(s *survey) bool {
		return s.flows[k] != nil || s.flows[k.reverse()] != nil
	})
}

// datagrams returns the number of datagrams of a flow in the vantage point's recordings.
func (v *vantage) datagrams(k flowKey) (n int64) {
	for _, s := range v.files {
		if f := s.flows[k]; f != nil {
			n += f.datagrams
		}
	}
	return n
}

// droppedPackets returns the number of packets that the vantage point's recorders have lost.
func (v *vantage) droppedPackets() (n int64) {
	for _, s := range v.files {
		n += s.stats.Skipped[SkipKernelDrops]
	}
	return n
}

// fileLinks maps each pair of files to the link between their clocks.
type fileLinks map[[2]*survey]*clockLink

// linkFiles compares all pairs of files. It links files that do not overlap by their own clocks only if the result is
// certain.
func linkFiles(files []*survey) fileLinks {
	links := fileLinks{}
	for i, a := range files {
		for _, b := range files[i+1:] {
			if l := compareClocks(newVantage(a), newVantage(b)); l != nil {
				links[[2]*survey{a, b}] = l
			}
		}
	}
	return links
}

// groupByVantage groups files by vantage point. Files of one vantage point share no packets, do not overlap in time,
// and are at the same end of the paths to other files.
func groupByVantage(files []*survey) []*vantage {
	inTime := slices.Clone(files)
	slices.SortStableFunc(inTime, func(a, b *survey) int { return cmp.Compare(a.begin, b.begin) })
	numberSeries(inTime)
	links := linkFiles(files)
	near, far := map[*survey]map[netip.Addr]bool{}, map[*survey]map[netip.Addr]bool{}
	for _, s := range files {
		near[s], far[s] = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	}
	linked := func(a, b *survey) bool { return links[[2]*survey{a, b}] != nil || links[[2]*survey{b, a}] != nil }
	for pair, l := range links {
		for key, f := range l.flows {
			first, second := pair[0], pair[1]
			switch f.order {
			case 0:
				continue
			case -1:
				first, second = second, first
			}
			src, dst := key.src.Addr(), key.dst.Addr()
			near[first][src], far[first][dst], near[second][dst], far[second][src] = true, true, true, true
		}
	}
	var list []*vantage
	for _, s := range inTime {
		var same *vantage
		most := 0
		for _, v := range list {
			if v.end() > s.begin || slices.ContainsFunc(v.files, func(o *survey) bool { return linked(o, s) }) ||
				countCommon(v.nearAddrs, far[s])+countCommon(v.farAddrs, near[s]) > 0 {
				continue
			}
			if n := 1 + 1000*(countCommon(v.nearAddrs, near[s])+countCommon(v.farAddrs, far[s])) +
				v.sharedFlows(s); n >= most && n > 1 {
				same, most = v, n
			}
		}
		if same == nil {
			same = &vantage{nearAddrs: map[netip.Addr]bool{}, farAddrs: map[netip.Addr]bool{}}
			list = append(list, same)
		}
		same.files = append(same.files, s)
		same.samples = append(same.samples, s.samples...)
		for a := range near[s] {
			same.nearAddrs[a] = true
		}
		for a := range far[s] {
			same.farAddrs[a] = true
		}
	}
	place := func(v *vantage) int {
		return slices.IndexFunc(files, func(s *survey) bool { return slices.Contains(v.files, s) })
	}
	slices.SortFunc(list, func(a, b *vantage) int { return cmp.Compare(place(a), place(b)) })
	return list
}

// countCommon returns the number of addresses that are in both sets.
func countCommon(a, b map[netip.Addr]bool) (n int) {
	for x := range a {
		if b[x] {
			n++
		}
	}
	return n
}

// sharedFlows returns how many of a file's flows the vantage point recorded too, but at most 999.
func (v *vantage) sharedFlows(s *survey) (n int) {
	for _, f := range s.order {
		if v.hasFlow(f.flowKey) {
			n++
		}
	}
	return min(n, 999)
}

// setClocks determines the clock of each vantage point from the packets that it shares with a vantage point whose clock
// is known. It returns the links between all vantage points, keyed by their indices in ascending order.
func setClocks(list []*vantage) map[[2]int]*clockLink {
	links := map[[2]int]*clockLink{}
	for i := range list {
		for j := range list[i+1:] {
			a, b := list[i], list[i+1+j]
			if l := compareClocks(a, b); l != nil {
				links[[2]int{i, i + 1 + j}] = l
			}
		}
	}
	list[0].hasClock = true
	for {
		var best *clockLink
		known, next := -1, -1
		for i := range list {
			for j := range list {
				link := links[[2]int{min(i, j), max(i, j)}]
				if link == nil || !list[i].hasClock || list[j].hasClock {
					continue
				}
				if best == nil || link.uncertainty < best.uncertainty ||
					link.uncertainty == best.uncertainty && link.packets() > best.packets() {
					best, known, next = link, i, j
				}
			}
		}
		if best == nil {
			break
		}
		list[next].hasClock = true
		list[next].clock = list[known].clock.chain(best, known < next)
	}
	for _, v := range list {
		v.samples = nil
		for _, s := range v.files {
			s.samples, s.samplesPerKey = nil, nil
		}
	}
	return links
}

// chain returns a vantage point's clock relative to the reference. c is another vantage point's clock relative to the
// reference, and link relates the two clocks. forward is true if c is the first clock of link.
func (c clockLink) chain(link *clockLink, forward bool) clockLink {
	sum := clockLink{uncertainty: c.uncertainty + link.uncertainty, origin: link.origin}
	sum.forwardPackets, sum.backwardPackets, sum.unorderedPackets = link.forwardPackets, link.backwardPackets,
		link.unorderedPackets
	sign := 1.0
	if !forward {
		sign = -1
		sum.origin += link.offset
		sum.forwardPackets, sum.backwardPackets = link.backwardPackets, link.forwardPackets
	}
	sum.origin -= c.offset
	sum.offset, sum.drift = c.offsetAt(sum.origin)+sign*link.offset, c.drift+sign*link.drift
	return sum
}

// baseNames returns the base names of files, or their full names if the base names are not unique.
func baseNames(files []*survey) map[*survey]string {
	names := map[*survey]string{}
	times := map[string]int{}
	for _, s := range files {
		times[filepath.Base(s.name)]++
	}
	for _, s := range files {
		names[s] = s.name
		if base := filepath.Base(s.name); times[base] == 1 {
			names[s] = base
		}
	}
	return names
}
