package capture

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	etherIPv4  = 0x0800
	etherIPv6  = 0x86dd
	etherVLAN  = 0x8100
	etherQinQ  = 0x88a8
	etherQinQ2 = 0x9100 // used before 802.1ad
)

const (
	ethernetHeader = 14
	vlanTag        = 4
	// maxVLANTags and maxTunnels limit the nesting of a packet. Real packets rarely have more than two tags, or a
	// tunnel inside a tunnel.
	maxVLANTags = 4
	maxTunnels  = 3
)

// decoder decodes packets. It does not verify checksums, because packets recorded on their sender often lack them: the
// network card fills them in later.
//
// It does not use gopacket's layers, which slow down reading by a tenth to three quarters, allocate memory for a
// truncated TCP header, panic on a Linux "any" header, and lose packets whose length the network card fills in
// (layers_test.go).
type decoder struct {
	// ports holds one bit for each port, set if packets from or to that port are decoded.
	ports       [1 << 16 / 64]uint64
	frags       *defragmenter
	tcp         *reassembler
	skipped     skipCounts
	now         time.Time
	packet      int64
	unrecorded  int // bytes of the packet that were not recorded
	tunnelDepth int
	unit        *pcapng.Unit
	allPorts    bool
	// ipID is the identification field of the innermost IPv4 packet, or 0 if there is no such packet.
	ipID uint16
	// keepSegments makes the decoder store each TCP segment in segment instead of reassembling the stream.
	keepSegments bool
	segment      flowSegment
}

func newDecoder(o Options) *decoder {
	d := &decoder{allPorts: o.AllPorts}
	d.frags = &defragmenter{}
	d.tcp = newReassembler()
	for _, p := range o.ports() {
		d.ports[p/64] |= 1 << (p % 64)
	}
	return d
}

// ports returns the ports that carry ZRLMPI.
func (o Options) ports() []uint16 {
	if len(o.Ports) > 0 {
		return o.Ports
	}
	ports := make([]uint16, protocol.MaxRanksCPU)
	for i := range ports {
		ports[i] = protocol.Port + uint16(i)
	}
	return ports
}

// matchesPort reports whether packets between the given ports are to be decoded.
func (d *decoder) matchesPort(src, dst uint16) bool {
	return d.allPorts || d.ports[src/64]>>(src%64)&1 != 0 || d.ports[dst/64]>>(dst%64)&1 != 0
}

// decode decodes one packet. If the packet completes a unit, decode stores the unit in u and returns gotUnit.
func (d *decoder) decode(rec *pcapng.Record, packet int64, u *pcapng.Unit) decodeResult {
	d.now, d.packet, d.unit, d.tunnelDepth, d.ipID = rec.Time, packet, u, 0, 0
	d.unrecorded = max(min(rec.WireLen, pcapng.MaxPacket)-len(rec.Data), 0)
	d.frags.recycle()
	d.skipped.byResult[skipFragment] += d.frags.expire(d.now)
	d.tcp.expire(d.now)
	if !rec.Link.IsSupported() {
		d.skipped.countLink(rec.Link)
		return skipNotIP
	}
	v := d.decodeLink(rec.Link, rec.Data)
	if v == skipMalformed && rec.WireLen > len(rec.Data) {
		v = skipCutShort
	}
	d.skipped.byResult[v]++
	return v
}

// dropIncomplete drops incomplete datagrams and skips holes in TCP streams, at the end of the recording.
func (d *decoder) dropIncomplete() {
	d.skipped.byResult[skipFragment] += d.frags.dropAll()
	d.tcp.skipAll()
}

// decodeLink removes the link-layer header.
func (d *decoder) decodeLink(t pcapng.LinkType, b []byte) decodeResult {
	switch t {
	case pcapng.LinkEthernet:
		return d.decodeEthernet(b)
	case pcapng.LinkNull, pcapng.LinkLoop:
		if len(b) < 4 {
			return skipMalformed
		}
		// Ignore the address family, whose byte order and number for IPv6 depend on the recording system. The IP header
		// contains the version.
		return d.decodeIP(b[4:])
	case pcapng.LinkSLL:
		if len(b) < 16 {
			return skipMalformed
		}
		return d.decodeEtherType(binary.BigEndian.Uint16(b[14:]), b[16:])
	case pcapng.LinkSLL2:
		if len(b) < 20 {
			return skipMalformed
		}
		return d.decodeEtherType(binary.BigEndian.Uint16(b), b[20:])
	default:
		return d.decodeIP(b)
	}
}

func (d *decoder) decodeEthernet(b []byte) decodeResult {
	if len(b) < ethernetHeader {
		return skipMalformed
	}
	return d.decodeEtherType(binary.BigEndian.Uint16(b[12:]), b[ethernetHeader:])
}

// decodeEtherType decodes the payload of an Ethernet frame by its EtherType.
func (d *decoder) decodeEtherType(kind uint16, b []byte) decodeResult {
	for range maxVLANTags {
		if kind != etherVLAN && kind != etherQinQ && kind != etherQinQ2 {
			break
		}
		if len(b) < vlanTag {
			return skipMalformed
		}
		kind, b = binary.BigEndian.Uint16(b[2:]), b[vlanTag:]
	}
	switch kind {
	case etherIPv4:
		return d.decodeIPv4(b)
	case etherIPv6:
		return d.decodeIPv6(b)
	case etherVLAN, etherQinQ, etherQinQ2:
		return skipNesting
	}
	return skipNotIP
}

// decodeIP decodes an IP packet by the version in its header.
func (d *decoder) decodeIP(b []byte) decodeResult {
	if len(b) == 0 {
		return skipMalformed
	}
	switch b[0] >> 4 {
	case 4:
		return d.decodeIPv4(b)
	case 6:
		return d.decodeIPv6(b)
	}
	return skipNotIP
}

// addrPair holds the source and destination addresses of an IP packet.
type addrPair struct {
	src, dst netip.Addr
}
