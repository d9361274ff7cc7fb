package capture

import (
	"cmp"
	"context"
	"hash/crc32"
	"math"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Limits of a survey. Packets are sampled by their keys, so that the samples of all recordings contain the same
// packets.
const (
	maxSamples = 1 << 17
	// maxSamplesPerKey is the maximum number of samples that consist of the same bytes, such as all SEND_REQUESTs of a
	// pair.
	maxSamplesPerKey = 4096
	maxSurveyFlows   = 1 << 16
)

// flowKey identifies one direction between two addresses.
type flowKey struct{ src, dst netip.AddrPort }

func (k flowKey) reverse() flowKey { return flowKey{k.dst, k.src} }

// survey is the result of the first pass over a recording, which takes place before the recording is joined with
// others.
type survey struct {
	name          string
	stats         Stats
	flows         map[flowKey]*surveyFlow
	order         []*surveyFlow // the flows in the order of their first packets
	last          *surveyFlow   // cached, because consecutive packets often share a flow
	samples       []sample
	samplesPerKey map[uint64]int32
	skipMask      uint64 // keys with any of these bits are not sampled
	// begin and end are the times of the first and the last packet, in nanoseconds since 1970.
	begin, end int64
	// recordingEnd is the end time of the recording stored in the file, or the time of the last packet if the file
	// stores none.
	recordingEnd int64
	// longestPause is the longest time between two packets. series is the number of the series of files that contains
	// this file.
	longestPause int64
	series       int
	// prefix is the number of leading bytes of a datagram that contribute to its key.
	prefix int
	// minRecorded is the smallest number of recorded bytes among the truncated datagrams.
	minRecorded int
}

// surveyFlow counts the datagrams that a recording contains of one flow.
type surveyFlow struct {
	flowKey
	hash      uint64
	datagrams int64
}

// sample is a datagram.
type sample struct {
	key  uint64
	time int64
	flow *surveyFlow
	ipID uint16 // of the IP packet, or 0
}

// surveyFile reads a recording. It returns an error if the file cannot be opened or is not a recording. It reads a
// corrupt file up to the defect.
func (o Options) surveyFile(ctx context.Context, path string, prefix int) (*survey, error) {
	o.OnNote = nil
	src, err := o.openSegments(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	s := &survey{
		name: path, flows: map[flowKey]*surveyFlow{}, samplesPerKey: map[uint64]int32{}, prefix: prefix,
		minRecorded: math.MaxInt,
		begin:       math.MaxInt64, end: math.MinInt64,
	}
	var unit pcapng.Unit
	for {
		result := src.readPacket(&unit)
		if src.err != nil {
			s.stats = src.Stats()
			if s.recordingEnd = s.end; !s.stats.End.IsZero() {
				s.recordingEnd = max(s.recordingEnd, s.stats.End.UnixNano())
			}
			return s, nil
		}
		at := src.rec.Time.UnixNano()
		if result == gotUnit || result == gotSegment {
			if s.begin <= s.end {
				s.longestPause = max(s.longestPause, at-s.end)
			}
			s.begin, s.end = min(s.begin, at), max(s.end, at)
		}
		if result == gotUnit {
			id := src.decoder.ipID
			eachDatagram(&unit, func(d *pcapng.Unit) { s.addDatagram(d, at, partIPID(&unit, d, id)) })
		}
		if src.stats.Packets%(1<<14) == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// openSegments opens a recording as a source that returns TCP segments without reassembling them.
func (o Options) openSegments(path string) (*source, error) {
	opened, err := o.OpenFile(path)
	if err != nil {
		return nil, err
	}
	src := opened.(*source)
	src.decoder.keepSegments = true
	return src, nil
}

// eachDatagram calls visit with each datagram of a unit. A unit contains several datagrams if the kernel coalesced
// them. Kernels at different vantage points may coalesce differently.
func eachDatagram(unit *pcapng.Unit, visit func(*pcapng.Unit)) {
	switch {
	case protocol.IsExtended(unit.Data):
		for rest := *unit; ; {
			_, payload, d := protocol.ParseExtendedHeader(rest.Data)
			whole := protocol.ExtHeaderLen + int64(payload)
			if !d.OK() || whole >= int64(len(rest.Data)) || !protocol.IsExtended(rest.Data[whole:]) {
				visit(&rest)
				return
			}
			part := splitUnit(&rest, int(whole))
			visit(&part)
		}
	case isCoalesced(unit):
		for rest := *unit; rest.WireLen() > 0; {
			part := splitUnit(&rest, protocol.MaxDatagram)
			visit(&part)
		}
	default:
		visit(unit)
	}
}

// partIPID returns the identification of the IP packet that carried a datagram, or 0 if the datagram was coalesced with
// others.
func partIPID(u, datagram *pcapng.Unit, id uint16) uint16 {
	if datagram.WireLen() != u.WireLen() {
		return 0
	}
	return id
}

// addDatagram adds a datagram.
func (s *survey) addDatagram(unit *pcapng.Unit, at int64, id uint16) {
	f := s.lookUpFlow(flowKey{unit.Src, unit.Dst})
	if f == nil {
		return
	}
	f.datagrams++
	if unit.Truncated > 0 {
		s.minRecorded = min(s.minRecorded, len(unit.Data))
	}
	key := datagramKey(f.hash, unit, s.prefix)
	if key&s.skipMask != 0 {
		return
	}
	n := s.samplesPerKey[key]
	if n >= maxSamplesPerKey {
		return
	}
	s.samplesPerKey[key] = n + 1
	if len(s.samples) == maxSamples {
		s.thinOut()
	}
	if key&s.skipMask == 0 {
		s.samples = append(s.samples, sample{key, at, f, id})
	}
}

// thinOut drops samples until at most half of maxSamples are left.
func (s *survey) thinOut() {
	for len(s.samples) > maxSamples/2 {
		s.skipMask = s.skipMask<<1 | 1
		s.samples = slices.DeleteFunc(s.samples, func(x sample) bool { return x.key&s.skipMask != 0 })
	}
	for key := range s.samplesPerKey {
		if key&s.skipMask != 0 {
			delete(s.samplesPerKey, key)
		}
	}
}

// lookUpFlow returns the entry of a flow, or nil if there are too many flows.
func (s *survey) lookUpFlow(key flowKey) *surveyFlow {
	if s.last != nil && s.last.flowKey == key {
		return s.last
	}
	f := s.flows[key]
	if f == nil {
		if len(s.flows) == maxSurveyFlows {
			return nil
		}
		f = &surveyFlow{flowKey: key, hash: key.hash()}
		s.flows[key] = f
		s.order = append(s.order, f)
	}
	s.last = f
	return f
}

// hash returns a hash of the flow. Two flows are unlikely to have the same hash.
func (k flowKey) hash() uint64 {
	var b [36]byte
	src, dst := k.src.Addr().As16(), k.dst.Addr().As16()
	copy(b[:], src[:])
	copy(b[16:], dst[:])
	b[32], b[33] = byte(k.src.Port()), byte(k.src.Port()>>8)
	b[34], b[35] = byte(k.dst.Port()), byte(k.dst.Port()>>8)
	return uint64(crc32.ChecksumIEEE(b[:]))<<32 | uint64(crc32.Checksum(b[:], castagnoli))
}

// datagramKey returns the key of a datagram, a hash of its flow, length and first bytes. Collisions are unlikely.
func datagramKey(flow uint64, u *pcapng.Unit, prefix int) uint64 {
	sum := crc32.Checksum(u.Data[:min(prefix, len(u.Data))], castagnoli)
	x := flow ^ (uint64(sum)<<32 | uint64(uint32(u.WireLen())))
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// sortSamples sorts samples by key and time.
func sortSamples(list []sample) {
	slices.SortFunc(list, func(a, b sample) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.time, b.time)) })
}
