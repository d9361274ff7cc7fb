package capturetest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Link types supported by Frame, as numbered by the pcap formats.
const (
	Null     = 0
	Ethernet = 1
	RawBSD   = 12
	RawOpen  = 14
	Raw      = 101
	Loop     = 108
	SLL      = 113
	IPv4     = 228
	IPv6     = 229
	SLL2     = 276
)

// IP protocol numbers.
const (
	ProtoTCP      = 6
	ProtoUDP      = 17
	protoFragment = 44
)

// Frame adds a link layer header to an IP packet. On Ethernet and Linux "any" interfaces it adds VLAN tags, the
// outermost first.
func Frame(linkType int, ip []byte, vlans ...uint16) []byte {
	v6 := ip[0]>>4 == 6
	kind := uint16(0x0800)
	family := uint32(2)
	if v6 {
		kind, family = 0x86dd, 30
	}
	// The variable tags holds what follows the first EtherType: for each element of vlans, a VLAN tag and another
	// EtherType.
	var tags []byte
	first := kind
	for i := len(vlans) - 1; i >= 0; i-- {
		tag := binary.BigEndian.AppendUint16(nil, vlans[i])
		tags = append(binary.BigEndian.AppendUint16(tag, first), tags...)
		first = 0x8100
	}
	if len(vlans) > 1 {
		first = 0x88a8
	}
	var b []byte
	switch linkType {
	case Ethernet:
		b = []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
		b = binary.BigEndian.AppendUint16(b, first)
	case SLL:
		b = []byte{0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0}
		b = binary.BigEndian.AppendUint16(b, first)
	case SLL2:
		b = binary.BigEndian.AppendUint16(b, first)
		b = append(b, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0)
	case Null:
		return append(binary.LittleEndian.AppendUint32(nil, family), ip...)
	case Loop:
		return append(binary.BigEndian.AppendUint32(nil, family), ip...)
	case Raw, RawBSD, RawOpen, IPv4, IPv6:
		return append(b, ip...)
	default:
		panic(fmt.Sprintf("no frames of link type %d", linkType))
	}
	return append(append(b, tags...), ip...)
}

// IP returns an IPv4 or IPv6 packet.
func IP(src, dst netip.Addr, proto uint8, payload []byte) []byte {
	if src.Is6() {
		b := []byte{0x60, 0, 0, 0, 0, 0, proto, 64}
		binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
		b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
		return append(b, payload...)
	}
	b := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0}
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(payload)))
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return append(b, payload...)
}

// UDP returns an IP packet with a UDP datagram, without a UDP checksum.
func UDP(src, dst netip.AddrPort, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	b = append(b, 0, 0)
	return IP(src.Addr(), dst.Addr(), ProtoUDP, append(b, payload...))
}

// TCP flags.
const (
	FIN = 0x01
	SYN = 0x02
	RST = 0x04
	PSH = 0x08
	ACK = 0x10
)

// Segment is a TCP segment.
type Segment struct {
	Seq     uint32
	Flags   uint8
	Payload []byte
}

// TCP returns an IP packet with a TCP segment, without a TCP checksum.
func TCP(src, dst netip.AddrPort, s Segment) []byte {
	b := binary.BigEndian.AppendUint16(nil, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint32(b, s.Seq)
	b = append(b, 0, 0, 0, 0, 5<<4, s.Flags, 0xff, 0xff, 0, 0, 0, 0)
	return IP(src.Addr(), dst.Addr(), ProtoTCP, append(b, s.Payload...))
}

// VXLAN returns an IP packet with a VXLAN datagram that encapsulates an Ethernet frame.
func VXLAN(src, dst netip.AddrPort, network uint32, frame []byte) []byte {
	b := append([]byte{8, 0, 0, 0}, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[4:], network<<8)
	return UDP(src, dst, append(b, frame...))
}

// Fragments splits an IP packet without options or extension headers into fragments with size bytes of payload, a
// multiple of 8.
func Fragments(ip []byte, id uint32, size int) [][]byte {
	if size%8 != 0 || size <= 0 {
		panic("a fragment must carry a multiple of 8 bytes")
	}
	header := 20
	if ip[0]>>4 == 6 {
		header = 40
	}
	var fragments [][]byte
	for off := 0; off < len(ip)-header; off += size {
		end := min(off+size, len(ip)-header)
		more := end < len(ip)-header
		fragments = append(fragments, Fragment(ip[:header], id, off, more, ip[header+off:header+end]))
	}
	return fragments
}

// Fragment returns one fragment of the packet with the given IP header.
func Fragment(header []byte, id uint32, offset int, more bool, payload []byte) []byte {
	b := append([]byte(nil), header...)
	if b[0]>>4 == 6 {
		binary.BigEndian.PutUint16(b[4:], uint16(8+len(payload)))
		next := b[6]
		b[6] = protoFragment
		bits := uint16(offset)
		if more {
			bits |= 1
		}
		b = binary.BigEndian.AppendUint16(append(b, next, 0), bits)
		b = binary.BigEndian.AppendUint32(b, id)
		return append(b, payload...)
	}
	bits := uint16(offset / 8)
	if more {
		bits |= 0x2000
	}
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+len(payload)))
	binary.BigEndian.PutUint16(b[4:], uint16(id))
	binary.BigEndian.PutUint16(b[6:], bits)
	binary.BigEndian.PutUint16(b[10:], 0)
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return append(b, payload...)
}

// checksum returns the checksum of an IPv4 header whose checksum field is 0.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
