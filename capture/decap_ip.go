package capture

import (
	"encoding/binary"
	"net/netip"
)

// IP protocol numbers, including IPv6 extension headers.
const (
	protoHopByHop = 0
	protoTCP      = 6
	protoUDP      = 17
	protoRouting  = 43
	protoFragment = 44
	protoAH       = 51
	protoOptions  = 60
	protoMobility = 135
)

const (
	ipv4Header = 20
	ipv6Header = 40
	// maxExtensions is the maximum number of IPv6 extension headers in a packet.
	maxExtensions = 16
)

// decodeIPv4 decodes an IPv4 packet. b may be truncated by the recorder or padded by Ethernet, so the length comes from
// the header.
func (d *decoder) decodeIPv4(b []byte) decodeResult {
	if len(b) < ipv4Header || b[0]>>4 != 4 {
		return skipMalformed
	}
	header, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 {
		// The packet was recorded before segmentation offload filled in the length field, so use the actual length.
		total = len(b) + d.unrecorded
	}
	if header < ipv4Header || header > len(b) || header > total {
		return skipMalformed
	}
	pair := addrPair{netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))}
	length := total - header
	payload := b[header:min(total, len(b))]
	d.ipID = binary.BigEndian.Uint16(b[4:])
	frag, proto := binary.BigEndian.Uint16(b[6:]), b[9]
	if frag&0x3fff == 0 {
		return d.decodeTransport(pair, proto, payload, length)
	}
	f := fragment{
		key:    fragKey{addrPair: pair, id: uint32(d.ipID), proto: proto},
		offset: int(frag&0x1fff) * 8, more: frag&0x2000 != 0,
		data: payload, length: length, proto: proto,
	}
	whole, v := d.defragment(&f)
	if v != gotUnit {
		return v
	}
	return d.decodeReassembled(pair, &whole, whole.proto, whole.data, whole.length)
}

// decodeReassembled decodes the transport header of a datagram reassembled from fragments, and records the fragments in
// the unit. It does not record the fragments of a tunnel's outer packet, because the tunnel endpoint reassembles them.
func (d *decoder) decodeReassembled(e addrPair, whole *datagram, proto uint8, b []byte, length int) decodeResult {
	tunnels := d.tunnelDepth
	v := d.decodeTransport(e, proto, b, length)
	if v == gotUnit && d.tunnelDepth == tunnels {
		d.unit.Fragments, d.unit.LongestFragment = whole.fragments, whole.longest
	}
	return v
}

func (d *decoder) decodeIPv6(b []byte) decodeResult {
	if len(b) < ipv6Header || b[0]>>4 != 6 {
		return skipMalformed
	}
	d.ipID = 0
	pair := addrPair{netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))}
	length := int(binary.BigEndian.Uint16(b[4:]))
	proto := b[6]
	b = b[ipv6Header:]
	if length == 0 {
		length = len(b) + d.unrecorded // as for IPv4
	}
	return d.decodeIPv6Payload(pair, proto, b[:min(length, len(b))], length)
}

// decodeIPv6Payload skips the extension headers and decodes the transport header. b is the recorded payload, whose
// length on the wire is length.
func (d *decoder) decodeIPv6Payload(pair addrPair, proto uint8, b []byte, length int) decodeResult {
	var joined datagram
	for range maxExtensions {
		var n int
		switch proto {
		case protoHopByHop, protoRouting, protoOptions, protoMobility, protoAH, protoFragment:
			if len(b) < 8 {
				return skipMalformed
			}
			n = (int(b[1]) + 1) * 8
		default:
			return d.decodeReassembled(pair, &joined, proto, b, length)
		}
		switch proto {
		case protoAH:
			n = (int(b[1]) + 2) * 4
		case protoFragment:
			n = 8
			if frag := binary.BigEndian.Uint16(b[2:]); frag&0xfff9 != 0 {
				f := fragment{
					key:    fragKey{addrPair: pair, id: binary.BigEndian.Uint32(b[4:])},
					offset: int(frag &^ 7), more: frag&1 != 0,
					data: b[n:], length: length - n, proto: b[0],
				}
				whole, v := d.defragment(&f)
				if v != gotUnit {
					return v
				}
				joined, proto, b, length = whole, whole.proto, whole.data, whole.length
				continue
			}
		}
		if n > len(b) {
			return skipMalformed
		}
		proto, b, length = b[0], b[n:], length-n
	}
	return skipNesting
}

// defragment adds a fragment to its datagram. If the datagram is now complete, defragment returns it and gotUnit.
func (d *decoder) defragment(f *fragment) (datagram, decodeResult) {
	whole, v, lost := d.frags.addFragment(f, d.now)
	d.skipped.byResult[skipFragment] += lost
	return whole, v
}
