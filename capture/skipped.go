package capture

import (
	"maps"
	"strconv"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// decodeResult is the result of decoding one recorded packet: a unit, or the reason why there is none.
type decodeResult uint8

const (
	// gotUnit: the packet completed a unit.
	gotUnit decodeResult = iota
	// unitPending: the packet is part of a unit that is not complete yet.
	unitPending
	// gotSegment: the packet is a TCP segment. It was stored in decoder.segment instead of being reassembled.
	gotSegment
	// The packet is ignored.
	skipNotIP
	skipNotUDPTCP
	skipOtherPort
	skipMalformed
	skipCutShort
	skipNesting
	skipFragment
	skipNoData
	skipRetransmission
	numDecodeResults
)

// skipNames are the keys of Stats.Skipped.
var skipNames = [numDecodeResults]string{
	skipNotIP:          "not_ip",
	skipNotUDPTCP:      "not_udp_or_tcp",
	skipOtherPort:      "other_port",
	skipMalformed:      "malformed",
	skipCutShort:       "cut_short",
	skipNesting:        "nested_too_deep",
	skipFragment:       "ip_fragment",
	skipNoData:         "tcp_no_data",
	skipRetransmission: "tcp_retransmission",
}

// SkipKernelDrops is the key in Stats.Skipped for packets that the kernel dropped because the program did not read a
// live capture fast enough. No other counter includes them.
const SkipKernelDrops = "dropped_by_kernel"

// skipCounts counts packets by result, and packets of unknown link types separately. The array avoids a map lookup per
// packet.
type skipCounts struct {
	byResult [numDecodeResults]int64
	byLink   map[pcapng.LinkType]int64
}

// countLink counts a packet of an unknown link type. The number of interfaces in a file bounds the map.
func (c *skipCounts) countLink(t pcapng.LinkType) {
	if c.byLink == nil {
		c.byLink = make(map[pcapng.LinkType]int64)
	}
	c.byLink[t]++
}

// named returns the counts under the names that Stats.Skipped uses as keys.
func (c *skipCounts) named() map[string]int64 {
	named := make(map[string]int64)
	for v, name := range skipNames {
		if name != "" && c.byResult[v] > 0 {
			named[name] = c.byResult[v]
		}
	}
	for t, n := range maps.All(c.byLink) {
		named["link_type_"+strconv.Itoa(int(t))] = n
	}
	return named
}
