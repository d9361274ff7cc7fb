package pcapng

import (
	"encoding/binary"
	"math"
	"net/netip"
)

// Protocol numbers and lengths of headers without options (RFC 791, 8200, 768, 9293).
const (
	udpNumber, tcpNumber = 17, 6

	ipv4Len, ipv6Len = 20, 40
	udpLen, tcpLen   = 8, 20
)

// headers describes the IP and UDP or TCP headers of a packet.
type headers struct {
	proto    byte
	src, dst netip.AddrPort
	seq, ack uint32 // TCP only
}

// lengths returns the lengths of the IP header and of the UDP or TCP header.
func (h *headers) lengths() (ip, transport int) {
	ip, transport = ipv6Len, udpLen
	if h.src.Addr().Is4() && h.dst.Addr().Is4() {
		ip = ipv4Len
	}
	if h.proto == tcpNumber {
		transport = tcpLen
	}
	return ip, transport
}

// addresses returns the addresses of the IP header. If only one address is IPv4, addresses maps it to IPv6.
func (h *headers) addresses(ip int) (source, destination []byte) {
	src, dst := h.src.Addr(), h.dst.Addr()
	if ip == ipv4Len {
		return src.AsSlice(), dst.AsSlice()
	}
	s, d := src.As16(), dst.As16()
	return s[:], d[:]
}

// maxPayload returns the maximum length in bytes of a packet's payload. The limit depends on the IP version, because
// the length field of IPv6 excludes the IPv6 header.
func (h *headers) maxPayload() int {
	ip, transport := h.lengths()
	if ip == ipv6Len {
		ip = 0
	}
	return math.MaxUint16 - ip - transport
}

// append appends the headers of a packet with length bytes of payload. data is the recorded beginning of the payload;
// the checksum assumes that the other bytes are zero.
func (h *headers) append(b, data []byte, length int) []byte {
	ip, transport := h.lengths()
	length += transport
	source, destination := h.addresses(ip)
	at := len(b)
	if ip == ipv4Len {
		b = append(b, 0x45, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(ip+length))
		b = append(b, 0, 0, 0, 0, 64, h.proto, 0, 0)
		b = append(append(b, source...), destination...)
		binary.BigEndian.PutUint16(b[at+10:], ^fold(sum(0, b[at:])))
	} else {
		b = append(b, 0x60, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(length))
		b = append(b, h.proto, 64)
		b = append(append(b, source...), destination...)
	}
	at = len(b)
	b = binary.BigEndian.AppendUint16(b, h.src.Port())
	b = binary.BigEndian.AppendUint16(b, h.dst.Port())
	checksum := at + 6
	if h.proto == tcpNumber {
		b = binary.BigEndian.AppendUint32(b, h.seq)
		b = binary.BigEndian.AppendUint32(b, h.ack)
		b = append(b, tcpLen/4<<4, 0x18, 0xff, 0xff, 0, 0, 0, 0) // ACK and PSH, with a window of 65535
		checksum = at + 16
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(length))
		b = append(b, 0, 0)
	}
	pseudo := sum(sum(uint64(h.proto)+uint64(length), source), destination)
	value := ^fold(sum(sum(pseudo, b[at:]), data))
	if value == 0 && h.proto == udpNumber {
		value = 0xffff // 0 means no checksum
	}
	binary.BigEndian.PutUint16(b[checksum:], value)
	return b
}

// sum adds the 16-bit words of b to the sum of an Internet checksum (RFC 1071). It pads b with a zero byte if the
// length is odd.
func sum(to uint64, b []byte) uint64 {
	for ; len(b) > 1; b = b[2:] {
		to += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		to += uint64(b[0]) << 8
	}
	return to
}

func fold(sum uint64) uint16 {
	for sum > math.MaxUint16 {
		sum = sum>>16 + sum&math.MaxUint16
	}
	return uint16(sum)
}
