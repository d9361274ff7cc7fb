package xdp

import (
	"encoding/binary"
	"math/bits"
	"net"
	"net/netip"
)

// Lengths and offsets, in bytes, within a frame without VLAN tag, IPv4 options or IPv6 extension headers.
const (
	ethernetLen = 14
	macLen      = 6
	ipv4Len     = 20
	ipv6Len     = 40
	udpLen      = 8

	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd
	// etherTypeDiscarded is reserved for local experiments. Path.Discard marks frames with it.
	etherTypeDiscarded = 0x88b5
	protocolUDP        = 17
	hopLimit           = 64
)

// maxHeaders is the length of the longest headers of a frame.
const maxHeaders = ethernetLen + ipv6Len + udpLen

// headers holds the headers of the frames from a local address to a peer. They have the lengths and checksums of an
// empty datagram.
type headers struct {
	bytes [maxHeaders]byte
	// len is the length of the headers, and udp the offset of the UDP header.
	len, udp int
	// pseudoSum is the checksum of the pseudo header without the length of the datagram, not yet folded.
	pseudoSum uint64
	// ipSum is the checksum of the IPv4 header without its total length, not yet folded.
	ipSum uint64
}

// newHeaders returns the headers of frames from one address to another. Both addresses must belong to the same version
// of IP, and both hardware addresses to Ethernet.
func newHeaders(from, to netip.AddrPort, fromMAC, toMAC net.HardwareAddr) headers {
	var h headers
	b := h.bytes[:]
	copy(b, toMAC)
	copy(b[6:], fromMAC)
	source, destination := from.Addr().Unmap(), to.Addr().Unmap()
	if source.Is4() {
		h.udp = ethernetLen + ipv4Len
		binary.BigEndian.PutUint16(b[12:], etherTypeIPv4)
		ip := b[ethernetLen:]
		ip[0] = 0x45
		binary.BigEndian.PutUint16(ip[6:], 0x4000) // don't fragment
		ip[8], ip[9] = hopLimit, protocolUDP
		copy(ip[12:], source.AsSlice())
		copy(ip[16:], destination.AsSlice())
		h.ipSum = sum(0, ip[:ipv4Len])
	} else {
		h.udp = ethernetLen + ipv6Len
		binary.BigEndian.PutUint16(b[12:], etherTypeIPv6)
		ip := b[ethernetLen:]
		ip[0] = 0x60
		ip[6], ip[7] = protocolUDP, hopLimit
		copy(ip[8:], source.AsSlice())
		copy(ip[24:], destination.AsSlice())
	}
	h.len = h.udp + udpLen
	binary.BigEndian.PutUint16(b[h.udp:], from.Port())
	binary.BigEndian.PutUint16(b[h.udp+2:], to.Port())
	h.pseudoSum = sum(sum(protocolUDP, source.AsSlice()), destination.AsSlice())
	return h
}

// build writes a frame with the given payload, the concatenation of parts, to frame and returns its length. The frame
// must have space for it.
func (h *headers) build(frame []byte, parts ...[]byte) int {
	n := copy(frame, h.bytes[:h.len])
	for _, part := range parts {
		n += copy(frame[n:], part)
	}
	udp := frame[h.udp:n]
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	if h.udp == ethernetLen+ipv4Len {
		ip := frame[ethernetLen:]
		total := n - ethernetLen
		binary.BigEndian.PutUint16(ip[2:], uint16(total))
		binary.BigEndian.PutUint16(ip[10:], ^fold(h.ipSum+uint64(total)))
	} else {
		binary.BigEndian.PutUint16(frame[ethernetLen+4:], uint16(len(udp)))
	}
	check := ^fold(sum(h.pseudoSum+uint64(len(udp)), udp))
	if check == 0 { // 0 would mean that there is no checksum
		check = 0xffff
	}
	binary.BigEndian.PutUint16(udp[6:], check)
	return n
}

// defect is the reason why a received frame is dropped.
type defect int

const (
	// sound: the frame has no defect.
	sound defect = iota
	// malformed: not UDP over IP without options, extensions or fragments, or a length is wrong.
	malformed
	// foreignMAC: the frame is not addressed to the device.
	foreignMAC
	// badChecksum: the checksum of the IPv4 header or of the datagram is wrong.
	badChecksum
)

// parse returns the payload and the source of a received frame for the hardware address mac. partial is set if the
// device delivers frames of local senders, whose UDP checksum covers only the pseudo header. The result is valid only
// if the defect is sound.
func parse(frame []byte, mac [macLen]byte, partial bool) (payload []byte, from netip.AddrPort, d defect) {
	if len(frame) < ethernetLen+ipv4Len+udpLen {
		return nil, from, malformed
	}
	if [macLen]byte(frame) != mac {
		return nil, from, foreignMAC
	}
	ip := frame[ethernetLen:]
	var udp, addresses []byte
	var source netip.Addr
	switch binary.BigEndian.Uint16(frame[12:]) {
	case etherTypeIPv4:
		total := int(binary.BigEndian.Uint16(ip[2:]))
		if ip[0] != 0x45 || ip[9] != protocolUDP || total < ipv4Len+udpLen || total > len(ip) ||
			binary.BigEndian.Uint16(ip[6:])&^0x4000 != 0 {
			return nil, from, malformed
		}
		if fold(sum(0, ip[:ipv4Len])) != 0xffff {
			return nil, from, badChecksum
		}
		udp = ip[ipv4Len:total]
		addresses = ip[12:20]
		source = netip.AddrFrom4([4]byte(ip[12:16]))
	case etherTypeIPv6:
		if len(ip) < ipv6Len+udpLen || ip[0]>>4 != 6 || ip[6] != protocolUDP {
			return nil, from, malformed
		}
		length := int(binary.BigEndian.Uint16(ip[4:]))
		if length < udpLen || ipv6Len+length > len(ip) {
			return nil, from, malformed
		}
		udp = ip[ipv6Len : ipv6Len+length]
		addresses = ip[8:40]
		source = netip.AddrFrom16([16]byte(ip[8:24]))
	default:
		return nil, from, malformed
	}
	if int(binary.BigEndian.Uint16(udp[4:])) != len(udp) {
		return nil, from, malformed
	}
	pseudoSum := sum(uint64(protocolUDP+len(udp)), addresses)
	switch check := binary.BigEndian.Uint16(udp[6:]); {
	case check == 0 && source.Is4(): // the sender did not compute one
	case fold(sum(pseudoSum, udp)) == 0xffff:
	case partial && check == fold(pseudoSum):
	default:
		return nil, from, badChecksum
	}
	return udp[udpLen:], netip.AddrPortFrom(source, binary.BigEndian.Uint16(udp)), sound
}

// sum adds the 16-bit words of b, in network byte order, to the ones' complement sum s. The last byte of an odd length
// is the high byte of a word.
func sum(s uint64, b []byte) uint64 {
	// Ones' complement sums of swapped words are swapped, so that only the result needs to be in network byte order.
	var wide, carry uint64
	for len(b) >= 32 {
		wide, carry = bits.Add64(wide, binary.LittleEndian.Uint64(b), carry)
		wide, carry = bits.Add64(wide, binary.LittleEndian.Uint64(b[8:]), carry)
		wide, carry = bits.Add64(wide, binary.LittleEndian.Uint64(b[16:]), carry)
		wide, carry = bits.Add64(wide, binary.LittleEndian.Uint64(b[24:]), carry)
		b = b[32:]
	}
	for len(b) >= 8 {
		wide, carry = bits.Add64(wide, binary.LittleEndian.Uint64(b), carry)
		b = b[8:]
	}
	if len(b) >= 4 { // the usual rest: headers and words
		wide, carry = bits.Add64(wide, uint64(binary.LittleEndian.Uint32(b)), carry)
		b = b[4:]
	}
	if len(b) > 0 {
		var last [4]byte
		copy(last[:], b)
		wide, carry = bits.Add64(wide, uint64(binary.LittleEndian.Uint32(last[:])), carry)
	}
	wide = wide>>32 + wide&0xffffffff + carry
	return s + uint64(bits.ReverseBytes16(fold(wide)))
}

// fold reduces a ones' complement sum to 16 bits.
func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
