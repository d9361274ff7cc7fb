package capture

import (
	"encoding/binary"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

const (
	udpHeader   = 8
	tcpHeader   = 20
	vxlanHeader = 8
	// vxlanPort is assigned by IANA; vxlanPortLinux is the older default of Linux.
	vxlanPort      = 4789
	vxlanPortLinux = 8472
	// vxlanFlags is the flags byte of a VXLAN header with a network identifier, the only kind in use.
	vxlanFlags = 0x08
)

// decodeTransport decodes an IP payload of length bytes, of which b is the recorded part.
func (d *decoder) decodeTransport(e addrPair, proto uint8, b []byte, length int) decodeResult {
	switch proto {
	case protoUDP:
		return d.decodeUDP(e, b, length)
	case protoTCP:
		return d.decodeTCP(e, b, length)
	}
	return skipNotUDPTCP
}

// decodeUDP decodes a UDP datagram of length bytes, of which b was recorded, or the Ethernet frame in a VXLAN datagram.
func (d *decoder) decodeUDP(pair addrPair, b []byte, length int) decodeResult {
	if len(b) < udpHeader {
		return skipMalformed
	}
	src, dst := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	// The length field is 0 in a datagram recorded before segmentation offload, if the length does not fit in the
	// field.
	if claimed := int(binary.BigEndian.Uint16(b[4:])); claimed != 0 {
		if claimed < udpHeader {
			return skipMalformed
		}
		length = min(length, claimed)
	}
	payload := b[udpHeader:min(length, len(b))]
	if (dst == vxlanPort || dst == vxlanPortLinux) && len(payload) >= vxlanHeader && payload[0] == vxlanFlags {
		if d.tunnelDepth++; d.tunnelDepth > maxTunnels {
			return skipNesting
		}
		return d.decodeEthernet(payload[vxlanHeader:])
	}
	if !d.matchesPort(src, dst) {
		return skipOtherPort
	}
	*d.unit = pcapng.Unit{
		Packet: d.packet, Time: d.now, Proto: pcapng.UDP,
		Src: netip.AddrPortFrom(pair.src, src), Dst: netip.AddrPortFrom(pair.dst, dst),
		Data: payload, Truncated: length - udpHeader - len(payload),
	}
	return gotUnit
}

// decodeTCP decodes a TCP segment of length bytes, of which b was recorded. A truncated header is accepted if its fixed
// part was recorded.
func (d *decoder) decodeTCP(pair addrPair, b []byte, length int) decodeResult {
	if len(b) < tcpHeader {
		return skipMalformed
	}
	src, dst := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if !d.matchesPort(src, dst) {
		return skipOtherPort
	}
	header := int(b[12]>>4) * 4
	if header < tcpHeader || header > length {
		return skipMalformed
	}
	const flagSYN = 0x02
	segment := tcpSegment{
		seq:    binary.BigEndian.Uint32(b[4:]),
		data:   b[min(header, len(b)):],
		packet: d.packet, time: d.now,
	}
	segment.unrecorded = length - header - len(segment.data)
	f := tcpFlow{netip.AddrPortFrom(pair.src, src), netip.AddrPortFrom(pair.dst, dst)}
	if d.keepSegments {
		d.segment = flowSegment{f, segment, b[13]&flagSYN != 0}
		return gotSegment
	}
	return d.tcp.addSegment(f, segment, b[13]&flagSYN != 0, d.unit)
}
